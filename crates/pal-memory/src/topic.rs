//! A memory: a file with front matter and a text. Pure: text in, text out.

use std::fmt;
use std::str::FromStr;

use pal_model::{Timestamp, front_matter};
use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::front::{Item, items};

/// Characters that a slug may have when it is made from a name.
const SLUG_CHARACTERS: usize = 60;

/// What a memory is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Who the user is: skills, goals.
    User,
    /// How the user wants work done.
    Feedback,
    /// Facts and decisions that code and git do not tell.
    Project,
    /// Where things are, outside.
    Reference,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::User, Kind::Feedback, Kind::Project, Kind::Reference];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Feedback => "feedback",
            Kind::Project => "project",
            Kind::Reference => "reference",
        }
    }
}

/// A word that is no kind of memory.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no type of memory; there are user, feedback, project and reference")]
pub struct KindError(String);

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Kind, KindError> {
        let named = |kind: &Kind| kind.name().eq_ignore_ascii_case(text.trim());
        Kind::ALL.into_iter().find(named).ok_or_else(|| KindError(text.to_owned()))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What stands at the top of a memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// What it is called.
    pub name: String,
    /// One sentence: what it says, and so when it matters.
    pub description: String,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// When it was changed last.
    pub modified: Option<Timestamp>,
    /// Who wrote it, and where.
    pub origin: Author,
}

/// A memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    /// What stands at its top.
    pub head: Head,
    /// Its text.
    pub body: String,
    /// Keys of the front matter that others wrote and we do not know.
    unknown: Vec<Item>,
}

const KNOWN: [&str; 5] = ["name", "description", "type", "modified", "origin"];

impl Topic {
    /// A new memory.
    pub fn new(head: Head, body: impl Into<String>) -> Topic {
        Topic { head, body: body.into(), unknown: Vec::new() }
    }

    /// A file as a memory. Whatever the file lacks is made up: its name from the file's, its description from the first line.
    pub fn read(slug: &str, file: &str) -> Topic {
        let (matter, body) = front_matter(file).unwrap_or(("", file));
        let items = items(matter);
        let value = |key: &str| {
            items.iter().find(|item| item.key() == key).map(Item::value).filter(|v| !v.is_empty())
        };
        let first_line = || {
            let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
            lines.into_iter().find(|line| !line.is_empty()).unwrap_or("").to_owned()
        };
        let head = Head {
            name: value("name").unwrap_or_else(|| slug.to_owned()),
            description: value("description").unwrap_or_else(first_line),
            kind: value("type").and_then(|kind| kind.parse().ok()).unwrap_or(Kind::Project),
            modified: value("modified").and_then(|time| moment(&time)),
            origin: value("origin").and_then(|origin| origin.parse().ok()).unwrap_or(Author::Person),
        };
        let unknown = items.into_iter().filter(|item| !KNOWN.contains(&item.key())).collect();
        Topic { head, body: body.strip_prefix('\n').unwrap_or(body).to_owned(), unknown }
    }

    /// What the front matter of a file should say and does not.
    pub fn lacks(file: &str) -> Vec<&'static str> {
        let items = front_matter(file).map(|(matter, _)| items(matter)).unwrap_or_default();
        let has = |key: &str| items.iter().any(|item| item.key() == key && !item.value().is_empty());
        ["name", "description", "type"].into_iter().filter(|key| !has(key)).collect()
    }

    /// The memory as a file.
    pub fn file(&self) -> String {
        let head = &self.head;
        let mut known = vec![
            Item::new("name", &head.name),
            Item::new("description", &head.description),
            Item::new("type", head.kind.name()),
        ];
        known.extend(head.modified.map(|time| Item::new("modified", &time.to_string())));
        known.push(Item::new("origin", &head.origin.to_string()));
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

/// A moment, or the beginning of a day.
fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// What a memory of this name is kept under: lower-case letters, digits and dashes.
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
        // A name in another script would share its few Latin letters with many.
        slug if lost > slug.len() => format!("{slug}-{}", &blake3::hash(name.as_bytes()).to_hex()[..8]),
        "memory" => String::from("memory-1"),
        slug => slug.to_owned(),
    }
}

/// The first sentence of a text, for a description.
pub fn first_sentence(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = [". ", "! ", "? ", "。"].iter().filter_map(|end| line.find(end)).min();
    let sentence = end.map_or(line.as_str(), |end| &line[..end]);
    clip(sentence.trim_end_matches(['.', '。']), characters)
}

/// A text in so many characters.
pub(crate) fn clip(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
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
    fn a_memory_of_another_program_keeps_what_we_do_not_know() {
        let file = "---\nname: Release day\ndescription: when we release\nmetadata:\n  node: a\n  originSessionId: 8b\ntype: feedback\n---\n\nOn Fridays.\n";
        let topic = Topic::read("release-day", file);
        assert_eq!((topic.head.name.as_str(), topic.head.kind), ("Release day", Kind::Feedback));
        assert_eq!(topic.body, "On Fridays.\n");
        let again = topic.file();
        assert!(again.contains("metadata:\n  node: a\n  originSessionId: 8b\n"), "{again}");
        assert_eq!(Topic::read("release-day", &again), topic);
    }

    #[test]
    fn a_file_without_front_matter_is_read_all_the_same() {
        let topic = Topic::read("notes", "# What I know\n\nmore\n");
        assert_eq!((topic.head.name.as_str(), topic.head.description.as_str()), ("notes", "What I know"));
        assert_eq!(Topic::lacks("# What I know\n"), ["name", "description", "type"]);
        assert_eq!(Topic::read("a", "---\nmodified: 2026-11-15\n---\n").head.modified, moment("2026-11-15"));
    }

    #[test]
    fn slugs_are_short_and_of_the_name() {
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
        fn what_is_written_is_read_again(name in ".{1,40}", description in ".{1,80}", body in "(.{0,30}\n){0,5}") {
            let name = if name.trim().is_empty() { String::from("n") } else { name };
            let head = Head { name, description, kind: Kind::User, modified: None, origin: Author::Person };
            let topic = Topic::new(head, body);
            let again = Topic::read("slug", &topic.file());
            prop_assert_eq!(&again.head.name, &topic.head.name);
            prop_assert_eq!(again.file(), topic.file());
        }

        #[test]
        fn no_file_is_too_odd_to_be_read(file in "(---\n)?[ -~\n]{0,200}") {
            let once = Topic::read("slug", &file);
            prop_assert_eq!(Topic::read("slug", &once.file()).file(), once.file());
        }

        #[test]
        fn every_name_has_a_slug(name in ".{0,200}") {
            let slug = slug(&name);
            prop_assert!(crate::memory::check_slug(&slug).is_ok(), "{}", slug);
        }
    }
}
