//! Results that were not sent yet, and the replacement of each.

use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, PriceTier, ToolKind, ToolUseId};
use pal_view::wire_id;
use serde::de::IgnoredAny;

use super::{FOLDER, PREVIEW, spill_text};
use crate::LayerContext;
use crate::condense::{CondenseMode, OutputFormat, OutputOrigin, condense_formats};
use crate::visible_call::VisibleCall;
use pal_model::text::group_digits;

/// A result that was not sent yet.
pub(super) struct UnsentResult {
    pub(super) id: ToolUseId,
    /// Tool name.
    pub(super) tool: String,
    /// Length of its text in characters.
    pub(super) characters: usize,
    /// Estimated tokens as shown now.
    pub(super) tokens: f64,
    /// True if an earlier decision covers it.
    pub(super) is_settled: bool,
    /// True if the model would see all of it.
    pub(super) is_whole: bool,
    /// True if the model sees that it was cleared.
    pub(super) is_cleared: bool,
    /// Replacement, if it is shortened.
    pub(super) replacement: Option<ResultReplacement>,
    whole: String,
    /// Number of images, documents and other media.
    media: usize,
    command: Option<String>,
    /// Spilled file that the result is a page of, and the page's first line.
    page: Option<(String, u64)>,
    /// Weight of its text, and of the visible part if an earlier decision covers it.
    weight: u64,
    settled_weight: u64,
}

/// Weight of a text for the budgets, in characters: text with more than one token for two characters, such as Chinese or
/// base64, weighs by its tokens.
pub(super) fn weigh(context: &LayerContext<'_>, text: &str) -> u64 {
    const CHARACTERS_PER_TOKEN: u64 = 2;
    let estimator = context.view.estimator();
    let tokens = estimator.total(estimator.text(text));
    (text.chars().count() as u64).max(CHARACTERS_PER_TOKEN * tokens)
}

/// Size of a text and the budget that it exceeds, in the unit that decides.
pub(super) fn describe_excess(characters: usize, weight: u64, most: u64) -> String {
    let (size, unit, most, of) = match characters as u64 == weight {
        true => (weight, "characters", most, ""),
        false => (weight / 2, "tokens", most / 2, " tokens"),
    };
    format!("{} {unit} is over {}{of}", group_digits(size), group_digits(most))
}

/// Replacement of a result.
pub(super) struct ResultReplacement {
    /// Path of the full text relative to the session's directory.
    pub(super) path: String,
    /// Replacement text.
    pub(super) text: String,
    /// Weight of that text.
    pub(super) weight: u64,
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
        let weight = weigh(context, &whole);
        let is_settled = context.view.is_spill_decided(id) || shown.is_cleared;
        let is_whole = shown.spilled_to.is_none() && !shown.is_cleared;
        Some(UnsentResult {
            id: id.clone(),
            tool: call.as_ref().map_or(String::from("tool"), |call| call.name.to_string()),
            characters,
            tokens: shown.tokens,
            is_settled,
            is_whole,
            is_cleared: shown.is_cleared,
            replacement: None,
            whole,
            media,
            command: call.as_ref().and_then(|call| call.command()).map(|command| command.into_owned()),
            page: call.and_then(|call| page(context, &call)),
            weight,
            settled_weight: if shown.spilled_to.is_some() { weight.min(PREVIEW as u64) } else { weight },
        })
    }

    /// Weight of the text that the model will read.
    pub(super) fn shown_weight(&self) -> u64 {
        match &self.replacement {
            Some(replacement) => replacement.weight,
            None if self.is_settled => self.settled_weight,
            None => self.weight,
        }
    }

    /// Estimated tokens that its replacement saves.
    pub(super) fn saved_tokens(&self, context: &LayerContext<'_>) -> f64 {
        let estimator = context.view.estimator();
        self.replacement.as_ref().map_or(0.0, |shown| (self.tokens - estimator.text(&shown.text)).max(0.0))
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
        if policy.spill && self.replacement.is_none() && self.weight > most {
            let excess = describe_excess(self.characters, self.weight, most);
            self.spill(context, PREVIEW, format!("{} result of {excess}", self.tool));
        }
    }

    /// Shortens it to `room` bytes if it is a page of a spilled file, otherwise to a preview, because the message is too
    /// long.
    pub(super) fn shorten(&mut self, context: &LayerContext<'_>, room: usize, reason: String) {
        match &self.page {
            Some((path, first_line)) => {
                let text = spill_text::of_page(&self.whole, room, *first_line);
                let path = path.clone();
                self.replace(context, path, text, reason, None);
            }
            // Its media would be lost with the text.
            None if self.media == 0 => self.spill(context, room.min(PREVIEW), reason),
            None => {}
        }
    }

    /// Condenses the result to about `aim` characters, unless it stays longer than `most`.
    fn condense(&mut self, context: &LayerContext<'_>, aim: usize, most: usize) {
        let asked = OutputOrigin { tool: &self.tool, command: self.command.as_deref() };
        let may_condense = |format: OutputFormat| match context.policy.condense_modes.mode(format) {
            CondenseMode::Always => true,
            // Over the limit it would be spilled, and its preview shows less.
            CondenseMode::Pressure => self.characters > most || lacks_room(context),
            CondenseMode::Never => false,
        };
        let Some(condensed) = condense_formats(asked, &self.whole, aim, &may_condense) else { return };
        let path = self.path();
        let text = spill_text::of_condensed(
            &condensed.text,
            &self.whole,
            &format!("{}/{path}", context.paths.directory),
        );
        if weigh(context, &text) > most as u64 {
            return;
        }
        let reason = format!(
            "{} result of {} characters, {}, is condensed",
            self.tool,
            group_digits(self.characters as u64),
            condensed.format.name()
        );
        let file = Some(self.whole.clone());
        self.replace(context, path, text, reason, file);
    }

    fn spill(&mut self, context: &LayerContext<'_>, preview: usize, reason: String) {
        let path = self.path();
        let file = format!("{}/{path}", context.paths.directory);
        let text = spill_text::of_result(&self.whole, &file, preview, self.media);
        let file = Some(self.whole.clone());
        self.replace(context, path, text, reason, file);
    }

    /// Sets a replacement if it is shorter than the original.
    fn replace(
        &mut self,
        context: &LayerContext<'_>,
        path: String,
        text: String,
        reason: String,
        file: Option<String>,
    ) {
        let weight = weigh(context, &text);
        if weight < self.weight {
            self.replacement = Some(ResultReplacement { path, text, weight, reason, file });
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

/// Returns true if the context with all new results whole is past its warning, or enters a higher price tier.
fn lacks_room(context: &LayerContext<'_>) -> bool {
    let view = context.view;
    let enters_tier = |tier: PriceTier| {
        let new = view.estimator().total(view.size().estimated);
        context.size > tier.above && context.size.saturating_sub(new) <= tier.above
    };
    context.size >= context.limits.warning || view.lens().card.price_tier.is_some_and(enters_tier)
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
