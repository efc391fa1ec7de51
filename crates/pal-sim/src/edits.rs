//! What the provider does to a context before the model sees it: clearing old results and old thinking, on request.
//!
//! The client's history stays as it is and comes again whole with the next request; only what is rendered changes.

use std::borrow::Cow;

use pal_wire::Node;

/// An edit that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit<'a> {
    /// Old results of tools become a placeholder.
    ClearToolUses(ClearToolUses<'a>),
    /// Old thinking goes.
    ClearThinking {
        /// Turns whose thinking stays; none for all.
        keep: Option<u64>,
    },
    /// The whole context becomes a summary.
    Compact {
        /// Tokens of the prompt from which on it happens.
        trigger: u64,
        /// Whether the answer ends with the summary.
        pauses: bool,
        /// What the summary shall hold.
        instructions: Option<Cow<'a, str>>,
    },
}

/// How results are cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClearToolUses<'a> {
    trigger: Trigger,
    keep: u64,
    at_least: u64,
    exclude: Vec<Cow<'a, str>>,
    inputs: Inputs<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Tokens(u64),
    Uses(u64),
}

/// Whose inputs are cleared, too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inputs<'a> {
    Nobodys,
    Everybodys,
    Of(Vec<Cow<'a, str>>),
}

impl<'a> Edit<'a> {
    /// Reads an edit whose shape was checked.
    pub(crate) fn read(edit: Node<'a>) -> Option<Edit<'a>> {
        let value = |name: &str| {
            let value = edit.get(name).and_then(|part| part.get("value")).and_then(Node::integer);
            value.map(i64::unsigned_abs)
        };
        let kind = edit.get_text("type")?;
        if kind.is("clear_thinking_20251015") {
            let keeps_all = edit.get_text("keep").is_some()
                || edit.get("keep").and_then(|keep| keep.get_text("type")).is_some_and(|kind| kind.is("all"));
            return Some(Edit::ClearThinking { keep: (!keeps_all).then(|| value("keep").unwrap_or(1)) });
        }
        if kind.is("compact_20260112") {
            return Some(Edit::Compact {
                trigger: value("trigger").unwrap_or(150_000),
                pauses: edit.get("pause_after_compaction").is_some_and(Node::is_true),
                instructions: edit.get_text("instructions").map(|text| text.decoded()),
            });
        }
        let names = |node: Node<'a>| node.items().filter_map(Node::text).map(|name| name.decoded()).collect();
        let by_uses = edit.get("trigger").and_then(|trigger| trigger.get_text("type"));
        let by_uses = by_uses.is_some_and(|kind| kind.is("tool_uses"));
        let trigger = value("trigger").unwrap_or(100_000);
        Some(Edit::ClearToolUses(ClearToolUses {
            trigger: if by_uses { Trigger::Uses(trigger) } else { Trigger::Tokens(trigger) },
            keep: value("keep").unwrap_or(3),
            at_least: value("clear_at_least").unwrap_or(0),
            exclude: edit.get("exclude_tools").map(names).unwrap_or_default(),
            inputs: match edit.get("clear_tool_inputs") {
                Some(inputs) if inputs.is_true() => Inputs::Everybodys,
                Some(inputs) => Inputs::Of(names(inputs)),
                None => Inputs::Nobodys,
            },
        }))
    }
}
