//! Agent names, which are never paths, and the three forms of an address.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Prefix of a socket address.
const SOCKET_SCHEME: &str = "uds:";

/// Name of an agent: ASCII letters, digits, `-`, `_` and `.`, not starting with a dot, so that it is a valid
/// file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(SmolStr);

/// The text is not a valid name.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid agent name `{0}`: use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, not starting with a dot"
)]
pub struct AgentNameError(String);

impl AgentName {
    /// Name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<AgentName, AgentNameError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(is_allowed);
        match is_name {
            true => Ok(AgentName(SmolStr::new(text))),
            false => Err(AgentNameError(text.chars().take(NAME_BYTES_MAX).collect())),
        }
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl Serialize for AgentName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AgentName, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Recipient of a message, as written in `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// One agent: `scout`.
    Name(AgentName),
    /// All agents but the sender: `*`.
    Everyone,
    /// The socket of another session: `uds:` and its path.
    Socket(PathBuf),
}

impl FromStr for Address {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Address, AgentNameError> {
        match text.strip_prefix(SOCKET_SCHEME) {
            Some(path) if path.starts_with('/') => Ok(Address::Socket(PathBuf::from(path))),
            _ if text == "*" => Ok(Address::Everyone),
            _ => text.parse().map(Address::Name),
        }
    }
}

impl From<AgentName> for Address {
    fn from(name: AgentName) -> Address {
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
            assert_eq!(good.parse::<AgentName>().unwrap().as_str(), good);
        }
        let long = "n".repeat(65);
        for bad in ["", ".", "..", ".hidden", "a/b", "../a", "a\0", "a b", "ä", "*", "a\n", "uds:/x", &long]
        {
            assert!(bad.parse::<AgentName>().is_err(), "{bad:?}");
            assert!(serde_json::from_value::<AgentName>(bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_round_trip() {
        for text in ["scout", "*", "uds:/run/pal/s.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!(matches!("uds:/a b".parse(), Ok(Address::Socket(_))));
        assert!("uds:relative".parse::<Address>().is_err(), "a relative path means something else elsewhere");
    }
}
