//! Images and documents that a request carries.

use pal_model::{BlockType, ContentBlock, EntryBody, EntryId, MediaKind};

use crate::view::View;
use crate::visible_entry::Visibility;

/// Media of one kind in one entry, as a request carries them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VisibleMedia {
    /// Entry that contains the media.
    pub entry: EntryId,
    /// Kind of the media.
    pub kind: MediaKind,
    /// Bytes of the blocks.
    pub bytes: usize,
}

impl View {
    /// Images and documents that the next request would carry, oldest first. Media that the model does not accept, that
    /// were stripped, or whose tool result was cleared or spilled, are not in it.
    pub fn visible_media(&self) -> Vec<VisibleMedia> {
        let mut found = Vec::new();
        for shown in self.visible_entries() {
            let is_summary = matches!(shown.entry.body, EntryBody::Boundary(_));
            if shown.visibility != Visibility::Visible || is_summary {
                continue;
            }
            let Some(content) = shown.content() else { continue };
            for kind in MediaKind::ALL {
                let blocks = content.blocks().iter();
                let bytes = blocks.map(|block| self.media_bytes(shown.entry.id, kind, block)).sum();
                if bytes > 0 {
                    found.push(VisibleMedia { entry: shown.entry.id, kind, bytes });
                }
            }
        }
        found
    }

    fn media_bytes(&self, entry: EntryId, wanted: MediaKind, block: &ContentBlock) -> usize {
        let can = &self.lens().card.can;
        let is_accepted = match wanted {
            MediaKind::Image => can.images,
            MediaKind::Document => can.documents,
        };
        match block.kind() {
            BlockType::ToolResult => {
                let replaced = block.tool_use_id().and_then(|id| self.result(id));
                match replaced.is_some_and(|result| result.is_cleared || result.spilled_to.is_some()) {
                    true => 0,
                    false => {
                        let content = block.content();
                        content.blocks().iter().map(|part| self.media_bytes(entry, wanted, part)).sum()
                    }
                }
            }
            kind if is_accepted && MediaKind::of_block(kind) == Some(wanted) => {
                match self.derived().effects().is_stripped(entry, kind) {
                    true => 0,
                    false => block.raw().len(),
                }
            }
            _ => 0,
        }
    }
}
