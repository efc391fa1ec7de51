//! Results that were not sent yet, and the replacement of each.

use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, ToolKind, ToolUseId};
use pal_view::wire_id;
use serde::de::IgnoredAny;

use super::{FOLDER, PREVIEW, spill_text};
use crate::LayerContext;
use crate::condense::{OutputOrigin, condense_output};
use crate::visible_call::VisibleCall;
use pal_model::text::group_digits;

/// A result that was not sent yet.
pub(super) struct UnsentResult {
    pub(super) id: ToolUseId,
    /// Tool name.
    pub(super) tool: String,
    /// Length of its text in characters.
    pub(super) characters: usize,
    /// True if an earlier decision covers it.
    pub(super) is_settled: bool,
    /// Replacement, if it is shortened.
    pub(super) replacement: Option<ResultReplacement>,
    whole: String,
    /// Number of images, documents and other media.
    media: usize,
    command: Option<String>,
    /// Spilled file that the result is a page of, and the page's first line.
    page: Option<(String, u64)>,
    /// Visible characters, if an earlier decision covers it.
    settled_characters: usize,
}

/// Replacement of a result.
pub(super) struct ResultReplacement {
    /// Path of the full text relative to the session's directory.
    pub(super) path: String,
    /// Replacement text.
    pub(super) text: String,
    pub(super) reason: String,
    /// Full text to write; `None` if it is already on disk.
    pub(super) file: Option<String>,
}

/// Results among these entries, each once, in order.
pub(super) fn results(context: &LayerContext<'_>, unsent: &[&LogEntry]) -> Vec<UnsentResult> {
    let mut found = Vec::new();
    for entry in unsent {
        let content = match &entry.body {
            EntryBody::User(user) => &user.content,
            EntryBody::Attachment(attachment) => &attachment.content,
            _ => continue,
        };
        for block in content.blocks().iter().filter(|block| block.kind() == BlockType::ToolResult) {
            found.extend(UnsentResult::of(context, entry, block));
        }
    }
    found
}

impl UnsentResult {
    fn of(context: &LayerContext<'_>, entry: &LogEntry, block: &ContentBlock) -> Option<UnsentResult> {
        let id = block.tool_use_id()?;
        let shown = context.view.result(id)?;
        if shown.entry.id != entry.id || shown.block.raw() != block.raw() {
            return None;
        }
        let call = VisibleCall::of(context.view, id);
        let (whole, media) = parts(block);
        let characters = whole.chars().count();
        let is_settled = context.view.is_spill_decided(id) || shown.is_cleared;
        Some(UnsentResult {
            id: id.clone(),
            tool: call.as_ref().map_or(String::from("tool"), |call| call.name.to_string()),
            characters,
            is_settled,
            replacement: None,
            whole,
            media,
            command: call.as_ref().and_then(|call| call.command()).map(|command| command.into_owned()),
            page: call.and_then(|call| page(context, &call)),
            settled_characters: if shown.spilled_to.is_some() { PREVIEW.min(characters) } else { characters },
        })
    }

    /// Number of characters that the model will read.
    pub(super) fn shown_characters(&self) -> usize {
        match &self.replacement {
            Some(replacement) => replacement.text.chars().count(),
            None if self.is_settled => self.settled_characters,
            None => self.characters,
        }
    }

    /// Decides about the result by its own size.
    pub(super) fn decide(&mut self, context: &LayerContext<'_>) {
        if self.page.is_some() {
            return;
        }
        let policy = context.policy;
        let most = policy.spill_characters_by_tool.get(self.tool.as_str()).copied();
        let most = context.budgets().scale(most.unwrap_or(policy.spill_characters));
        if policy.condense && self.media == 0 {
            let aim = context.budgets().scale(policy.condense_characters).min(most);
            self.condense(context, aim as usize, most as usize);
        }
        if policy.spill && self.replacement.is_none() && self.characters as u64 > most {
            let reason = format!(
                "{} result of {} characters is over {}",
                self.tool,
                group_digits(self.characters as u64),
                group_digits(most)
            );
            self.spill(context, reason);
        }
    }

    /// Shortens it because the message is too long; `room` is the room left for it in the message.
    pub(super) fn shorten(&mut self, context: &LayerContext<'_>, room: usize, reason: String) {
        match &self.page {
            Some((path, first_line)) => {
                let text = spill_text::of_page(&self.whole, room.max(PREVIEW), *first_line);
                let path = path.clone();
                self.replace(ResultReplacement { path, text, reason, file: None });
            }
            // Its media would be lost with the text.
            None if self.media == 0 => self.spill(context, reason),
            None => {}
        }
    }

    /// Condenses the result to about `aim` characters, unless it stays longer than `most`.
    fn condense(&mut self, context: &LayerContext<'_>, aim: usize, most: usize) {
        let asked = OutputOrigin { tool: &self.tool, command: self.command.as_deref() };
        let Some(condensed) = condense_output(asked, &self.whole, aim) else { return };
        let path = self.path();
        let text = spill_text::of_condensed(
            &condensed.text,
            &self.whole,
            &format!("{}/{path}", context.paths.directory),
        );
        if text.chars().count() > most {
            return;
        }
        let reason = format!(
            "{} result of {} characters, {}, is condensed",
            self.tool,
            group_digits(self.characters as u64),
            condensed.by
        );
        let file = Some(self.whole.clone());
        self.replace(ResultReplacement { path, text, reason, file });
    }

    fn spill(&mut self, context: &LayerContext<'_>, reason: String) {
        let path = self.path();
        let file = format!("{}/{path}", context.paths.directory);
        let text = spill_text::of_result(&self.whole, &file, PREVIEW, self.media);
        let file = Some(self.whole.clone());
        self.replace(ResultReplacement { path, text, reason, file });
    }

    /// Sets a replacement if it is shorter than the original.
    fn replace(&mut self, replacement: ResultReplacement) {
        if replacement.text.chars().count() < self.characters {
            self.replacement = Some(replacement);
        }
    }

    /// Path for the full text.
    fn path(&self) -> String {
        let first = self.whole.trim_start().as_bytes().first();
        let is_json =
            matches!(first, Some(b'{' | b'[')) && serde_json::from_str::<IgnoredAny>(&self.whole).is_ok();
        format!("{FOLDER}/{}.{}", file_name(&self.id), if is_json { "json" } else { "txt" })
    }
}

/// Converts an id to a file name.
fn file_name(id: &ToolUseId) -> String {
    let name = wire_id(id);
    if name.len() <= 100 {
        return name.into_owned();
    }
    // The invalid character forces a short name with a hash of the whole.
    wire_id(&ToolUseId::from(format!("{id}|").as_str())).into_owned()
}

/// Text of a result, and the number of its non-text parts.
fn parts(block: &ContentBlock) -> (String, usize) {
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

/// Spilled file that a call reads, and the first line of the page.
fn page(context: &LayerContext<'_>, call: &VisibleCall<'_>) -> Option<(String, u64)> {
    let folder = format!("{}/{FOLDER}/", context.paths.directory);
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
