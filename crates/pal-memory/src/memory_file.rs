//! A memory file: front matter and text. Pure.

use std::fmt;
use std::str::FromStr;

use pal_model::{Timestamp, split_front_matter};
use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::front_matter_items::{FrontMatterItem, items};

/// Maximum characters of a slug made from a name.
const SLUG_CHARACTERS: usize = 60;

/// Subject of a memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// The user: skills, goals.
    User,
    /// The user's working preferences.
    Feedback,
    /// Facts and decisions that code and git do not show.
    Project,
    /// Pointers to outside resources.
    Reference,
}

impl MemoryKind {
    /// All kinds.
    pub const ALL: [MemoryKind; 4] =
        [MemoryKind::User, MemoryKind::Feedback, MemoryKind::Project, MemoryKind::Reference];

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::User => "user",
            MemoryKind::Feedback => "feedback",
            MemoryKind::Project => "project",
            MemoryKind::Reference => "reference",
        }
    }
}

/// Unknown kind of memory.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no type of memory; there are user, feedback, project and reference")]
pub struct MemoryKindError(String);

impl FromStr for MemoryKind {
    type Err = MemoryKindError;

    fn from_str(text: &str) -> Result<MemoryKind, MemoryKindError> {
        let named = |kind: &MemoryKind| kind.name().eq_ignore_ascii_case(text.trim());
        MemoryKind::ALL.into_iter().find(named).ok_or_else(|| MemoryKindError(text.to_owned()))
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Front matter of a memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemoryHeader {
    /// Title.
    pub name: String,
    /// One sentence: what it says, and so when it matters.
    pub description: String,
    /// Subject.
    #[serde(rename = "type")]
    pub kind: MemoryKind,
    /// Time of the last change.
    pub modified: Option<Timestamp>,
    /// Author and source.
    pub origin: Author,
}

/// A memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryFile {
    /// Front matter.
    pub head: MemoryHeader,
    /// Text.
    pub body: String,
    /// Unknown front-matter keys, preserved.
    unknown: Vec<FrontMatterItem>,
}

const KNOWN_KEYS: [&str; 5] = ["name", "description", "type", "modified", "origin"];

impl MemoryFile {
    /// Makes a new memory.
    pub fn new(head: MemoryHeader, body: impl Into<String>) -> MemoryFile {
        MemoryFile { head, body: body.into(), unknown: Vec::new() }
    }

    /// Parses a file. A missing name is taken from the file name, a missing description from the first line.
    pub fn parse(slug: &str, file: &str) -> MemoryFile {
        let (matter, body) = split_front_matter(file).unwrap_or(("", file));
        let items = items(matter);
        let value = |key: &str| {
            items.iter().find(|item| item.key() == key).map(FrontMatterItem::value).filter(|v| !v.is_empty())
        };
        let first_line = || {
            let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
            lines.into_iter().find(|line| !line.is_empty()).unwrap_or("").to_owned()
        };
        let head = MemoryHeader {
            name: value("name").unwrap_or_else(|| slug.to_owned()),
            description: value("description").unwrap_or_else(first_line),
            kind: value("type").and_then(|kind| kind.parse().ok()).unwrap_or(MemoryKind::Project),
            modified: value("modified").and_then(|time| parse_time(&time)),
            origin: value("origin").and_then(|origin| origin.parse().ok()).unwrap_or(Author::Person),
        };
        let unknown = items.into_iter().filter(|item| !KNOWN_KEYS.contains(&item.key())).collect();
        MemoryFile { head, body: body.strip_prefix('\n').unwrap_or(body).to_owned(), unknown }
    }

    /// Required front-matter keys that a file lacks.
    pub fn missing_keys(file: &str) -> Vec<&'static str> {
        let items = split_front_matter(file).map(|(matter, _)| items(matter)).unwrap_or_default();
        let has = |key: &str| items.iter().any(|item| item.key() == key && !item.value().is_empty());
        ["name", "description", "type"].into_iter().filter(|key| !has(key)).collect()
    }

    /// Renders the memory as a file.
    pub fn render(&self) -> String {
        let head = &self.head;
        let mut known = vec![
            FrontMatterItem::new("name", &head.name),
            FrontMatterItem::new("description", &head.description),
            FrontMatterItem::new("type", head.kind.name()),
        ];
        known.extend(head.modified.map(|time| FrontMatterItem::new("modified", &time.to_string())));
        known.push(FrontMatterItem::new("origin", &head.origin.to_string()));
        let mut file = String::from("---\n");
        for item in known.iter().chain(&self.unknown) {
            file.push_str(item.lines());
        }
        file.push_str("---\n\n");
        file.push_str(&self.body);
        if !file.ends_with('\n') {
            file.push('\n');
        }
        file
    }
}

/// Parses a time, or a date as its midnight.
fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Slug for a name: lower-case letters, digits and dashes.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars().flat_map(char::to_lowercase) {
        match character {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
        if slug.len() >= SLUG_CHARACTERS {
            break;
        }
    }
    let slug = slug.trim_matches('-');
    let lost = name.chars().filter(|c| c.is_alphanumeric() && !c.is_ascii()).count();
    match slug {
        "" => format!("memory-{}", &blake3::hash(name.as_bytes()).to_hex()[..8]),
        // Names in other scripts would share their few Latin letters.
        slug if lost > slug.len() => format!("{slug}-{}", &blake3::hash(name.as_bytes()).to_hex()[..8]),
        "memory" => String::from("memory-1"),
        slug => slug.to_owned(),
    }
}

/// First sentence of a text, for a description.
pub fn first_sentence(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = [". ", "! ", "? ", "。"].iter().filter_map(|end| line.find(end)).min();
    let sentence = end.map_or(line.as_str(), |end| &line[..end]);
    truncate_trimmed(sentence.trim_end_matches(['.', '。']), characters)
}

/// Truncates to `characters`, with an ellipsis if there is room for it.
pub(crate) fn truncate_trimmed(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some(_) if characters == 0 => String::new(),
        Some(_) => {
            let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unknown_front_matter_is_preserved() {
        let file = "---\nname: Release day\ndescription: when we release\nmetadata:\n  node: a\n  originSessionId: 8b\ntype: feedback\n---\n\nOn Fridays.\n";
        let topic = MemoryFile::parse("release-day", file);
        assert_eq!((topic.head.name.as_str(), topic.head.kind), ("Release day", MemoryKind::Feedback));
        assert_eq!(topic.body, "On Fridays.\n");
        let again = topic.render();
        assert!(again.contains("metadata:\n  node: a\n  originSessionId: 8b\n"), "{again}");
        assert_eq!(MemoryFile::parse("release-day", &again), topic);
    }

    #[test]
    fn file_without_front_matter_is_parsed() {
        let topic = MemoryFile::parse("notes", "# What I know\n\nmore\n");
        assert_eq!((topic.head.name.as_str(), topic.head.description.as_str()), ("notes", "What I know"));
        assert_eq!(MemoryFile::missing_keys("# What I know\n"), ["name", "description", "type"]);
        assert_eq!(
            MemoryFile::parse("a", "---\nmodified: 2026-11-15\n---\n").head.modified,
            parse_time("2026-11-15")
        );
    }

    #[test]
    fn slugs_are_short_and_derived_from_the_name() {
        let cases = [
            ("Release day!", "release-day"),
            ("  Größe — der Datei ", "gr-e-der-datei"),
            ("MEMORY", "memory-1"),
        ];
        for (name, wanted) in cases {
            assert_eq!(slug(name), wanted);
        }
        assert!(slug("記憶する").starts_with("memory-"));
        assert_ne!(slug("記憶する A"), slug("忘れない A"));
        assert_eq!(first_sentence("We release on Fridays. Never on Mondays.", 80), "We release on Fridays");
    }

    proptest! {
        #[test]
        fn rendered_file_parses_again(name in ".{1,40}", description in ".{1,80}", body in "(.{0,30}\n){0,5}") {
            let name = if name.trim().is_empty() { String::from("n") } else { name };
            let head = MemoryHeader { name, description, kind: MemoryKind::User, modified: None, origin: Author::Person };
            let topic = MemoryFile::new(head, body);
            let again = MemoryFile::parse("slug", &topic.render());
            prop_assert_eq!(&again.head.name, &topic.head.name);
            prop_assert_eq!(again.render(), topic.render());
        }

        #[test]
        fn any_file_can_be_parsed(file in "(---\n)?[ -~\n]{0,200}") {
            let once = MemoryFile::parse("slug", &file);
            prop_assert_eq!(MemoryFile::parse("slug", &once.render()).render(), once.render());
        }

        #[test]
        fn every_name_has_a_slug(name in ".{0,200}") {
            let slug = slug(&name);
            prop_assert!(crate::memory_store::check_slug(&slug).is_ok(), "{}", slug);
        }
    }
}
