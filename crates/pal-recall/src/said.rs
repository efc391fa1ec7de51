//! What an entry says, part by part, and who says it.

use std::fmt;

use pal_model::{Block, BlockType, Body, Content, Entry, Origin, fields, unescape};

/// Letters of the name of a tool.
const NAME_MOST: usize = 64;

/// Who said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Who {
    /// A person.
    Person,
    /// The model.
    Model,
    /// The model, calling this tool.
    Call(String),
    /// A tool.
    Tool,
    /// A command, into a file of its own.
    Output,
    /// The program, for the model.
    Program,
    /// A summary of what was said before.
    Summary,
}

impl Who {
    /// Whether somebody said it: people and models speak, the others return, quote and put in.
    pub(crate) fn speaks(&self) -> bool {
        matches!(self, Who::Person | Who::Model)
    }

    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Who::Person => "user",
            Who::Model => "assistant",
            Who::Call(_) => "call",
            Who::Tool => "tool",
            Who::Output => "output",
            Who::Program => "program",
            Who::Summary => "summary",
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Person => formatter.write_str("the user"),
            Who::Model => formatter.write_str("the model"),
            Who::Call(tool) => write!(formatter, "a call of {tool}"),
            Who::Tool => formatter.write_str("a tool"),
            Who::Output => formatter.write_str("the output of a command"),
            Who::Program => formatter.write_str("the program"),
            Who::Summary => formatter.write_str("a summary"),
        }
    }
}

/// A part of what an entry says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// Who says it.
    pub who: Who,
    /// The words, as they are.
    pub text: String,
}

/// What an entry says, in its order; parts without words are none.
pub fn said(entry: &Entry) -> Vec<Said> {
    match &entry.body {
        Body::User(user) => match user.origin {
            Origin::Person => parts(&Who::Person, &user.content),
            Origin::Tool | Origin::Synthetic => parts(&Who::Tool, &user.content),
            Origin::Agent => parts(&Who::Program, &user.content),
        },
        Body::Assistant(assistant) => parts(&Who::Model, &assistant.content),
        Body::Attachment(attachment) => parts(&Who::Program, &attachment.content),
        Body::Boundary(boundary) => parts(&Who::Summary, &boundary.summary),
        _ => Vec::new(),
    }
}

fn parts(who: &Who, content: &Content) -> Vec<Said> {
    let said = content.blocks().iter().filter_map(|block| part(who, block));
    said.filter(|said| !said.text.trim().is_empty()).collect()
}

fn part(who: &Who, block: &Block) -> Option<Said> {
    match block.kind() {
        BlockType::Text => Some(Said { who: who.clone(), text: block.string("text")?.into_owned() }),
        BlockType::ToolUse => {
            // The name stands in sentences of ours, whatever it holds.
            let is_part = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
            let tool = block.string("name")?.chars().filter(is_part).take(NAME_MOST).collect();
            Some(Said { text: called(block), who: Who::Call(tool) })
        }
        BlockType::ToolResult => {
            let content = block.content();
            let texts = content.blocks().iter().filter_map(|block| Some(block.string("text")?.into_owned()));
            // Some records have results in messages of people; a result is a tool's word all the same.
            Some(Said { who: Who::Tool, text: texts.collect::<Vec<_>>().join("\n") })
        }
        _ => None,
    }
}

/// The input of a call with its texts as they are, not as JSON spells them: what was written into a file is found by its lines.
fn called(block: &Block) -> String {
    let input = block.field("input").unwrap_or_default();
    let Ok(fields) = fields(input) else { return input.to_owned() };
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
        let entry = Entry::parse(pal_model::Text::from(line.as_str())).unwrap();
        said(&entry).into_iter().map(|said| (said.who.to_string(), said.text)).collect()
    }

    #[test]
    fn what_is_said_comes_with_who_says_it() {
        let is = |who: &str, text: &str| (who.to_owned(), text.to_owned());
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
