//! Which requests are directives: one table of the words that each kind is recognised by.

use pal_model::Role;

use crate::Ask;
use pal_extract::{Heard, is_summary, without_reminders};

/// What a request asks for besides an ordinary answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    /// A summary of the conversation.
    Summary,
    /// Notes about the session, in a file.
    Notes,
    /// What is worth keeping beyond the session.
    Memory,
    /// A title of the session.
    Title,
    /// A line that says what is being done.
    Progress,
}

/// A directive that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What it asks for.
    pub directive: Directive,
    /// Its words.
    pub words: String,
    /// The message and the block that hold it; none if it came beside the messages.
    pub at: Option<(usize, usize)>,
}

/// One way to recognise a directive: of each group, one of its words must occur.
struct Rule {
    directive: Directive,
    groups: &'static [&'static [&'static str]],
}

/// How directives are recognised, ours and those of other agents. The first rule that fits wins, so the narrow ones
/// come first.
const RULES: &[Rule] = &[
    // Our own: it may quote anything, so nothing else that it says decides.
    Rule { directive: Directive::Summary, groups: &[&["your task is to write a summary of"]] },
    Rule {
        directive: Directive::Progress,
        groups: &[
            &["present tense", "present-tense", "present participle", "progress line", "progress update"],
            &["words", "word "],
            &["3-5", "3–5", "3 to 5", "three to five", "few words", "short", "one line"],
        ],
    },
    // What these ask for may have a title, a summary and much else in it.
    Rule {
        directive: Directive::Notes,
        groups: &[
            &["session notes", "notes file", "session memory", "session-memory", "session_notes"],
            &["update", "edit", "write", "fill", "keep"],
            &["section", "file", "template"],
        ],
    },
    Rule {
        directive: Directive::Memory,
        groups: &[
            &["memory", "memories"],
            &["extract", "durable", "worth keeping", "worth remembering", "save", "persist"],
            &[
                "directory",
                "folder",
                "topic file",
                "memory.md",
                "front matter",
                "frontmatter",
                "nothing to keep",
            ],
        ],
    },
    Rule {
        directive: Directive::Title,
        groups: &[
            &["title"],
            &["generate", "write", "create", "give", "come up with", "suggest", "name this"],
            &["session", "conversation", "chat", "coding task", "this message"],
            &["words", "short", "concise", "characters", "brief"],
        ],
    },
    Rule { directive: Directive::Summary, groups: &[&["context checkpoint compaction", "<state_snapshot>"]] },
    Rule {
        directive: Directive::Summary,
        groups: &[
            &["summary", "summarize", "summarise", "summarizing", "summarising", "recap", "compact "],
            &[
                "conversation so far",
                "the conversation",
                "our conversation",
                "this conversation",
                "conversation above",
                "conversation history",
                "conversation up to",
                "messages above",
                "chat history",
                "this session",
                "the session",
                "the messages",
                "earlier messages",
                "handoff",
                "context checkpoint",
            ],
            &[
                "detailed",
                "your task",
                "create a",
                "provide a",
                "write a",
                "produce",
                "comprehensive",
                "concise",
                "structured",
                "continue",
                "resume",
                "another llm",
                "tasked with",
                "do not call",
                "text only",
                "summarize the",
                "summarise the",
                "<summary>",
                "will be used",
                "please summar",
            ],
        ],
    },
    Rule {
        directive: Directive::Summary,
        groups: &[&["prompt for continuing our conversation", "prompt for continuing the conversation"]],
    },
];

/// A system prompt of at most this many bytes may itself be the directive; a longer one is an agent's.
const SYSTEM_MOST: usize = 6_000;
/// A directive says what it wants in its beginning or in its end; what lies between may be anything.
const LOOKED_AT: usize = 2_000;

/// The directive of a request, if it is one.
pub(crate) fn recognise(ask: &Ask<'_>) -> Option<Found> {
    if let Some(instructions) = &ask.compaction {
        return Some(Found { directive: Directive::Summary, words: instructions.to_string(), at: None });
    }
    let (index, message) = ask.messages.iter().enumerate().next_back()?;
    if message.role != Role::User {
        return None;
    }
    let words = message.blocks.iter().enumerate().rev().find_map(|(place, raw)| match Heard::of(raw) {
        Heard::Text(text) => {
            let text = without_reminders(&text);
            (!text.trim().is_empty()).then(|| (place, text.into_owned()))
        }
        _ => None,
    });
    let (place, words) = words?;
    if let Some(directive) = in_words(&words) {
        return Some(Found { directive, words, at: Some((index, place)) });
    }
    let system_bytes: usize = ask.system.iter().map(|raw| raw.len()).sum();
    if system_bytes > SYSTEM_MOST || !ask.tools.is_empty() {
        return None;
    }
    let system: String = ask
        .system
        .iter()
        .filter_map(|raw| match Heard::of(raw) {
            Heard::Text(text) => Some(text.into_owned() + "\n"),
            _ => None,
        })
        .collect();
    let directive = in_words(&system)?;
    Some(Found { directive, words: system, at: None })
}

/// The directive that some words are. A summary of an earlier part speaks of summaries and is none.
pub(crate) fn in_words(words: &str) -> Option<Directive> {
    if is_summary(words) {
        return None;
    }
    let head = words.get(..words.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail =
        words.get(words.ceil_char_boundary(words.len().saturating_sub(LOOKED_AT))..).unwrap_or_default();
    [head, tail].into_iter().find_map(|part| {
        let lower = part.to_lowercase();
        let fits =
            |rule: &&Rule| rule.groups.iter().all(|group| group.iter().any(|word| lower.contains(word)));
        RULES.iter().find(fits).map(|rule| rule.directive)
    })
}
