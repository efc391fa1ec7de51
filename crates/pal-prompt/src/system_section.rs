//! Sections: the named parts of a system prompt, and the blocks they are joined into.

use pal_model::{ContentBlock, SectionNote, SharedText, SystemBlockNote};
use smol_str::SmolStr;

/// Separator between two sections of a block.
pub(crate) const JOINT: &str = "\n\n";

/// Position of a section in the default prompt, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SectionPlacement {
    /// Attribution of the program; constant within a session.
    Attribution,
    /// Interactive or headless prefix.
    Mode,
    /// Text that is the same for every user, machine, date and session.
    Static,
    /// Facts of this session.
    Dynamic,
}

/// Stability of a section's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionStability {
    /// Until the session is cleared or compacted.
    Cached,
    /// It may change before that, and break the cache, for a reason.
    Volatile {
        /// Why it has to.
        why: &'static str,
    },
}

/// A named piece of a system prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemSection {
    /// Its name, by which a change of it is reported.
    pub name: &'static str,
    /// Text.
    pub text: String,
    /// Where it stands.
    pub place: SectionPlacement,
    /// Stability of its text.
    pub lifetime: SectionStability,
}

/// A block of the system prompt: sections that are sent as one text.
pub(crate) struct SystemBlock {
    pub(crate) sections: Vec<SystemSection>,
    pub(crate) is_static: bool,
    pub(crate) markable: bool,
}

impl SystemBlock {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.sections.iter().map(|section| section.text.as_str()).collect();
        texts.join(JOINT)
    }

    fn note(&self) -> SystemBlockNote {
        let note = |section: &SystemSection| SectionNote {
            name: SmolStr::new_static(section.name),
            bytes: section.text.len() as u64,
            volatile: match section.lifetime {
                SectionStability::Cached => None,
                SectionStability::Volatile { why } => Some(why.to_owned()),
            },
        };
        SystemBlockNote {
            sections: self.sections.iter().map(note).collect(),
            is_static: self.is_static,
            markable: self.markable,
        }
    }
}

/// The blocks of the default prompt: what names the program is never marked, so that the static block behind it is
/// the first that a cache remembers.
pub(crate) fn default_blocks(sections: Vec<SystemSection>) -> Vec<SystemBlock> {
    let (opening, rest): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|section| section.place < SectionPlacement::Static);
    let (fixed, dynamic) = rest.into_iter().partition(|section| section.place == SectionPlacement::Static);
    vec![
        SystemBlock { sections: opening, is_static: false, markable: false },
        SystemBlock { sections: fixed, is_static: true, markable: true },
        SystemBlock { sections: dynamic, is_static: false, markable: true },
    ]
}

/// Blocks of the request, with their sections. Empty blocks are left out.
pub(crate) fn render_blocks(mut blocks: Vec<SystemBlock>) -> (SharedText, Vec<SystemBlockNote>) {
    for block in &mut blocks {
        block.sections.retain(|section| !section.text.is_empty());
    }
    blocks.retain(|block| !block.sections.is_empty());
    let raw: Vec<String> =
        blocks.iter().map(|block| ContentBlock::text(&block.text()).raw().to_string()).collect();
    (SharedText::from(format!("[{}]", raw.join(","))), blocks.iter().map(SystemBlock::note).collect())
}
