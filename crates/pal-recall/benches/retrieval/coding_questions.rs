//! Questions about recorded coding sessions, made from the logs by rules that know nothing of a ranking: what was the
//! error when, which command, why did we change, where did we decide.
//!
//! The evidence is a line of the log: the first line of an error, a command, what the model said before an edit, what
//! the user said. A question has words from beside the evidence, or a part of its words.

use pal_model::{LogEntry, SharedText};
use pal_recall::{PartSpeaker, entry_parts};

/// Questions of a category per repository.
const QUESTIONS_MAX: usize = 12;
/// Characters of a line that must be shown.
const EVIDENCE_CHARS: usize = 80;
/// Words of a question.
const WORDS_MAX: usize = 8;

/// A question about a log.
#[derive(Clone)]
pub(crate) struct CodingQuestion {
    pub(crate) category: &'static str,
    pub(crate) text: String,
    /// Text that must be shown.
    pub(crate) evidence: String,
}

/// Questions about the logs of a repository, at most [`QUESTIONS_MAX`] of each category, spread over the logs.
pub(crate) fn questions_about(logs: &[String]) -> Vec<CodingQuestion> {
    let mut all: Vec<CodingQuestion> = logs.iter().flat_map(|log| questions_of_log(log)).collect();
    all.sort_by_key(|question| question.category);
    let mut chosen = Vec::new();
    for same in all.chunk_by(|one, other| one.category == other.category) {
        let step = same.len().div_ceil(QUESTIONS_MAX).max(1);
        chosen.extend(same.iter().step_by(step).cloned());
    }
    chosen
}

/// Readable texts of a log with their speakers, in order.
pub(crate) fn texts_of_log(log: &str) -> Vec<(PartSpeaker, String)> {
    let text = SharedText::from(log.to_owned());
    let entries = text.lines().filter_map(|line| LogEntry::parse(text.slice_of(line)).ok());
    let parts = entries.flat_map(|entry| entry_parts(&entry));
    parts.map(|part| (part.speaker, part.text)).collect()
}

fn questions_of_log(log: &str) -> Vec<CodingQuestion> {
    let texts = texts_of_log(log);
    let mut found = Vec::new();
    for (at, (speaker, text)) in texts.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &texts[before]);
        let asked = match speaker {
            PartSpeaker::Person => decision(text),
            PartSpeaker::Call(_) => {
                let said = before.filter(|(speaker, _)| *speaker == PartSpeaker::Model);
                said.and_then(|(_, said)| command(text, said).or_else(|| reason(text, said)))
            }
            PartSpeaker::Tool => before.and_then(|(_, call)| error(text, call)),
            _ => None,
        };
        found.extend(asked);
    }
    found
}

/// `what was the error when` with the words of the call; evidence is the first line that names an error.
fn error(result: &str, call: &str) -> Option<CodingQuestion> {
    let names_error = |line: &&str| {
        let line = line.to_lowercase();
        ["error:", "error[", "fatal:", "panicked", "failed:", "exception"]
            .iter()
            .any(|word| line.contains(word))
    };
    let line = result.lines().take(60).find(names_error)?;
    let called =
        field(call, "description").or_else(|| field(call, "command")).or_else(|| field(call, "cmd"))?;
    question("error", "what was the error when", &content_words(called, 1), line)
}

/// `which command` with what the model said before it.
fn command(call: &str, said: &str) -> Option<CodingQuestion> {
    let command = field(call, "command").or_else(|| field(call, "cmd"))?;
    question("command", "which command did we use:", &content_words(first_line(said), 1), command)
}

/// `why did we change` with the name of a file and some words of what the model said before the edit.
fn reason(call: &str, said: &str) -> Option<CodingQuestion> {
    let path = field(call, "file_path").or_else(|| field(call, "path"))?;
    let has_change = ["old_string:", "new_string:", "content:"].iter().any(|name| call.contains(name));
    let name = path.rsplit('/').next().filter(|_| has_change)?;
    let mut words = vec![name.to_owned()];
    words.extend(content_words(said, 3).into_iter().take(3));
    question("reason", "why did we change", &words, first_line(said))
}

/// `where did we decide` with every second word of what the user said.
fn decision(said: &str) -> Option<CodingQuestion> {
    let line = first_line(said);
    let is_prose =
        (60..600).contains(&said.len()) && !said.trim_start().starts_with(['<', '#', '[', '/', '{']);
    question("decision", "where did we decide", &content_words(said, 2), line).filter(|_| is_prose)
}

fn question(category: &'static str, opening: &str, words: &[String], line: &str) -> Option<CodingQuestion> {
    let evidence: String = line.trim().chars().take(EVIDENCE_CHARS).collect();
    let is_telling = words.len() >= 3 && evidence.chars().count() >= 20;
    is_telling.then(|| CodingQuestion {
        category,
        text: format!("{opening} {}", words[..words.len().min(WORDS_MAX)].join(" ")),
        evidence,
    })
}

/// Value of a field of a call, first line.
fn field<'a>(call: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("{name}: ");
    call.lines().find_map(|line| line.strip_prefix(&start)).map(str::trim).filter(|value| !value.is_empty())
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

/// Every `step`th word of more than three letters.
fn content_words(text: &str, step: usize) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '.');
    let words = words.map(|word| word.trim_matches('.')).filter(|word| word.chars().count() > 3);
    words.step_by(step).take(WORDS_MAX).map(str::to_owned).collect()
}
