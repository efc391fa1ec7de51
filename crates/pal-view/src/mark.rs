//! Cache marks: where they stand, for how long and for whom what they cover is kept.

/// How long what is marked stays in the provider's cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheLifetime {
    /// Five minutes.
    #[default]
    Minutes5,
    /// An hour.
    Hour1,
    /// What stands before the messages for an hour, the messages for five minutes. No single mark lasts so: see
    /// [`CacheLifetime::at`].
    Hour1ThenMinutes5,
}

impl CacheLifetime {
    /// How long that is; for the messages, where they last shorter than the rest.
    pub fn milliseconds(self) -> u64 {
        match self {
            CacheLifetime::Minutes5 | CacheLifetime::Hour1ThenMinutes5 => 5 * 60 * 1_000,
            CacheLifetime::Hour1 => 60 * 60 * 1_000,
        }
    }

    /// How long a mark at this spot lasts.
    pub fn at(self, spot: Spot) -> CacheLifetime {
        match (self, spot) {
            (CacheLifetime::Hour1ThenMinutes5, Spot::Tool(_) | Spot::System(_)) => CacheLifetime::Hour1,
            (CacheLifetime::Hour1ThenMinutes5, Spot::Block(_)) => CacheLifetime::Minutes5,
            (same, _) => same,
        }
    }

    /// The name in logs and, of a single mark, on the wire.
    pub fn name(self) -> &'static str {
        match self {
            CacheLifetime::Minutes5 => "5m",
            CacheLifetime::Hour1 => "1h",
            CacheLifetime::Hour1ThenMinutes5 => "1h+5m",
        }
    }

    /// The lifetime with this name.
    pub fn named(name: &str) -> Option<CacheLifetime> {
        match name {
            "5m" => Some(CacheLifetime::Minutes5),
            "1h" => Some(CacheLifetime::Hour1),
            "1h+5m" => Some(CacheLifetime::Hour1ThenMinutes5),
            _ => None,
        }
    }
}

/// For whom what is marked is kept, where the endpoint knows scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheScope {
    /// For everybody.
    Global,
    /// For the organisation.
    Organisation,
}

/// Where a mark can stand, in the order in which a request is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Spot {
    /// On a tool, counted from 0.
    Tool(usize),
    /// On a system block.
    System(usize),
    /// On a block of the messages, counted over all messages.
    Block(usize),
}

/// A cache mark.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// Where it stands: everything up to there is kept.
    pub spot: Spot,
    /// For how long.
    pub lifetime: CacheLifetime,
    /// For whom, where the endpoint knows scopes.
    pub scope: Option<CacheScope>,
}

impl Mark {
    /// What stands before the last character of the object that carries it.
    pub(crate) fn json(&self) -> &'static str {
        // A single mark lasts as long as one at its spot does.
        match (self.lifetime.at(self.spot), self.scope) {
            (CacheLifetime::Minutes5 | CacheLifetime::Hour1ThenMinutes5, None) => {
                r#","cache_control":{"type":"ephemeral"}"#
            }
            (CacheLifetime::Hour1, None) => r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
            (CacheLifetime::Minutes5 | CacheLifetime::Hour1ThenMinutes5, Some(CacheScope::Global)) => {
                r#","cache_control":{"type":"ephemeral","scope":"global"}"#
            }
            (CacheLifetime::Hour1, Some(CacheScope::Global)) => {
                r#","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}"#
            }
            (CacheLifetime::Minutes5 | CacheLifetime::Hour1ThenMinutes5, Some(CacheScope::Organisation)) => {
                r#","cache_control":{"type":"ephemeral","scope":"org"}"#
            }
            (CacheLifetime::Hour1, Some(CacheScope::Organisation)) => {
                r#","cache_control":{"type":"ephemeral","ttl":"1h","scope":"org"}"#
            }
        }
    }
}
