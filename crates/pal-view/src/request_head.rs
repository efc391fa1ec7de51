//! The request head: tools and system blocks of the session's prefix.

use std::borrow::Cow;
use std::sync::Arc;

use pal_model::{
    Content, ContentBlock, JsonField, PromptPrefix, Role, SharedText, SystemBlockNote, array_items,
    object_fields, replace_lone_surrogates, unescape,
};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

use crate::estimate::Estimator;
use crate::json_object::{JsonObject, text_block};
use crate::token_category::{Category, CategoryTokens};
use crate::wire_block::{BlockCleaner, ReferableTool, WireBlockKind, is_shallow, wire_name};

/// Tools, system blocks and the context reminder before the first message.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestHead {
    pub(crate) tools: Vec<SharedText>,
    /// The tools' names, in order.
    pub(crate) tool_names: Vec<SmolStr>,
    /// Tools that a result may refer to: all of them, if the provider supports tool references.
    pub(crate) referable: Arc<[ReferableTool]>,
    pub(crate) system: Vec<SharedText>,
    /// Estimated tokens of each tool in the prefix, and of each system block.
    tool_tokens: Vec<f64>,
    system_tokens: Vec<f64>,
    /// Notes on the system blocks, one each.
    pub(crate) notes: Vec<SystemBlockNote>,
    pub(crate) context: Content,
    /// Tokens of a prompt that was sent but not recorded, at most a quarter of the window.
    pub(crate) unseen_tokens: u64,
    /// True if filler is sent in its place.
    fills_unseen: bool,
    pub(crate) sums: CategoryTokens,
}

/// The members `tools` and `system` of a request, each with a comma behind it.
#[derive(Clone, Debug)]
pub(crate) struct RenderedHead {
    pub(crate) tools: Arc<[SharedText]>,
    pub(crate) system: Arc<[SharedText]>,
    pub(crate) notes: Arc<[SystemBlockNote]>,
    pub(crate) text: SharedText,
    /// Byte offsets of a breakpoint in each tool, and in each system block.
    pub(crate) tool_marks: Arc<[usize]>,
    pub(crate) system_marks: Arc<[usize]>,
    /// Estimated raw tokens up to and including each tool, and each system block.
    pub(crate) tool_tokens: Arc<[f64]>,
    pub(crate) system_tokens: Arc<[f64]>,
    /// Total raw tokens. The unseen part was reported, not estimated, and is not included.
    pub(crate) tokens: f64,
    pub(crate) unseen_tokens: f64,
}

impl RequestHead {
    /// Renders the members. They are large and the same for every request, so this is done once.
    pub(crate) fn joined(&self, spelled_out: bool, estimator: &Estimator) -> RenderedHead {
        let (mut system, mut notes) = (self.system.clone(), self.notes.clone());
        let mut system_tokens = self.system_tokens.clone();
        if self.unseen_tokens > 0 {
            system.push(stand_in(self.unseen_tokens, spelled_out || self.fills_unseen, estimator));
            notes.push(SystemBlockNote { markable: true, ..SystemBlockNote::default() });
            system_tokens.push(0.0);
        }
        let mut json = String::new();
        let tool_marks = push_list(&mut json, "tools", &self.tools);
        let system_marks = push_list(&mut json, "system", &system);
        RenderedHead {
            tools: self.tools.as_slice().into(),
            system: system.into(),
            notes: notes.into(),
            text: SharedText::from(json),
            tool_marks: tool_marks.into(),
            system_marks: system_marks.into(),
            tool_tokens: sums_from(0.0, &self.tool_tokens),
            system_tokens: sums_from(self.sums[Category::ToolSchemas], &system_tokens),
            tokens: self.sums.total() - self.sums[Category::UnseenPrefix],
            unseen_tokens: self.unseen_tokens as f64,
        }
    }
}

/// Running sums of the items, starting from `before`.
fn sums_from(before: f64, items: &[f64]) -> Arc<[f64]> {
    let mut sum = before;
    let sums = items.iter().map(|tokens| {
        sum += tokens;
        sum
    });
    sums.collect()
}

/// Writes a member that is a list of objects; returns the byte offset for a breakpoint in each of them.
fn push_list(json: &mut String, name: &str, items: &[SharedText]) -> Vec<usize> {
    let mut marks = Vec::with_capacity(items.len());
    if items.is_empty() {
        return marks;
    }
    json.push_str(&format!(r#""{name}":["#));
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json.push_str(item);
        // An item is an object, so a breakpoint goes before its last character.
        marks.push(json.len() - 1);
    }
    json.push_str("],");
    marks
}

impl RequestHead {
    pub(crate) fn new(prefix: &PromptPrefix, cleaner: BlockCleaner<'_>) -> RequestHead {
        let mut head = RequestHead { context: prefix.context.clone(), ..RequestHead::default() };
        head.take_tools(&prefix.tools, cleaner);
        for (at, raw) in array_items(&prefix.system).unwrap_or_default().into_iter().enumerate() {
            let block = ContentBlock::parse(prefix.system.slice_of(raw));
            if let Some(clean) = cleaner.clean(&block, Role::System)
                && matches!(clean.part, WireBlockKind::Text | WireBlockKind::Reminder)
            {
                head.sums.add(Category::SystemPrompt, clean.tokens);
                head.system.push(clean.text);
                head.system_tokens.push(clean.tokens);
                let plain = || SystemBlockNote { markable: true, ..SystemBlockNote::default() };
                head.notes.push(prefix.notes.system.get(at).cloned().unwrap_or_else(plain));
            }
        }
        head.unseen_tokens = prefix.unseen_tokens.min(cleaner.card.window / 4);
        head.fills_unseen = prefix.notes.fills_unseen;
        head.sums.add(Category::UnseenPrefix, head.unseen_tokens as f64);
        head
    }

    fn take_tools(&mut self, tools: &SharedText, cleaner: BlockCleaner<'_>) {
        let mut names = FxHashSet::default();
        let items = array_items(tools).unwrap_or_default();
        let mut usable: Vec<SharedText> =
            items.iter().filter_map(|raw| tool(&tools.slice_of(raw), &mut names)).collect();
        if usable.iter().all(|tool| is_deferred(tool)) {
            // The provider requires at least one tool that is not deferred.
            for tool in &mut usable {
                *tool = without(tool, "defer_loading");
            }
        }
        let name_of =
            |tool: &SharedText| object_fields(tool).map(JsonObject).ok()?.string("name").map(SmolStr::new);
        self.tool_names = usable.iter().filter_map(name_of).collect();
        let finds = cleaner.card.can.tool_search;
        let mut referable = Vec::new();
        for tool in usable {
            let tokens = cleaner.estimator.json(&tool);
            // A deferred tool takes room where a result refers to it, not here.
            let (here, there) = if finds && is_deferred(&tool) { (0.0, tokens) } else { (tokens, 0.0) };
            self.sums.add(Category::ToolSchemas, here);
            self.tool_tokens.push(here);
            referable.extend(name_of(&tool).map(|name| ReferableTool { name, tokens: there }));
            self.tools.push(tool);
        }
        if finds {
            self.referable = referable.into();
        }
    }
}

/// Returns true if a tool is deferred: no part of the prefix until a result refers to it. Such a tool must
/// not carry a breakpoint.
pub fn is_deferred(tool: &str) -> bool {
    object_fields(tool).map(JsonObject).is_ok_and(|tool| tool.get("defer_loading") == Some("true"))
}

/// Removes one field of an object.
fn without(json: &SharedText, name: &str) -> SharedText {
    let Ok(known) = object_fields(json).map(JsonObject) else { return json.clone() };
    let others: Vec<&str> = known.0.iter().map(|(key, _)| key.as_ref()).filter(|key| *key != name).collect();
    known.rebuilt(&others)
}

/// Cleans a tool for the provider; `None` if it has no usable name or schema, or its name is taken.
fn tool(raw: &SharedText, names: &mut FxHashSet<String>) -> Option<SharedText> {
    let known = object_fields(raw).map(JsonObject).ok()?;
    let name = known.string("name")?;
    if wire_name(&name) != name || names.contains(name.as_ref()) {
        return None;
    }
    let kind = known.get("type").map(unescape);
    let tool = match kind.as_ref().map(Option::as_deref) {
        None | Some(Some("custom")) => custom_tool(raw, &known)?,
        Some(kind) => provider_tool(raw, &known, kind?, &name)?,
    };
    names.insert(name.into_owned());
    Some(match replace_lone_surrogates(&tool) {
        Cow::Owned(mended) => SharedText::from(mended),
        Cow::Borrowed(_) => tool,
    })
}

/// Cleans a tool that the client defines.
fn custom_tool(raw: &SharedText, known: &JsonObject<'_>) -> Option<SharedText> {
    known.get("input_schema").filter(|schema| is_schema(schema))?;
    let mut allowed = vec!["name", "description", "input_schema"];
    if known.string("description").is_none_or(|text| text.is_empty()) {
        allowed.retain(|name| *name != "description");
    }
    for name in ["type", "strict", "eager_input_streaming", "defer_loading"] {
        let flag = matches!(known.get(name), Some("true" | "false"));
        if (flag || name == "type") && known.get(name).is_some() {
            allowed.push(name);
        }
    }
    Some(if known.is_exact(|name| allowed.contains(&name)) { raw.clone() } else { known.rebuilt(&allowed) })
}

/// Accepts a tool that the provider defines. Its other fields vary by version and are not checked.
fn provider_tool(raw: &SharedText, known: &JsonObject<'_>, kind: &str, name: &str) -> Option<SharedText> {
    let flag = known.get("defer_loading").is_none_or(|raw| matches!(raw, "true" | "false"));
    let fits = is_provider_tool(kind, name) && known.is_exact(|name| name != "cache_control");
    (fits && flag && is_shallow(raw)).then(|| raw.clone())
}

/// Returns true if the provider defines a tool of this type (a word and a date) under this name.
fn is_provider_tool(kind: &str, name: &str) -> bool {
    const NAMES: [(&str, &str); 10] = [
        ("bash", "bash"),
        ("text_editor", "str_replace_based_edit_tool"),
        ("text_editor", "str_replace_editor"),
        ("memory", "memory"),
        ("code_execution", "code_execution"),
        ("web_search", "web_search"),
        ("web_fetch", "web_fetch"),
        ("tool_search_tool_regex", "tool_search_tool_regex"),
        ("tool_search_tool_bm25", "tool_search_tool_bm25"),
        ("computer", "computer"),
    ];
    let Some((word, date)) = kind.rsplit_once('_') else { return false };
    let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    is_date && NAMES.contains(&(word, name))
}

/// Returns true for the JSON schema of an object.
fn is_schema(json: &str) -> bool {
    let is_type = |(key, _): &&JsonField<'_>| key == "type";
    is_shallow(json)
        && object_fields(json).is_ok_and(|known| {
            let mut types = known.iter().filter(is_type).map(|(_, value)| unescape(value));
            types.next().flatten().as_deref() == Some("object") && types.next().is_none()
        })
}

/// Builds a system block in place of a prompt that was sent but not recorded: a note, or text of about
/// `tokens` tokens.
fn stand_in(tokens: u64, spelled_out: bool, estimator: &Estimator) -> SharedText {
    const LINE: &str = "This line stands in for a part of the prompt that the transcript does not hold.\n";
    let mut text = format!(
        "The transcript of this session does not hold its system prompt and tools, about {tokens} tokens.\n"
    );
    if spelled_out {
        let lines = (tokens as f64 - estimator.text(&text)).max(0.0) / estimator.text(LINE).max(1.0);
        text.push_str(&LINE.repeat(lines as usize));
    }
    text_block(&text)
}
