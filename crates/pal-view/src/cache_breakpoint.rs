//! Cache breakpoints: position, TTL and scope of what they cover.

/// Time that content under a breakpoint stays in the provider's cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheTtl {
    /// Five minutes.
    #[default]
    Minutes5,
    /// An hour.
    Hour1,
    /// An hour for the prefix, five minutes for the messages. No single breakpoint has this TTL: see
    /// [`CacheTtl::at_position`].
    Hour1ThenMinutes5,
}

impl CacheTtl {
    /// The TTL in milliseconds; that of the messages if they differ from the prefix.
    pub fn milliseconds(self) -> u64 {
        match self {
            CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5 => 5 * 60 * 1_000,
            CacheTtl::Hour1 => 60 * 60 * 1_000,
        }
    }

    /// TTL of a breakpoint at this position.
    pub fn at_position(self, spot: BreakpointPosition) -> CacheTtl {
        match (self, spot) {
            (CacheTtl::Hour1ThenMinutes5, BreakpointPosition::Tool(_) | BreakpointPosition::System(_)) => {
                CacheTtl::Hour1
            }
            (CacheTtl::Hour1ThenMinutes5, BreakpointPosition::Block(_)) => CacheTtl::Minutes5,
            (same, _) => same,
        }
    }

    /// Name in logs and, for a single breakpoint, on the wire.
    pub fn name(self) -> &'static str {
        match self {
            CacheTtl::Minutes5 => "5m",
            CacheTtl::Hour1 => "1h",
            CacheTtl::Hour1ThenMinutes5 => "1h+5m",
        }
    }

    /// Parses a name from a log.
    pub fn from_name(name: &str) -> Option<CacheTtl> {
        match name {
            "5m" => Some(CacheTtl::Minutes5),
            "1h" => Some(CacheTtl::Hour1),
            "1h+5m" => Some(CacheTtl::Hour1ThenMinutes5),
            _ => None,
        }
    }
}

/// Sharing scope of a cache entry, where the endpoint knows scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheScope {
    /// Shared by all organizations.
    Global,
    /// Shared inside the organization.
    Organisation,
}

/// Position of a breakpoint, ordered as a request is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BreakpointPosition {
    /// A tool, counted from 0.
    Tool(usize),
    /// A system block.
    System(usize),
    /// A block of the messages, counted over all messages.
    Block(usize),
}

/// A cache breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheBreakpoint {
    /// Everything up to and including this position is cached.
    pub position: BreakpointPosition,
    /// Time to live.
    pub ttl: CacheTtl,
    /// Scope, where the endpoint knows scopes.
    pub scope: Option<CacheScope>,
}

impl CacheBreakpoint {
    /// JSON inserted before the last character of the object that carries it.
    pub(crate) fn json(&self) -> &'static str {
        // A single breakpoint has the TTL of its position.
        match (self.ttl.at_position(self.position), self.scope) {
            (CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5, None) => {
                r#","cache_control":{"type":"ephemeral"}"#
            }
            (CacheTtl::Hour1, None) => r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
            (CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5, Some(CacheScope::Global)) => {
                r#","cache_control":{"type":"ephemeral","scope":"global"}"#
            }
            (CacheTtl::Hour1, Some(CacheScope::Global)) => {
                r#","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}"#
            }
            (CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5, Some(CacheScope::Organisation)) => {
                r#","cache_control":{"type":"ephemeral","scope":"org"}"#
            }
            (CacheTtl::Hour1, Some(CacheScope::Organisation)) => {
                r#","cache_control":{"type":"ephemeral","ttl":"1h","scope":"org"}"#
            }
        }
    }
}
