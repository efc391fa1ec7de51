//! Answer to a memory directive: user statements about themselves and the way of working, as a topic file
//! with front matter and an index line, or a note that there is nothing to keep.

use std::borrow::Cow;

use super::file_tools::{FileTool, path_in};
use super::session_titles::title;
use crate::{ModelOutput, OutputBlock};
use pal_extract::ConversationFacts;
use pal_extract::{sentences, truncate};

/// A memory kind and the words that indicate it.
struct MemoryCategory {
    name: &'static str,
    words: &'static [&'static str],
}

/// Indicators by kind; the first match wins.
const KINDS: [MemoryCategory; 4] = [
    MemoryCategory {
        name: "feedback",
        words: &[
            "always ",
            "never ",
            "don't ",
            "do not ",
            "prefer",
            "from now on",
            "please use",
            "instead of",
            "stop ",
            "make sure",
        ],
    },
    MemoryCategory {
        name: "user",
        words: &["i am a", "i'm a", "i work", "my role", "my team", "i know", "i like"],
    },
    MemoryCategory {
        name: "project",
        words: &["we use", "we decided", "deadline", "release on", "our ", "remember"],
    },
    MemoryCategory { name: "reference", words: &["http://", "https://", "wiki", "dashboard", "ticket"] },
];

/// Maximum number of sentences kept.
const KEPT_MAX: usize = 12;

/// Answers a memory directive.
pub(crate) fn answer(
    facts: &ConversationFacts,
    directive: &str,
    tools: &[Cow<'_, str>],
    room: usize,
) -> ModelOutput {
    let Some((kind, kept)) = find_memory(facts) else {
        return ModelOutput { blocks: vec![OutputBlock::Text("Nothing to keep.".to_owned())], stop: None };
    };
    let name = slug(&title(facts));
    let description = truncate(&kept.join(" ").split_whitespace().collect::<Vec<_>>().join(" "), 110);
    let mut topic = format!("---\nname: {name}\ndescription: {}\ntype: {kind}\n", plain(&description));
    if let Some(date) = date(directive) {
        topic.push_str(&format!("modified: {date}\n"));
    }
    topic.push_str("---\n\n");
    for sentence in &kept {
        topic.push_str(&format!("- {}\n", truncate(sentence, (room / (2 * kept.len())).max(80))));
    }
    let folder = path_in(directive, |word| !word.ends_with(".md") && word.contains("memor")).or_else(|| {
        path_in(directive, |word| word.ends_with("/MEMORY.md"))
            .and_then(|path| path.strip_suffix("/MEMORY.md"))
    });
    match (folder, FileTool::writer(tools)) {
        (Some(folder), Some(writer)) => {
            let folder = folder.trim_end_matches('/');
            let line = format!("- [{name}]({name}.md): {}", truncate(&plain(&description), 100));
            let mut index: Vec<&str> = directive.lines().filter(|line| line.starts_with("- [")).collect();
            index.push(&line);
            let blocks = vec![
                writer.call(&format!("{folder}/{name}.md"), "", &topic),
                writer.call(&format!("{folder}/MEMORY.md"), "", &(index.join("\n") + "\n")),
            ];
            ModelOutput { blocks, stop: None }
        }
        _ => ModelOutput { blocks: vec![OutputBlock::Text(topic)], stop: None },
    }
}

/// Sentences of the most frequent kind.
fn find_memory(facts: &ConversationFacts) -> Option<(&'static str, Vec<String>)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for words in &facts.words {
        for sentence in sentences(&words.text).filter(|sentence| (8..400).contains(&sentence.len())) {
            let lower = sentence.to_lowercase();
            let kind = KINDS.iter().position(|kind| kind.words.iter().any(|word| lower.contains(word)));
            if let Some(kind) = kind.filter(|_| !is_secret(&lower)) {
                found.push((kind, sentence.to_owned()));
            }
        }
    }
    let count = |kind: usize| found.iter().filter(|(found, _)| *found == kind).count();
    let most = (0..KINDS.len()).rev().max_by_key(|kind| count(*kind)).filter(|kind| count(*kind) > 0)?;
    let sentences = found.into_iter().filter(|(kind, _)| *kind == most).map(|(_, sentence)| sentence);
    Some((KINDS.get(most)?.name, sentences.take(KEPT_MAX).collect()))
}

/// True if a sentence seems to contain a secret; such sentences are never kept.
fn is_secret(lower: &str) -> bool {
    ["password", "passwd", "api key", "api_key", "secret", "token", "sk-", "ghp_", "private key"]
        .iter()
        .any(|word| lower.contains(word))
}

fn slug(title: &str) -> String {
    let letters =
        title.chars().map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let slug: String = letters.take(60).collect();
    slug.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Value for front matter: one line, without a colon followed by a space.
fn plain(text: &str) -> String {
    text.replace(": ", " – ").replace(['\n', '\r'], " ")
}

/// First date of the form 2026-11-15 in a text.
fn date(text: &str) -> Option<&str> {
    let around = |letter: char| !(letter.is_ascii_digit() || letter == '-');
    text.split(around).find(|word| {
        let bytes = word.as_bytes();
        bytes.len() == 10
            && bytes.starts_with(b"20")
            && bytes.get(4) == Some(&b'-')
            && bytes.get(7) == Some(&b'-')
    })
}
