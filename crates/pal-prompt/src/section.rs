//! Sections: the named pieces of a system prompt, and the blocks that they are joined to.

use pal_model::{Block, SectionNote, SystemNote, Text};
use smol_str::SmolStr;

/// What stands between two sections of a block.
const JOINT: &str = "\n\n";

/// Where a section stands in the default prompt, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// What names the program; constant within a session.
    Attribution,
    /// What says whether a person is there.
    Mode,
    /// What is the same for every user, machine, date and session.
    Static,
    /// What is true of this session.
    Dynamic,
}

/// How long the text of a section stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifetime {
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
pub struct Section {
    /// Its name, by which a change of it is reported.
    pub name: &'static str,
    /// What it says.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// How long it stays.
    pub lifetime: Lifetime,
}

/// A block of the system prompt: sections that are sent as one text.
pub(crate) struct SystemBlock {
    pub(crate) sections: Vec<Section>,
    pub(crate) is_static: bool,
    pub(crate) markable: bool,
}

impl SystemBlock {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.sections.iter().map(|section| section.text.as_str()).collect();
        texts.join(JOINT)
    }

    fn note(&self) -> SystemNote {
        let note = |section: &Section| SectionNote {
            name: SmolStr::new_static(section.name),
            bytes: section.text.len() as u64,
            volatile: match section.lifetime {
                Lifetime::Cached => None,
                Lifetime::Volatile { why } => Some(why.to_owned()),
            },
        };
        SystemNote {
            sections: self.sections.iter().map(note).collect(),
            is_static: self.is_static,
            markable: self.markable,
        }
    }
}

/// The blocks of the default prompt: what names the program is never marked, so that the static block behind it is
/// the first that a cache remembers.
pub(crate) fn default_blocks(sections: Vec<Section>) -> Vec<SystemBlock> {
    let (opening, rest): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|section| section.place < Place::Static);
    let (fixed, dynamic) = rest.into_iter().partition(|section| section.place == Place::Static);
    vec![
        SystemBlock { sections: opening, is_static: false, markable: false },
        SystemBlock { sections: fixed, is_static: true, markable: true },
        SystemBlock { sections: dynamic, is_static: false, markable: true },
    ]
}

/// The blocks as the wire has them, and what they are made of. Blocks without words are left out.
pub(crate) fn rendered(mut blocks: Vec<SystemBlock>) -> (Text, Vec<SystemNote>) {
    for block in &mut blocks {
        block.sections.retain(|section| !section.text.is_empty());
    }
    blocks.retain(|block| !block.sections.is_empty());
    let raw: Vec<String> = blocks.iter().map(|block| Block::text(&block.text()).raw().to_string()).collect();
    (Text::from(format!("[{}]", raw.join(","))), blocks.iter().map(SystemBlock::note).collect())
}
