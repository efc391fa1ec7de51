//! Authors of memories and changes.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Author of a change. In files: `person`, `session ID`, `session ID entry ID`, or any other text verbatim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Author {
    /// The user, by a command or with an editor.
    Person,
    /// An agent in a session.
    Session {
        /// Session id.
        session: String,
        /// Log entry that the memory comes from.
        entry: Option<String>,
    },
    /// Any other author: a background run, this program, or a name that another program wrote.
    Named(String),
}

impl Author {
    /// This program, when it repairs generated files.
    pub fn program() -> Author {
        Author::Named(String::from("pal"))
    }

    pub(crate) fn is_person(&self) -> bool {
        *self == Author::Person
    }
}

impl fmt::Display for Author {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Person => formatter.write_str("person"),
            Author::Session { session, entry: None } => write!(formatter, "session {session}"),
            Author::Session { session, entry: Some(entry) } => {
                write!(formatter, "session {session} entry {entry}")
            }
            Author::Named(name) => formatter.write_str(name),
        }
    }
}

impl FromStr for Author {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Author, Infallible> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words.as_slice() {
            [] | ["person"] => Author::Person,
            ["session", session] => Author::Session { session: (*session).to_owned(), entry: None },
            ["session", session, "entry", entry] => {
                Author::Session { session: (*session).to_owned(), entry: Some((*entry).to_owned()) }
            }
            words => Author::Named(words.join(" ")),
        })
    }
}

impl Serialize for Author {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Author {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Author, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
