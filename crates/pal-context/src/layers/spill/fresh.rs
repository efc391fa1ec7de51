//! Results that no request covered yet, and what is to be done with each.

use pal_model::{Block, BlockType, Body, Entry, ToolKind, ToolUseId};
use pal_view::wire_id;
use serde::de::IgnoredAny;

use super::{FOLDER, PREVIEW, text};
use crate::Situation;
use crate::call::Call;
use crate::condense::{Asked, condense};
use crate::words::grouped;

/// A result that no request covered.
pub(super) struct Fresh {
    pub(super) id: ToolUseId,
    /// The name of the tool.
    pub(super) tool: String,
    /// Characters of its text.
    pub(super) characters: usize,
    /// Whether it was decided about before.
    pub(super) is_settled: bool,
    /// What shall stand in its place.
    pub(super) replacement: Option<Replacement>,
    whole: String,
    /// Pictures, documents and the like among its parts.
    media: usize,
    command: Option<String>,
    /// The spilled file that it is a page of, and the line on which the page begins.
    page: Option<(String, u64)>,
    /// Characters that are shown, if it was decided about before.
    settled_characters: usize,
}

/// What stands in place of a result.
pub(super) struct Replacement {
    /// Where the whole is, relative to the session's folder.
    pub(super) path: String,
    /// What the model reads.
    pub(super) text: String,
    pub(super) reason: String,
    /// What must be written; nothing if it is on disk already.
    pub(super) file: Option<String>,
}

/// The results among these entries, each once, in order.
pub(super) fn results(situation: &Situation<'_>, unsent: &[&Entry]) -> Vec<Fresh> {
    let mut found = Vec::new();
    for entry in unsent {
        let content = match &entry.body {
            Body::User(user) => &user.content,
            Body::Attachment(attachment) => &attachment.content,
            _ => continue,
        };
        for block in content.blocks().iter().filter(|block| block.kind() == BlockType::ToolResult) {
            found.extend(Fresh::of(situation, entry, block));
        }
    }
    found
}

impl Fresh {
    fn of(situation: &Situation<'_>, entry: &Entry, block: &Block) -> Option<Fresh> {
        let id = block.tool_use_id()?;
        let shown = situation.view.result(id)?;
        if shown.entry.id != entry.id || shown.block.raw() != block.raw() {
            return None;
        }
        let call = Call::of(situation.view, id);
        let (whole, media) = parts(block);
        let characters = whole.chars().count();
        let is_settled = situation.view.is_settled(id) || shown.is_cleared;
        Some(Fresh {
            id: id.clone(),
            tool: call.as_ref().map_or(String::from("tool"), |call| call.name.to_string()),
            characters,
            is_settled,
            replacement: None,
            whole,
            media,
            command: call.as_ref().and_then(|call| call.command()).map(|command| command.into_owned()),
            page: call.and_then(|call| page(situation, &call)),
            settled_characters: if shown.spilled_to.is_some() { PREVIEW.min(characters) } else { characters },
        })
    }

    /// Characters that the model will read of it.
    pub(super) fn shown_characters(&self) -> usize {
        match &self.replacement {
            Some(replacement) => replacement.text.chars().count(),
            None if self.is_settled => self.settled_characters,
            None => self.characters,
        }
    }

    /// Decides about the result alone.
    pub(super) fn decide(&mut self, situation: &Situation<'_>) {
        if self.page.is_some() {
            return;
        }
        let policy = situation.policy;
        let most = policy.spill_characters_by_tool.get(self.tool.as_str()).copied();
        let most = situation.budgets().of(most.unwrap_or(policy.spill_characters));
        if policy.condense && self.media == 0 {
            let aim = situation.budgets().of(policy.condense_characters).min(most);
            self.condense(situation, aim as usize, most as usize);
        }
        if policy.spill && self.replacement.is_none() && self.characters as u64 > most {
            let reason = format!(
                "{} result of {} characters is over {}",
                self.tool,
                grouped(self.characters as u64),
                grouped(most)
            );
            self.spill(situation, reason);
        }
    }

    /// Shows less of it, because the message is too long; `room` is what the message has left for it.
    pub(super) fn shorten(&mut self, situation: &Situation<'_>, room: usize, reason: String) {
        match &self.page {
            Some((path, first_line)) => {
                let text = text::of_page(&self.whole, room.max(PREVIEW), *first_line);
                let path = path.clone();
                self.replace(Replacement { path, text, reason, file: None });
            }
            // A picture would go with the text.
            None if self.media == 0 => self.spill(situation, reason),
            None => {}
        }
    }

    /// Shortens the result to about `aim` characters; what stays longer than `most` is spilled instead.
    fn condense(&mut self, situation: &Situation<'_>, aim: usize, most: usize) {
        let asked = Asked { tool: &self.tool, command: self.command.as_deref() };
        let Some(condensed) = condense(asked, &self.whole, aim) else { return };
        let path = self.path();
        let text = text::of_condensed(
            &condensed.text,
            &self.whole,
            &format!("{}/{path}", situation.place.directory),
        );
        if text.chars().count() > most {
            return;
        }
        let reason = format!(
            "{} result of {} characters, {}, is condensed",
            self.tool,
            grouped(self.characters as u64),
            condensed.by
        );
        let file = Some(self.whole.clone());
        self.replace(Replacement { path, text, reason, file });
    }

    fn spill(&mut self, situation: &Situation<'_>, reason: String) {
        let path = self.path();
        let file = format!("{}/{path}", situation.place.directory);
        let text = text::of_result(&self.whole, &file, PREVIEW, self.media);
        let file = Some(self.whole.clone());
        self.replace(Replacement { path, text, reason, file });
    }

    /// Takes a replacement if it is shorter than what it replaces.
    fn replace(&mut self, replacement: Replacement) {
        if replacement.text.chars().count() < self.characters {
            self.replacement = Some(replacement);
        }
    }

    /// Where the whole goes.
    fn path(&self) -> String {
        let first = self.whole.trim_start().as_bytes().first();
        let is_json =
            matches!(first, Some(b'{' | b'[')) && serde_json::from_str::<IgnoredAny>(&self.whole).is_ok();
        format!("{FOLDER}/{}.{}", file_name(&self.id), if is_json { "json" } else { "txt" })
    }
}

/// An id as the name of a file.
fn file_name(id: &ToolUseId) -> String {
    let name = wire_id(id);
    if name.len() <= 100 {
        return name.into_owned();
    }
    // A character that no wire takes makes it a short name with a hash of the whole.
    wire_id(&ToolUseId::from(format!("{id}|").as_str())).into_owned()
}

/// The text of a result, and how many of its parts are no text.
fn parts(block: &Block) -> (String, usize) {
    let mut texts = Vec::new();
    let mut media = 0;
    for part in block.content().blocks() {
        match part.kind() {
            BlockType::Text => texts.extend(part.string("text").map(|text| text.into_owned())),
            BlockType::Image | BlockType::Document | BlockType::ToolReference => media += 1,
            _ => texts.push(part.raw().to_string()),
        }
    }
    (texts.join("\n"), media)
}

/// Which spilled file a call reads, if it reads one, and from which line on.
fn page(situation: &Situation<'_>, call: &Call<'_>) -> Option<(String, u64)> {
    let folder = format!("{}/{FOLDER}/", situation.place.directory);
    let file = match call.kind {
        Some(ToolKind::Shell) => {
            let command = call.command()?;
            let at = command.find(&folder)? + folder.len();
            let rest = &command[at..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
            rest[..end.unwrap_or(rest.len())].to_owned()
        }
        _ => call.path()?.strip_prefix(&folder)?.to_owned(),
    };
    let first_line = call.member("offset").and_then(|offset| offset.parse().ok()).unwrap_or(1);
    Some((format!("{FOLDER}/{file}"), first_line))
}
