//! Who is written to: names that can never be read as paths, and the three forms of an address.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// What stands before the path in the address of a session's socket.
const SOCKET_SCHEME: &str = "uds:";

/// The name of an agent. Two are equal if all their characters are. It is made of ASCII letters, digits, `-`, `_`
/// and `.`, begins with none of the dots, and so can be the name of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(SmolStr);

/// A text that is no name.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no name of an agent: use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, not beginning with a dot"
)]
pub struct NameError(String);

impl Name {
    /// The characters of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(is_allowed);
        match is_name {
            true => Ok(Name(SmolStr::new(text))),
            false => Err(NameError(text.chars().take(NAME_BYTES_MAX).collect())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a message goes, as it is written in `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// One agent: `scout`.
    Name(Name),
    /// All agents of the office but the sender: `*`.
    Everyone,
    /// The socket of another session: `uds:` and its path.
    Socket(PathBuf),
}

impl FromStr for Address {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Address, NameError> {
        match text.strip_prefix(SOCKET_SCHEME) {
            Some(path) if path.starts_with('/') => Ok(Address::Socket(PathBuf::from(path))),
            _ if text == "*" => Ok(Address::Everyone),
            _ => text.parse().map(Address::Name),
        }
    }
}

impl From<Name> for Address {
    fn from(name: Name) -> Address {
        Address::Name(name)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Name(name) => name.fmt(formatter),
            Address::Everyone => formatter.write_str("*"),
            Address::Socket(path) => write!(formatter, "{SOCKET_SCHEME}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        for good in ["scout", "agent-2", "a", "x.y_z", "A9", &"n".repeat(64)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        let long = "n".repeat(65);
        for bad in ["", ".", "..", ".hidden", "a/b", "../a", "a\0", "a b", "ä", "*", "a\n", "uds:/x", &long]
        {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
            assert!(serde_json::from_value::<Name>(bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_read_as_they_are_written() {
        for text in ["scout", "*", "uds:/run/pal/s.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!(matches!("uds:/a b".parse(), Ok(Address::Socket(_))));
        assert!("uds:relative".parse::<Address>().is_err(), "a relative path means something else elsewhere");
    }
}
