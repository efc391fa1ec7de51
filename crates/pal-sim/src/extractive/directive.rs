//! Recognition of directives by tables of words.

use pal_model::Role;

use crate::ModelPrompt;
use pal_extract::{MessageBlock, is_summary, without_reminders};

/// A task that the extractive model can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtractionDirective {
    /// A summary of the conversation.
    Summary,
    /// Session notes, in a file.
    Notes,
    /// Memories to keep beyond the session.
    Memory,
    /// A session title.
    Title,
    /// A progress line.
    Progress,
}

/// A recognized directive.
#[derive(Clone, Debug)]
pub(crate) struct DirectiveMatch {
    /// Kind of directive.
    pub directive: ExtractionDirective,
    /// Text of the directive.
    pub words: String,
    /// Message and block index; `None` if it is not part of the messages.
    pub at: Option<(usize, usize)>,
}

/// A rule that matches if one word of each group occurs.
struct DirectiveRule {
    directive: ExtractionDirective,
    groups: &'static [&'static [&'static str]],
}

/// Rules for our own and other agents' directives. The first match wins, so narrow rules come first.
const RULES: &[DirectiveRule] = &[
    // Our own directive may quote anything, so this phrase alone decides.
    DirectiveRule {
        directive: ExtractionDirective::Summary,
        groups: &[&["your task is to write a summary of"]],
    },
    DirectiveRule {
        directive: ExtractionDirective::Progress,
        groups: &[
            &["present tense", "present-tense", "present participle", "progress line", "progress update"],
            &["words", "word "],
            &["3-5", "3–5", "3 to 5", "three to five", "few words", "short", "one line"],
        ],
    },
    // These may mention a title, a summary and more.
    DirectiveRule {
        directive: ExtractionDirective::Notes,
        groups: &[
            &["session notes", "notes file", "session memory", "session-memory", "session_notes"],
            &["update", "edit", "write", "fill", "keep"],
            &["section", "file", "template"],
        ],
    },
    DirectiveRule {
        directive: ExtractionDirective::Memory,
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
    DirectiveRule {
        directive: ExtractionDirective::Title,
        groups: &[
            &["title"],
            &["generate", "write", "create", "give", "come up with", "suggest", "name this"],
            &["session", "conversation", "chat", "coding task", "this message"],
            &["words", "short", "concise", "characters", "brief"],
        ],
    },
    DirectiveRule {
        directive: ExtractionDirective::Summary,
        groups: &[&["context checkpoint compaction", "<state_snapshot>"]],
    },
    DirectiveRule {
        directive: ExtractionDirective::Summary,
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
    DirectiveRule {
        directive: ExtractionDirective::Summary,
        groups: &[&["prompt for continuing our conversation", "prompt for continuing the conversation"]],
    },
];

/// Maximum bytes of a system prompt that may itself be the directive; longer ones belong to agents.
const SYSTEM_MAX: usize = 6_000;
/// Bytes examined at the start and at the end of a directive.
const LOOKED_AT: usize = 2_000;

/// Recognizes the directive of a request.
pub(crate) fn recognize_directive(ask: &ModelPrompt<'_>) -> Option<DirectiveMatch> {
    if let Some(instructions) = &ask.compaction {
        return Some(DirectiveMatch {
            directive: ExtractionDirective::Summary,
            words: instructions.to_string(),
            at: None,
        });
    }
    let (index, message) = ask.messages.iter().enumerate().next_back()?;
    if message.role != Role::User {
        return None;
    }
    let words =
        message.blocks.iter().enumerate().rev().find_map(|(place, raw)| match MessageBlock::parse(raw) {
            MessageBlock::Text(text) => {
                let text = without_reminders(&text);
                (!text.trim().is_empty()).then(|| (place, text.into_owned()))
            }
            _ => None,
        });
    let (place, words) = words?;
    if let Some(directive) = directive_in_text(&words) {
        return Some(DirectiveMatch { directive, words, at: Some((index, place)) });
    }
    let system_bytes: usize = ask.system.iter().map(|raw| raw.len()).sum();
    if system_bytes > SYSTEM_MAX || !ask.tools.is_empty() {
        return None;
    }
    let system: String = ask
        .system
        .iter()
        .filter_map(|raw| match MessageBlock::parse(raw) {
            MessageBlock::Text(text) => Some(text.into_owned() + "\n"),
            _ => None,
        })
        .collect();
    let directive = directive_in_text(&system)?;
    Some(DirectiveMatch { directive, words: system, at: None })
}

/// Recognizes a directive in a text. Summaries of earlier parts mention summaries but are not directives.
pub(crate) fn directive_in_text(words: &str) -> Option<ExtractionDirective> {
    if is_summary(words) {
        return None;
    }
    let head = words.get(..words.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail =
        words.get(words.ceil_char_boundary(words.len().saturating_sub(LOOKED_AT))..).unwrap_or_default();
    [head, tail].into_iter().find_map(|part| {
        let lower = part.to_lowercase();
        let fits = |rule: &&DirectiveRule| {
            rule.groups.iter().all(|group| group.iter().any(|word| lower.contains(word)))
        };
        RULES.iter().find(fits).map(|rule| rule.directive)
    })
}
