//! Every tool result of every recorded session.

use std::collections::{BTreeMap, HashMap};

use pal_context::{Asked, condense};
use pal_import::{Measure, Options, import};
use pal_model::{BlockType, Body, Entry, Text, array_items, fields, member, unescape};
use pal_testkit::session_files;

use crate::laws::check_laws;

/// Characters aimed at.
const MOST: usize = 4_000;

struct Thirds;

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// The command in the input of a call, whatever the agent calls it.
fn command(input: &str) -> Option<String> {
    let input = fields(input).ok()?;
    let value = member(&input, "command").or_else(|| member(&input, "cmd"))?;
    match unescape(value) {
        Some(command) => Some(command.into_owned()),
        None => Some(array_items(value).ok()?.into_iter().filter_map(unescape).collect::<Vec<_>>().join(" ")),
    }
}

/// Calls `each` with every result's tool, command and text.
fn each_result(mut each: impl FnMut(Asked<'_>, &str)) {
    for file in session_files() {
        let source = std::fs::read(&file).unwrap();
        let imported = import(&source, &Options { measure: &Thirds, strict: false }).unwrap();
        let log = Text::from(imported.log);
        let mut calls: HashMap<String, (String, Option<String>)> = HashMap::new();
        for line in log.lines() {
            let entry = Entry::parse(log.slice_of(line)).unwrap();
            let content = match &entry.body {
                Body::User(user) => &user.content,
                Body::Assistant(assistant) => &assistant.content,
                _ => continue,
            };
            for block in content.blocks() {
                let id = block.tool_use_id().map(|id| id.as_str().to_owned()).unwrap_or_default();
                if block.kind() == BlockType::ToolUse {
                    let name = block.string("name").unwrap_or_default().into_owned();
                    calls.insert(id, (name, block.field("input").and_then(command)));
                } else if block.kind() == BlockType::ToolResult {
                    let (tool, command) = calls.get(&id).cloned().unwrap_or_default();
                    let asked = Asked { tool: &tool, command: command.as_deref() };
                    let content = block.content();
                    let texts = content.blocks().iter().filter_map(|block| block.string("text"));
                    texts.for_each(|text| each(asked, &text));
                }
            }
        }
    }
}

#[test]
fn every_real_result_keeps_the_laws() {
    let mut by_kind: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    let (mut results, mut long, mut characters) = (0, 0, 0);
    each_result(|asked, text| {
        results += 1;
        let before = text.chars().count();
        characters += before;
        long += usize::from(before >= 2_000);
        check_laws(asked, text, MOST);
        if let Some(condensed) = condense(asked, text, MOST) {
            by_kind.entry(condensed.by).or_default().push((before, condensed.text.chars().count()));
        }
    });
    if results == 0 {
        return;
    }
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
    assert!(by_kind.len() >= 4, "{:?}", by_kind.keys());
}
