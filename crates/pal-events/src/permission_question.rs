//! Questions about permission: what a person sees before a call, and how they answer.

use std::sync::Arc;

use pal_model::ToolUseId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ASK_USER_QUESTION, QuestionAnswer, UserQuestion};

/// Asks a person about a call and returns the answer.
pub type PermissionAsker = Arc<dyn Fn(&PermissionQuestion) -> PermissionAnswer + Send + Sync>;

/// A question about a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PermissionQuestion {
    /// Name of the asking subagent; none for the main agent.
    pub agent: Option<String>,
    /// Id of the call.
    pub call: ToolUseId,
    /// Name of the tool.
    pub tool: String,
    /// Input of the call: a JSON object.
    pub input: String,
    /// Reason for asking.
    pub why: String,
    /// Rule that would allow it from now on; empty if none is offered.
    pub rule: String,
    /// Parts of the command or path to highlight.
    #[serde(default)]
    pub marks: Vec<ConsentMark>,
    /// Directory that relative paths of the call start in; empty if unknown.
    #[serde(default)]
    pub directory: String,
}

/// Answer of a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Allow once.
    Once,
    /// Allow everything that the rule covers for the rest of the session.
    Session,
    /// Deny, with an optional message for the model.
    No(Option<String>),
    /// Deny, with the full text for the model; the user was not asked.
    Refused(String),
    /// Allow, with changes by the program that answers.
    Approved(CallApproval),
    /// Answers to the questions of the call.
    Answered(Vec<QuestionAnswer>),
    /// There is no person to ask.
    #[serde(rename = "nobody")]
    Unavailable,
}

/// Approval of a call by a program.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallApproval {
    /// Input to run with: a JSON object; none to keep that of the call.
    pub input: Option<String>,
    /// Rules that allow calls for the rest of the session.
    pub rules: Vec<String>,
    /// Rules that deny calls for the rest of the session.
    pub denied: Vec<String>,
    /// Rules that ask about calls for the rest of the session.
    pub asked: Vec<String>,
    /// Name of the permission mode to change to.
    pub mode: Option<String>,
}

/// A highlighted part of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConsentMark {
    /// First byte in the command, or in the path of a file tool.
    pub start: usize,
    /// Byte after its last one.
    pub end: usize,
    /// Reason in kebab case (`pal_permissions::CommandMarkKind::name`).
    pub kind: String,
    /// True if the part is dangerous by itself.
    pub is_dangerous: bool,
    /// The reason as a sentence without a full stop.
    pub sentence: String,
}

/// A sentence about highlighted parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkSentence {
    /// True if the parts are dangerous by themselves.
    pub is_dangerous: bool,
    /// The sentence, with line numbers if the command has several lines.
    pub text: String,
}

impl PermissionQuestion {
    /// Command of a shell call.
    pub fn command(&self) -> Option<String> {
        if self.tool != "Bash" {
            return None;
        }
        let input: Value = serde_json::from_str(&self.input).ok()?;
        input.get("command").and_then(Value::as_str).map(String::from)
    }

    /// Questions that the call puts to the user, if it is one that asks.
    pub fn user_questions(&self) -> Option<Vec<UserQuestion>> {
        if self.tool != ASK_USER_QUESTION {
            return None;
        }
        let input: Value = serde_json::from_str(&self.input).ok()?;
        serde_json::from_value(input.get("questions")?.clone()).ok()
    }

    /// Sentences about all marks, dangerous ones first; equal sentences are merged.
    pub fn mark_sentences(&self) -> Vec<MarkSentence> {
        let command = self.command().unwrap_or_default();
        let mut told: Vec<(&ConsentMark, Vec<usize>)> = Vec::new();
        for mark in &self.marks {
            let line = command.get(..mark.start).unwrap_or_default().matches('\n').count() + 1;
            match told.iter_mut().find(|(known, _)| known.sentence == mark.sentence) {
                Some((_, lines)) if lines.contains(&line) => {}
                Some((_, lines)) => lines.push(line),
                None => told.push((mark, vec![line])),
            }
        }
        told.sort_by_key(|(mark, _)| !mark.is_dangerous);
        let place = |lines: &[usize]| {
            let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
            match lines.len() {
                _ if !command.contains('\n') => String::new(),
                1 => format!("line {}: ", numbers[0]),
                _ => format!("lines {}: ", numbers.join(", ")),
            }
        };
        told.into_iter()
            .map(|(mark, lines)| MarkSentence {
                is_dangerous: mark.is_dangerous,
                text: format!("{}{}", place(&lines), mark.sentence),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_about_several_lines_is_told_once_and_danger_first() {
        let mark = |start: usize, is_dangerous: bool, sentence: &str| ConsentMark {
            start,
            end: start + 1,
            kind: String::from("expansion"),
            is_dangerous,
            sentence: sentence.to_owned(),
        };
        let mut asked = PermissionQuestion {
            agent: None,
            call: "call".into(),
            tool: String::from("Bash"),
            input: String::from(r#"{"command":"$a\n$a $a\nrm x"}"#),
            why: String::new(),
            rule: String::new(),
            marks: vec![mark(0, false, "a"), mark(3, false, "a"), mark(6, false, "a"), mark(9, true, "b")],
            directory: String::new(),
        };
        let told = |asked: &PermissionQuestion| -> Vec<String> {
            asked.mark_sentences().into_iter().map(|sentence| sentence.text).collect()
        };
        assert_eq!(told(&asked), ["line 3: b", "lines 1, 2: a"]);
        asked.input = String::from(r#"{"command":"$a $a"}"#);
        assert_eq!(told(&asked), ["b", "a"], "one line needs no number");
    }
}
