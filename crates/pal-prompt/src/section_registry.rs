//! Registry of all sections of the default prompt, in order.
//!
//! A fixed section cannot depend on a user, machine, date or session: its text is compiled in.

use crate::dynamic_sections;
use crate::git_context;
use crate::prefix_inputs::SectionInputs;
use crate::prefix_parts::PrefixOmission;
use crate::system_section::{SectionPlacement, SectionStability, SystemSection};

/// A section of the default prompt.
#[derive(Clone, Copy, Debug)]
pub struct DefaultSection {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: SectionPlacement,
    /// Stability of its text.
    pub lifetime: SectionStability,
    words: SectionSource,
}

/// Where the text of a section comes from.
#[derive(Clone, Copy, Debug)]
enum SectionSource {
    /// The same text for everybody.
    Fixed(&'static str),
    /// Built from session data; none if there is no data.
    Made(SectionRenderer),
}

type SectionRenderer = fn(&SectionInputs<'_>, &mut Vec<PrefixOmission>) -> Option<String>;

/// Every section of the default prompt, in order.
pub const DEFAULT_SECTIONS: &[DefaultSection] = &[
    rendered_section("attribution", SectionPlacement::Attribution, dynamic_sections::attribution),
    rendered_section("mode", SectionPlacement::Mode, dynamic_sections::mode),
    fixed_section("identity", include_str!("texts/identity.md")),
    fixed_section("working", include_str!("texts/working.md")),
    fixed_section("tools", include_str!("texts/tools.md")),
    fixed_section("editing", include_str!("texts/editing.md")),
    fixed_section("verification", include_str!("texts/verification.md")),
    fixed_section("safety", include_str!("texts/safety.md")),
    fixed_section("trust", include_str!("texts/trust.md")),
    REMINDERS,
    fixed_section("context", include_str!("texts/context.md")),
    fixed_section("memory", include_str!("texts/memory.md")),
    fixed_section("tone", include_str!("texts/tone.md")),
    CACHE_BREAKER,
    rendered_section("session guidance", SectionPlacement::Dynamic, dynamic_sections::guidance),
    ENVIRONMENT,
    MEMORY,
    rendered_section("language", SectionPlacement::Dynamic, dynamic_sections::language),
    rendered_section("output style", SectionPlacement::Dynamic, dynamic_sections::output_style),
    rendered_section("scratchpad", SectionPlacement::Dynamic, dynamic_sections::scratchpad),
    MCP_INSTRUCTIONS,
    rendered_section("clearing", SectionPlacement::Dynamic, dynamic_sections::clearing),
    rendered_section("token budget", SectionPlacement::Dynamic, dynamic_sections::token_budget),
];

/// Every section of the lean prompt, in order. Its fixed section also explains reminders.
pub const LEAN_SECTIONS: &[DefaultSection] = &[
    rendered_section("attribution", SectionPlacement::Attribution, dynamic_sections::attribution),
    rendered_section("mode", SectionPlacement::Mode, dynamic_sections::mode),
    fixed_section("lean", include_str!("texts/lean/prompt.md")),
    CACHE_BREAKER,
    rendered_section("session guidance", SectionPlacement::Dynamic, dynamic_sections::guidance),
    ENVIRONMENT,
    MEMORY,
    rendered_section("language", SectionPlacement::Dynamic, dynamic_sections::language),
    rendered_section("output style", SectionPlacement::Dynamic, dynamic_sections::output_style),
    rendered_section("scratchpad", SectionPlacement::Dynamic, dynamic_sections::scratchpad),
    MCP_INSTRUCTIONS,
    rendered_section("token budget", SectionPlacement::Dynamic, dynamic_sections::token_budget),
];

const CACHE_BREAKER: DefaultSection = DefaultSection {
    lifetime: SectionStability::Volatile { why: "a debug command asked for a break of the cache" },
    ..rendered_section("cache breaker", SectionPlacement::Dynamic, dynamic_sections::cache_breaker)
};

const MCP_INSTRUCTIONS: DefaultSection = DefaultSection {
    lifetime: SectionStability::Volatile { why: "servers may come and go while the session runs" },
    ..rendered_section("MCP instructions", SectionPlacement::Dynamic, dynamic_sections::mcp_instructions)
};

/// Explanation of reminders, in every prompt except an override.
pub(crate) const REMINDERS: DefaultSection = fixed_section("reminders", include_str!("texts/reminders.md"));

/// Environment of the session: in every prompt except an override.
pub(crate) const ENVIRONMENT: DefaultSection =
    rendered_section("environment", SectionPlacement::Dynamic, dynamic_sections::environment);

/// Location of memories: in every prompt except an override.
pub(crate) const MEMORY: DefaultSection =
    rendered_section("memory place", SectionPlacement::Dynamic, dynamic_sections::memory);

/// The snapshot of the repository, which ends every prompt but an override.
pub(crate) const GIT: DefaultSection =
    rendered_section("git", SectionPlacement::Dynamic, git_context::render_git);

impl DefaultSection {
    /// Text, if it is the same for all users.
    pub fn fixed_text(&self) -> Option<&'static str> {
        match self.words {
            SectionSource::Fixed(text) => Some(text.trim()),
            SectionSource::Made(_) => None,
        }
    }

    /// Renders the section for a session; none if it is empty.
    pub(crate) fn render(
        &self,
        material: &SectionInputs<'_>,
        left_out: &mut Vec<PrefixOmission>,
    ) -> Option<SystemSection> {
        let text = match self.words {
            SectionSource::Fixed(text) => text.trim().to_owned(),
            SectionSource::Made(make) => make(material, left_out)?,
        };
        Some(SystemSection { name: self.name, text, place: self.place, lifetime: self.lifetime })
    }
}

const fn fixed_section(name: &'static str, text: &'static str) -> DefaultSection {
    DefaultSection {
        name,
        place: SectionPlacement::Static,
        lifetime: SectionStability::Cached,
        words: SectionSource::Fixed(text),
    }
}

const fn rendered_section(
    name: &'static str,
    place: SectionPlacement,
    make: SectionRenderer,
) -> DefaultSection {
    DefaultSection { name, place, lifetime: SectionStability::Cached, words: SectionSource::Made(make) }
}
