//! Readable parts of an entry, with their speakers.

use std::fmt;

use pal_model::{
    BlockType, Content, ContentBlock, EntryBody, LogEntry, MessageOrigin, object_fields, unescape,
};

/// Last sentence of an answer with passages.
pub(crate) const ANSWER_END: &str = "An entry is shown whole with `entry` set to its id.";
/// Advice of an answer without passages.
pub(crate) const EMPTY_ADVICE: &str = "Try fewer or other words: names, paths, words of an error message.";

/// Weights of texts by [`PartSpeaker::kind`]: results and injected text, users, models, calls.
pub(crate) const KIND_WEIGHTS: [f32; 4] = [1.0, 1.2, 1.2, 1.0];
/// Kind of the texts of users.
pub(crate) const PERSON_KIND: u8 = 1;

/// Maximum characters of a tool name.
const NAME_CHARS_MAX: usize = 64;

/// Origin of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartSpeaker {
    /// The user.
    Person,
    /// Text of the model.
    Model,
    /// A call of this tool by the model.
    Call(String),
    /// Result of a tool.
    Tool,
    /// Command output in a separate file.
    Output,
    /// Text that the program injected.
    Program,
    /// Summary of earlier messages.
    Summary,
}

impl PartSpeaker {
    /// Kind of text in the index, whose weight is in [`KIND_WEIGHTS`].
    pub(crate) fn kind(&self) -> u8 {
        match self {
            PartSpeaker::Person => PERSON_KIND,
            PartSpeaker::Model => 2,
            PartSpeaker::Call(_) => 3,
            _ => 0,
        }
    }

    /// Stable identifier for programs.
    pub fn name(&self) -> &'static str {
        match self {
            PartSpeaker::Person => "user",
            PartSpeaker::Model => "assistant",
            PartSpeaker::Call(_) => "call",
            PartSpeaker::Tool => "tool",
            PartSpeaker::Output => "output",
            PartSpeaker::Program => "program",
            PartSpeaker::Summary => "summary",
        }
    }
}

impl fmt::Display for PartSpeaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartSpeaker::Person => formatter.write_str("the user"),
            PartSpeaker::Model => formatter.write_str("the model"),
            PartSpeaker::Call(tool) => write!(formatter, "a call of {tool}"),
            PartSpeaker::Tool => formatter.write_str("a tool"),
            PartSpeaker::Output => formatter.write_str("the output of a command"),
            PartSpeaker::Program => formatter.write_str("the program"),
            PartSpeaker::Summary => formatter.write_str("a summary"),
        }
    }
}

/// A readable part of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPart {
    /// Speaker.
    pub speaker: PartSpeaker,
    /// Text, verbatim.
    pub text: String,
}

impl EntryPart {
    /// Returns true for a call of the recall tool and for its answer: a search must not find itself.
    pub(crate) fn is_recall(&self) -> bool {
        match &self.speaker {
            PartSpeaker::Call(tool) => {
                let tool = tool.to_ascii_lowercase();
                tool == "recall" || tool.ends_with("__recall")
            }
            PartSpeaker::Tool => self.text.contains(ANSWER_END) || self.text.contains(EMPTY_ADVICE),
            _ => false,
        }
    }
}

/// Readable parts of an entry, in order. Skips empty ones.
pub fn entry_parts(entry: &LogEntry) -> Vec<EntryPart> {
    match &entry.body {
        EntryBody::User(user) => match user.origin {
            MessageOrigin::Person => parts(&PartSpeaker::Person, &user.content),
            MessageOrigin::Tool | MessageOrigin::Synthetic => parts(&PartSpeaker::Tool, &user.content),
            MessageOrigin::Agent => parts(&PartSpeaker::Program, &user.content),
        },
        EntryBody::Assistant(assistant) => parts(&PartSpeaker::Model, &assistant.content),
        EntryBody::Attachment(attachment) => parts(&PartSpeaker::Program, &attachment.content),
        EntryBody::Boundary(boundary) => parts(&PartSpeaker::Summary, &boundary.summary),
        _ => Vec::new(),
    }
}

fn parts(speaker: &PartSpeaker, content: &Content) -> Vec<EntryPart> {
    let parts = content.blocks().iter().filter_map(|block| part(speaker, block));
    parts.filter(|part| !part.text.trim().is_empty()).collect()
}

fn part(speaker: &PartSpeaker, block: &ContentBlock) -> Option<EntryPart> {
    match block.kind() {
        BlockType::Text => {
            Some(EntryPart { speaker: speaker.clone(), text: block.string("text")?.into_owned() })
        }
        BlockType::ToolUse => {
            // The name appears in our own sentences, so restrict its characters.
            let is_part = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
            let tool = block.string("name")?.chars().filter(is_part).take(NAME_CHARS_MAX).collect();
            Some(EntryPart { text: call_text(block), speaker: PartSpeaker::Call(tool) })
        }
        BlockType::ToolResult => {
            let content = block.content();
            let texts = content.blocks().iter().filter_map(|block| Some(block.string("text")?.into_owned()));
            // Some records put results into user messages.
            Some(EntryPart { speaker: PartSpeaker::Tool, text: texts.collect::<Vec<_>>().join("\n") })
        }
        _ => None,
    }
}

/// Input of a call with unescaped strings, so that written file content is found by its lines.
fn call_text(block: &ContentBlock) -> String {
    let input = block.field("input").unwrap_or_default();
    let Ok(fields) = object_fields(input) else { return input.to_owned() };
    let lines = fields.iter().map(|(name, value)| {
        let text = unescape(value);
        format!("{name}: {}", text.as_deref().unwrap_or(value))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, content: &str) -> Vec<(String, String)> {
        let line = format!(
            r#"{{"v":1,"id":"01999999-0000-7000-8000-000000000001","parent":null,"at":"2026-11-16T12:00:00.000Z","kind":{kind},"content":{content}}}"#
        );
        let entry = LogEntry::parse(pal_model::SharedText::from(line.as_str())).unwrap();
        entry_parts(&entry).into_iter().map(|part| (part.speaker.to_string(), part.text)).collect()
    }

    #[test]
    fn parts_carry_their_speaker() {
        let is = |speaker: &str, text: &str| (speaker.to_owned(), text.to_owned());
        assert_eq!(of(r#""user""#, r#""hello""#), [is("the user", "hello")]);
        assert_eq!(of(r#""user","origin":"tool""#, r#""  ""#), []);
        assert_eq!(
            of(
                r#""assistant""#,
                r#"[{"type":"text","text":"I write."},{"type":"tool_use","id":"a","name":"Write","input":{"path":"a.rs","content":"one\ntwo","n":3}}]"#
            ),
            [is("the model", "I write."), is("a call of Write", "path: a.rs\ncontent: one\ntwo\nn: 3")]
        );
        assert_eq!(
            of(
                r#""user","origin":"tool""#,
                r#"[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":"two"}]}]"#
            ),
            [is("a tool", "one\ntwo")]
        );
    }
}
