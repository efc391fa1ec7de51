//! Ids of entries (UUID version 7, sortable by time), responses and tool calls (the provider's strings).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use crate::Timestamp;

/// Id of a log entry: a 128-bit UUID, displayed with hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u128);

/// Error of parsing text that is not a hyphenated UUID.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an entry id (a UUID such as 01890000-0000-7000-8000-000000000001)")]
pub struct IdError(String);

impl EntryId {
    /// Creates an id from the 128 bits of a UUID.
    pub const fn from_bits(bits: u128) -> EntryId {
        EntryId(bits)
    }

    /// Returns the 128 bits of the UUID.
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl FromStr for EntryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<EntryId, IdError> {
        let error = || IdError(text.chars().take(48).collect());
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return Err(error());
        }
        let mut bits = 0u128;
        for (at, &byte) in bytes.iter().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return Err(error());
                }
                continue;
            }
            let digit = (byte as char).to_digit(16).ok_or_else(error)?;
            bits = bits << 4 | u128::from(digit);
        }
        Ok(EntryId(bits))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut shift = 128;
        for (at, byte) in text.iter_mut().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                continue;
            }
            shift -= 4;
            *byte = DIGITS[(self.0 >> shift) as usize & 15];
        }
        // The array holds ASCII only, so this never takes the empty default.
        formatter.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EntryId, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Generator of entry ids: version 7 UUIDs from a given time, a counter and a seed. The same seed and calls give the
/// same ids, so tests and imports are reproducible; a live session seeds it from the system.
#[derive(Clone, Debug)]
pub struct IdSource {
    seed: u64,
    made: u64,
}

impl IdSource {
    /// Creates a generator whose ids depend only on `seed` and the calls.
    pub fn seeded(seed: u64) -> IdSource {
        IdSource { seed, made: 0 }
    }

    /// Returns the next id, dated `at`. Ids are unique per generator and sort in creation order as long as `at` does not
    /// decrease and no millisecond has more than 4,096 ids.
    pub fn next_id(&mut self, at: Timestamp) -> EntryId {
        let counter = self.made;
        self.made += 1;
        let time = u128::from(at.milliseconds().max(0) as u64 & 0xffff_ffff_ffff);
        let random = u128::from(mix(self.seed ^ mix(counter)) >> 2);
        EntryId(time << 80 | 0x7 << 76 | u128::from(counter & 0xfff) << 64 | 0b10 << 62 | random)
    }
}

/// Finaliser of splitmix64: a bijection that spreads every input bit over the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            /// Returns the id as the provider wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(SmolStr::new(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// Provider's id of a response. Entries with equal ids belong to one message.
    ResponseId
);
string_id!(
    /// Id of a tool call, shared by a `tool_use` block and its `tool_result`.
    ToolUseId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_sort_in_creation_order() {
        let mut source = IdSource::seeded(7);
        let at = Timestamp::from_milliseconds(1_800_000_000_000);
        let ids: Vec<EntryId> = (0..1000).map(|_| source.next_id(at)).collect();
        assert!(ids.is_sorted());
        for id in ids {
            let text = id.to_string();
            assert_eq!(text.parse::<EntryId>().unwrap(), id);
            assert_eq!(text.as_bytes()[14], b'7', "version 7");
            assert!(matches!(text.as_bytes()[19], b'8'..=b'b'), "RFC variant");
        }
        assert_eq!(IdSource::seeded(7).next_id(at), IdSource::seeded(7).next_id(at));
        assert_ne!(IdSource::seeded(7).next_id(at), IdSource::seeded(8).next_id(at));
        assert!("01890000-0000-7000-8000-00000000000".parse::<EntryId>().is_err());
        assert!("01890000x0000-7000-8000-000000000001".parse::<EntryId>().is_err());
    }
}
