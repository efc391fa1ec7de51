//! The registry: every section of the default prompt, in order, in one place.
//!
//! A section with fixed words cannot know anything of a user, machine, date or session: its text is compiled in.

use crate::LeftOut;
use crate::assemble::Material;
use crate::dynamic;
use crate::git;
use crate::section::{Lifetime, Place, Section};

/// A section of the default prompt.
#[derive(Clone, Copy, Debug)]
pub struct DefaultSection {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// How long it stays.
    pub lifetime: Lifetime,
    words: Words,
}

/// Where the text of a section comes from.
#[derive(Clone, Copy, Debug)]
enum Words {
    /// The same text for everybody.
    Fixed(&'static str),
    /// Made of what is known of the session; none if there is nothing to say.
    Made(Make),
}

type Make = fn(&Material<'_>, &mut Vec<LeftOut>) -> Option<String>;

/// Every section of the default prompt, in order.
pub const DEFAULT_SECTIONS: &[DefaultSection] = &[
    made("attribution", Place::Attribution, dynamic::attribution),
    made("mode", Place::Mode, dynamic::mode),
    fixed("identity", include_str!("texts/identity.md")),
    fixed("working", include_str!("texts/working.md")),
    fixed("tools", include_str!("texts/tools.md")),
    fixed("editing", include_str!("texts/editing.md")),
    fixed("verification", include_str!("texts/verification.md")),
    fixed("safety", include_str!("texts/safety.md")),
    fixed("trust", include_str!("texts/trust.md")),
    REMINDERS,
    fixed("context", include_str!("texts/context.md")),
    fixed("memory", include_str!("texts/memory.md")),
    fixed("tone", include_str!("texts/tone.md")),
    DefaultSection {
        lifetime: Lifetime::Volatile { why: "a debug command asked for a break of the cache" },
        ..made("cache breaker", Place::Dynamic, dynamic::cache_breaker)
    },
    made("session guidance", Place::Dynamic, dynamic::guidance),
    ENVIRONMENT,
    MEMORY,
    made("language", Place::Dynamic, dynamic::language),
    made("output style", Place::Dynamic, dynamic::output_style),
    made("scratchpad", Place::Dynamic, dynamic::scratchpad),
    DefaultSection {
        lifetime: Lifetime::Volatile { why: "servers may come and go while the session runs" },
        ..made("MCP instructions", Place::Dynamic, dynamic::mcp_instructions)
    },
    made("clearing", Place::Dynamic, dynamic::clearing),
    made("token budget", Place::Dynamic, dynamic::token_budget),
];

/// How reminders work: said in every prompt but an override.
pub(crate) const REMINDERS: DefaultSection = fixed("reminders", include_str!("texts/reminders.md"));

/// Where the session works: said in every prompt but an override.
pub(crate) const ENVIRONMENT: DefaultSection = made("environment", Place::Dynamic, dynamic::environment);

/// Where memories are kept: said in every prompt but an override.
pub(crate) const MEMORY: DefaultSection = made("memory place", Place::Dynamic, dynamic::memory);

/// The snapshot of the repository, which ends every prompt but an override.
pub(crate) const GIT: DefaultSection = made("git", Place::Dynamic, git::section);

impl DefaultSection {
    /// What it says, if that is the same for everybody.
    pub fn fixed_text(&self) -> Option<&'static str> {
        match self.words {
            Words::Fixed(text) => Some(text.trim()),
            Words::Made(_) => None,
        }
    }

    /// The section as it stands in a session's prompt; none if there is nothing to say.
    pub(crate) fn section(&self, material: &Material<'_>, left_out: &mut Vec<LeftOut>) -> Option<Section> {
        let text = match self.words {
            Words::Fixed(text) => text.trim().to_owned(),
            Words::Made(make) => make(material, left_out)?,
        };
        Some(Section { name: self.name, text, place: self.place, lifetime: self.lifetime })
    }
}

const fn fixed(name: &'static str, text: &'static str) -> DefaultSection {
    DefaultSection { name, place: Place::Static, lifetime: Lifetime::Cached, words: Words::Fixed(text) }
}

const fn made(name: &'static str, place: Place, make: Make) -> DefaultSection {
    DefaultSection { name, place, lifetime: Lifetime::Cached, words: Words::Made(make) }
}
