//! What the recorded agent uses after a compaction: words that it writes, and files that it reads and edits.

use pal_context::VisibleCall;
use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, MessageOrigin, ToolKind};
use pal_view::View;
use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::comparison::RecordedFileTouch;
use crate::replay::texts;
use pal_extract::distinctive_words;

/// Calls after a compaction in which a fact counts as used next.
pub(crate) const NEXT_CALLS: usize = 30;
/// Calls after a compaction in which a file counts as used next.
pub(crate) const NEXT_FILE_CALLS: usize = 10;

/// Distinctive words.
pub(crate) type WordSet = FxHashSet<String>;

/// The part of a recording that follows a compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextUse {
    /// Words that the agent writes within the next calls, less those that the user names.
    pub(crate) words: WordSet,
    /// All words that the agent writes until the next compaction.
    pub(crate) words_until_next: WordSet,
    /// Calls until the agent edits or writes a file; none if it never does.
    pub(crate) calls_to_edit: Option<u64>,
    /// Calls that follow.
    pub(crate) calls: usize,
}

impl NextUse {
    /// Use behind the first `from` entries of a recording.
    pub(crate) fn after(entries: &[LogEntry], from: usize) -> NextUse {
        let mut next = NextUse::default();
        let mut named = WordSet::default();
        for entry in entries.get(from..).unwrap_or_default() {
            match &entry.body {
                EntryBody::Boundary(boundary) if boundary.has_summary() => break,
                EntryBody::Request(request) if request.source.is_conversation() => next.calls += 1,
                EntryBody::User(user) if user.origin == MessageOrigin::Person && next.calls <= NEXT_CALLS => {
                    texts(&user.content).iter().for_each(|text| add_words(text, &mut named));
                }
                EntryBody::Assistant(assistant) => {
                    for block in assistant.content.blocks() {
                        add_block_words(block, &mut next.words_until_next);
                        if next.calls <= NEXT_CALLS {
                            add_block_words(block, &mut next.words);
                        }
                        if next.calls_to_edit.is_none() && is_edit(block) {
                            next.calls_to_edit = Some(next.calls as u64);
                        }
                    }
                }
                _ => {}
            }
        }
        next.words.retain(|word| !named.contains(word));
        next
    }
}

/// Number of conversation requests among entries.
pub(crate) fn count_calls(entries: &[LogEntry]) -> usize {
    let is_call = |entry: &&LogEntry| matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation());
    entries.iter().filter(is_call).count()
}

/// File touches in the calls from `call` on that need content shown before it and by nothing since.
pub(crate) fn touches_after(
    touches: &[RecordedFileTouch],
    call: usize,
    count: usize,
) -> impl Iterator<Item = &RecordedFileTouch> {
    let from = touches.partition_point(|touch| touch.call < call);
    let next = touches.get(from..).unwrap_or_default().iter();
    next.take_while(move |touch| touch.call < call + count)
        .filter(move |touch| !touch.earlier.is_empty() && touch.earlier.iter().all(|copy| copy.call < call))
}

/// Distinctive words that a view shows.
pub(crate) fn visible_words(view: &View) -> WordSet {
    let mut words = WordSet::default();
    for (_, blocks) in view.visible_blocks() {
        blocks.iter().for_each(|block| add_block_words(block, &mut words));
    }
    words
}

/// Text that a view shows, with single spaces.
pub(crate) fn visible_text(view: &View) -> String {
    let mut text = String::new();
    for (_, blocks) in view.visible_blocks() {
        let content = blocks.into_iter().collect();
        for part in texts(&content) {
            part.split_whitespace().for_each(|word| {
                text.push_str(word);
                text.push(' ');
            });
        }
    }
    text
}

/// Adds the distinctive words of a text. Words in capitals alone are emphasis.
pub(crate) fn add_words(text: &str, words: &mut WordSet) {
    let is_emphasis =
        |word: &str| word.chars().all(|letter| letter.is_uppercase() || matches!(letter, '-' | '/'));
    for word in distinctive_words(text) {
        if !words.contains(word) && !is_emphasis(word) {
            words.insert(word.to_owned());
        }
    }
}

/// Adds the distinctive words of a block: of its text, of a call's values, of a result.
pub(crate) fn add_block_words(block: &ContentBlock, words: &mut WordSet) {
    match block.kind() {
        BlockType::ToolUse => {
            let input = block.field("input").and_then(|input| serde_json::from_str::<Value>(input).ok());
            input.iter().for_each(|input| add_value_words(input, words));
        }
        BlockType::ToolResult => {
            let content = block.content();
            texts(&content).iter().for_each(|text| add_words(text, words));
        }
        BlockType::Thinking | BlockType::RedactedThinking => {}
        _ => {
            for member in ["text", "content"] {
                if let Some(text) = block.string(member) {
                    add_words(&text, words);
                }
            }
        }
    }
}

fn add_value_words(value: &Value, words: &mut WordSet) {
    match value {
        Value::String(text) => add_words(text, words),
        Value::Array(items) => items.iter().for_each(|item| add_value_words(item, words)),
        Value::Object(members) => members.values().for_each(|member| add_value_words(member, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_edit(block: &ContentBlock) -> bool {
    block.kind() == BlockType::ToolUse
        && VisibleCall::read(block)
            .is_some_and(|call| matches!(call.kind, Some(ToolKind::Edit | ToolKind::Write)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_testkit::script;

    #[test]
    fn words_that_the_user_names_are_not_used_next() {
        let log = "user: go\nsent\nmodel m1: see src/one.rs\nuser: now src/two.rs\nsent\n\
                   model m2: call c1 Edit {\"file_path\":\"src/two.rs\",\"old_string\":\"parse_line\"}\nresult c1: done\n";
        let entries = script(log).unwrap();
        let at = entries.iter().position(|entry| matches!(entry.body, EntryBody::Assistant(_))).unwrap();
        let next = NextUse::after(&entries, at + 1);
        let mut words: Vec<&str> = next.words.iter().map(String::as_str).collect();
        words.sort_unstable();
        assert_eq!(words, ["parse_line"], "names of members are no words, and the path was named");
        assert_eq!((next.calls, next.calls_to_edit), (1, Some(1)));
    }
}
