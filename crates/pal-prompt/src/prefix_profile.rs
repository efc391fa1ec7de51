//! Profile of a prefix: how much of a window the program takes for itself.
//!
//! The full prefix takes 9,000 to 14,000 tokens. In a small window that leaves no room for work, so the lean profile has a
//! short system prompt, short definitions of the tools that every task needs, and all other tools behind ToolSearch.

/// Window in tokens from which on a session has the full profile.
const FULL_PROFILE_WINDOW: u64 = 40_000;

/// Share of a lean window that instruction files, or the memory index, may take: 1/N of its tokens.
const INSTRUCTIONS_SHARE: u64 = 5;
const MEMORY_SHARE: u64 = 12;

/// Low estimate of the bytes of a token.
const BYTES_A_TOKEN: u64 = 3;

/// Size of a session's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PrefixProfile {
    /// The whole system prompt and all tools.
    #[default]
    Full,
    /// A short system prompt and the core tools, for small windows.
    Lean,
}

impl PrefixProfile {
    /// Chooses the profile for a window of this many tokens.
    pub fn for_window(window: u64) -> PrefixProfile {
        if window < FULL_PROFILE_WINDOW { PrefixProfile::Lean } else { PrefixProfile::Full }
    }

    /// Returns the name in logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            PrefixProfile::Full => "full",
            PrefixProfile::Lean => "lean",
        }
    }

    /// Returns the profile of a recorded name; unknown names and prefixes of older versions are full.
    pub fn from_name(name: Option<&str>) -> PrefixProfile {
        if name == Some(PrefixProfile::Lean.name()) { PrefixProfile::Lean } else { PrefixProfile::Full }
    }

    /// Maximum bytes of all instruction files in a window; none for no limit.
    pub(crate) fn max_instruction_bytes(self, window: u64) -> Option<usize> {
        (self == PrefixProfile::Lean).then_some((window / INSTRUCTIONS_SHARE * BYTES_A_TOKEN) as usize)
    }

    /// Maximum bytes of all memory indexes in a window; none for no limit.
    pub(crate) fn max_memory_bytes(self, window: u64) -> Option<usize> {
        (self == PrefixProfile::Lean).then_some((window / MEMORY_SHARE * BYTES_A_TOKEN) as usize)
    }
}
