//! What a person should look at before they allow a call, for whichever interface asks them.

use pal_permissions::CommandMark;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gate::Asked;

/// A part of a call that the person who is asked should look at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConsentMark {
    /// First byte in the command, or in the path of a file tool.
    pub start: usize,
    /// The byte behind its last one.
    pub end: usize,
    /// Reason in kebab case ([`pal_permissions::CommandMarkKind::name`]).
    pub kind: String,
    /// Whether the part can do harm by itself.
    pub is_dangerous: bool,
    /// The reason as a sentence without a full stop.
    pub sentence: String,
}

impl From<CommandMark> for ConsentMark {
    fn from(mark: CommandMark) -> ConsentMark {
        ConsentMark {
            start: mark.range.start,
            end: mark.range.end,
            kind: mark.kind.name().to_owned(),
            is_dangerous: mark.kind.is_dangerous(),
            sentence: mark.sentence,
        }
    }
}

/// Marks of a call in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkSentence {
    /// Whether the parts can do harm by themselves.
    pub is_dangerous: bool,
    /// The sentence, with the numbers of the lines that it is about where the command has several.
    pub text: String,
}

impl Asked {
    /// The command line of a call of the shell.
    pub fn command(&self) -> Option<String> {
        if self.tool != "Bash" {
            return None;
        }
        let input: Value = serde_json::from_str(&self.input).ok()?;
        input.get("command").and_then(Value::as_str).map(String::from)
    }

    /// All marks in words, the dangerous ones first; one that holds for several lines is told once.
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
        let mut asked = Asked {
            agent: None,
            call: "call".into(),
            tool: String::from("Bash"),
            input: String::from(r#"{"command":"$a\n$a $a\nrm x"}"#),
            why: String::new(),
            rule: String::new(),
            marks: vec![mark(0, false, "a"), mark(3, false, "a"), mark(6, false, "a"), mark(9, true, "b")],
        };
        let told = |asked: &Asked| -> Vec<String> {
            asked.mark_sentences().into_iter().map(|sentence| sentence.text).collect()
        };
        assert_eq!(told(&asked), ["line 3: b", "lines 1, 2: a"]);
        asked.input = String::from(r#"{"command":"$a $a"}"#);
        assert_eq!(told(&asked), ["b", "a"], "one line needs no number");
    }
}
