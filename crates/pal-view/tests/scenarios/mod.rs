//! The scenarios in `scenarios/`, run. Only this file knows how a request and a size are shown.

use std::fmt::Write;

use pal_model::{BlockType, Content, ContentBlock};
use pal_testkit::{scenarios, script};
use pal_view::{Estimator, PushOutcome, View, ViewScope};

use crate::common::{checked, lens, reminding_lens};

/// Runs every case of a file: derived at once, grown entry by entry, and always valid.
fn check(file: &str) {
    for case in scenarios(file).unwrap() {
        let entries = script(&case.log).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        for (name, expected) in &case.expected {
            let scope = if name == "whole" { ViewScope::Whole } else { ViewScope::Current };
            let mut lens = if name == "reminders" { reminding_lens(scope) } else { lens(scope) };
            if name == "size" {
                lens.estimator = Estimator::classic();
            }
            let mut view = View::new(lens);
            for entry in entries.iter().cloned() {
                assert_eq!(view.push(entry), PushOutcome::Added, "{}", case.name);
            }
            let derived = view.with_lens(view.lens().clone());
            let show = |view: &View| if name == "size" { size(view) } else { messages(view, &case.name) };
            assert_eq!(show(&view), *expected, "{} ({name})", case.name);
            assert_eq!(show(&derived), *expected, "{} ({name}), derived", case.name);
        }
    }
}

#[test]
fn normalization() {
    check("normalisation.md");
}

#[test]
fn decisions() {
    check("decisions.md");
}

#[test]
fn sizes() {
    check("sizes.md");
}

fn size(view: &View) -> String {
    let size = view.size();
    let anchor = size.anchor.map_or(String::from("none"), |anchor| anchor.response.to_string());
    format!("{}\nanchor: {anchor}\n", size.tokens)
}

fn messages(view: &View, name: &str) -> String {
    let request = checked(view).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut shown = String::new();
    for (opens, text, _) in request.pieces() {
        if let Some(role) = opens {
            writeln!(shown, "{}", role.name()).unwrap();
        }
        writeln!(shown, "  {}", block(&ContentBlock::parse(text.clone())).replace('\n', "\\n")).unwrap();
    }
    shown
}

fn block(block: &ContentBlock) -> String {
    let string = |name| block.string(name).unwrap_or_default();
    let id = block.tool_use_id().map_or("", |id| id.as_str());
    match block.kind() {
        BlockType::Text => format!("text: {}", string("text")),
        BlockType::Thinking => format!("thinking: {}", string("thinking")),
        BlockType::ToolUse => format!("call {id} {}", string("name")),
        BlockType::ToolResult => {
            let error = if block.field("is_error") == Some("true") { " (error)" } else { "" };
            format!("result {id}{error}: {}", content(&block.content()))
        }
        kind => kind.name().unwrap_or("unknown").to_owned(),
    }
}

fn content(content: &Content) -> String {
    let parts: Vec<String> =
        content.blocks().iter().map(|block| block.string("text").unwrap_or_default().into_owned()).collect();
    parts.join(" + ")
}
