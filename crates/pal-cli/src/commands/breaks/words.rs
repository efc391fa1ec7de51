//! Causes in words that a user understands.

use pal_model::{BreakCause, Change};
use smol_str::SmolStr;

use crate::table::{duration, harmless, thousands};

/// A cause in one sentence.
pub(super) fn in_words(cause: &BreakCause) -> String {
    let plain = |text: &str| String::from(text);
    match cause {
        BreakCause::Expected { what } => expected(what),
        BreakCause::Model { from, to } => {
            format!("another model was asked: {} instead of {}", harmless(to), harmless(from))
        }
        BreakCause::Tool { name, change } => format!("tool `{}` {}", harmless(name), became(*change)),
        BreakCause::Speed => plain("another speed was asked for"),
        BreakCause::Section { name, change, characters } => {
            let by = longer(*characters);
            format!("section `{}` of the system prompt {}{by}", harmless(name), became(*change))
        }
        BreakCause::Scopes => plain("the scopes for which the prompt is cached changed"),
        BreakCause::Betas { added, removed } => betas(added, removed),
        BreakCause::Thinking => plain("the setting for thinking changed"),
        BreakCause::Effort => plain("the effort that the model shall make changed"),
        BreakCause::ToolChoice => plain("which tools the model may call changed"),
        BreakCause::Edits => plain("what the provider is asked to clear or to edit changed"),
        BreakCause::Member { name } => format!("`{}` of the request changed", harmless(name)),
        BreakCause::Message { message, block, change, characters } => {
            let by = longer(*characters);
            format!(
                "block {} of message {}, which was sent before, {}{by}",
                block + 1,
                message + 1,
                became(*change)
            )
        }
        BreakCause::Lifetimes => plain("the time for which the prompt is cached changed"),
        BreakCause::LookBack { blocks } => format!(
            "{} blocks came since the last mark: more than the provider looks back",
            thousands(*blocks)
        ),
        BreakCause::Unmarked => plain("nothing was marked for the cache, or nothing long enough"),
        BreakCause::Expired { idle_ms, lifetime_ms } => {
            format!("idle for {}, cached for {}", duration(*idle_ms), duration(*lifetime_ms))
        }
        BreakCause::Unseen => {
            plain("nothing in the transcript changed; the system prompt and tools are not in it")
        }
        BreakCause::Provider => plain("nothing of ours changed: the provider lost it"),
    }
}

/// What a group of causes is called.
pub(super) fn title(cause_name: &str) -> &str {
    match cause_name {
        "expired" => "time passed",
        "model" => "another model",
        "unseen" => "not in the transcript",
        "provider" => "the provider",
        "look_back" => "too many blocks at once",
        "tool_choice" => "tool choice",
        "member" => "request member",
        other => other,
    }
}

fn expected(what: &str) -> String {
    let why = match what {
        "boundary" => "the conversation was compacted",
        "clear" => "old tool results were cleared",
        "provider_clear" => "the provider cleared old tool results",
        "cache_edit" => "old tool results were deleted from the cache",
        "fold" => "a stretch was folded",
        "snip" => "redundant stretches were hidden",
        "strip" => "media were taken out",
        "spill" => "a text that had been sent went to disk",
        "undo" => "a decision was taken back",
        "rewind" => "the conversation went on from an earlier message",
        "compact" => "a summary was asked for by a request of its own",
        other => return format!("expected: {}", harmless(other).replace('_', " ")),
    };
    format!("expected: {why}")
}

fn became(change: Change) -> &'static str {
    match change {
        Change::Added => "is new",
        Change::Removed => "is gone",
        Change::Moved => "stands elsewhere",
        Change::Changed => "changed",
    }
}

/// By how many characters something is longer, as the end of a sentence.
fn longer(characters: i64) -> String {
    let count = characters.unsigned_abs();
    let noun = if count == 1 { "character" } else { "characters" };
    match characters {
        0 => String::new(),
        1.. => format!(": {} {noun} longer", thousands(count)),
        _ => format!(": {} {noun} shorter", thousands(count)),
    }
}

fn betas(added: &[SmolStr], removed: &[SmolStr]) -> String {
    let list = |names: &[SmolStr]| names.iter().map(|name| harmless(name)).collect::<Vec<_>>().join(", ");
    match (added, removed) {
        ([], removed) => format!("beta headers are no longer sent: {}", list(removed)),
        (added, []) => format!("beta headers are new: {}", list(added)),
        (added, removed) => format!("beta headers changed: {} instead of {}", list(added), list(removed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_sentences() {
        let section =
            BreakCause::Section { name: "environment".into(), change: Change::Changed, characters: 12 };
        let message = BreakCause::Message { message: 3, block: 0, change: Change::Removed, characters: -1 };
        let said = [
            section,
            message,
            BreakCause::Expired { idle_ms: 430_000, lifetime_ms: 300_000 },
            BreakCause::Tool { name: "Re\x1bad".into(), change: Change::Moved },
            BreakCause::Betas { added: vec!["a-1".into()], removed: Vec::new() },
            BreakCause::Expected { what: "boundary".into() },
            BreakCause::Expected { what: "a_later_kind".into() },
        ]
        .map(|cause| in_words(&cause));
        assert_eq!(
            said,
            [
                "section `environment` of the system prompt changed: 12 characters longer",
                "block 1 of message 4, which was sent before, is gone: 1 character shorter",
                "idle for 7 min 10 s, cached for 5 min",
                "tool `Re·ad` stands elsewhere",
                "beta headers are new: a-1",
                "expected: the conversation was compacted",
                "expected: a later kind",
            ]
        );
    }
}
