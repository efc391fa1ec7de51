//! Every tool result of every recorded session.

use std::collections::{BTreeMap, HashMap};

use pal_context::{OutputOrigin, condense_output};
use pal_model::{BlockType, EntryBody, array_items, member, object_fields, unescape};
use pal_testkit::session_files;

use crate::laws::check_laws;

/// Target characters.
const TARGET_CHARACTERS: usize = 4_000;

/// The command in the input of a call; the key varies between agents.
fn command(input: &str) -> Option<String> {
    let input = object_fields(input).ok()?;
    let value = member(&input, "command").or_else(|| member(&input, "cmd"))?;
    match unescape(value) {
        Some(command) => Some(command.into_owned()),
        None => Some(array_items(value).ok()?.into_iter().filter_map(unescape).collect::<Vec<_>>().join(" ")),
    }
}

/// Calls `each` with every result's tool, command and text.
fn each_result(mut each: impl FnMut(OutputOrigin<'_>, &str)) {
    for file in session_files() {
        let mut calls: HashMap<String, (String, Option<String>)> = HashMap::new();
        for entry in pal_testkit::recorded_entries(&file) {
            let content = match &entry.body {
                EntryBody::User(user) => &user.content,
                EntryBody::Assistant(assistant) => &assistant.content,
                _ => continue,
            };
            for block in content.blocks() {
                let id = block.tool_use_id().map(|id| id.as_str().to_owned()).unwrap_or_default();
                if block.kind() == BlockType::ToolUse {
                    let name = block.string("name").unwrap_or_default().into_owned();
                    calls.insert(id, (name, block.field("input").and_then(command)));
                } else if block.kind() == BlockType::ToolResult {
                    let (tool, command) = calls.get(&id).cloned().unwrap_or_default();
                    let asked = OutputOrigin { tool: &tool, command: command.as_deref() };
                    let content = block.content();
                    let texts = content.blocks().iter().filter_map(|block| block.string("text"));
                    texts.for_each(|text| each(asked, &text));
                }
            }
        }
    }
}

#[test]
fn recorded_results_keep_the_laws() {
    let mut by_kind: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let (mut results, mut long, mut characters) = (0, 0, 0);
    each_result(|asked, text| {
        results += 1;
        let before = text.chars().count();
        characters += before;
        long += usize::from(before >= 2_000);
        check_laws(asked, text, TARGET_CHARACTERS);
        if let Some(condensed) = condense_output(asked, text, TARGET_CHARACTERS) {
            by_kind
                .entry(condensed.format.name())
                .or_default()
                .push((before, condensed.text.chars().count()));
        }
    });
    println!("{results} results, {long} of 2 000 characters or more, {characters} characters");
    for (by, sizes) in &mut by_kind {
        let sums = sizes.iter().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        let mut median = |key: fn(&(usize, usize)) -> usize| {
            sizes.sort_by_key(key);
            key(&sizes[sizes.len() / 2])
        };
        let (before, after) = (median(|size| size.0), median(|size| size.1));
        println!(
            "{by:>16}: {:4} condensed, median {before:6} to {after:6}, together {:8} to {:8}",
            sizes.len(),
            sums.0,
            sums.1
        );
    }
    // The repository's own sessions hold few kinds of verbose output.
    let kinds = if pal_testkit::data_dir().is_some() { 4 } else { 1 };
    assert!(by_kind.len() >= kinds, "{:?}", by_kind.keys());
}
