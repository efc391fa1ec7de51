//! Items of a rollout turned into content blocks.

use std::borrow::Cow;
use std::fmt::Write;

use pal_model::{Usage, array_items, unescape};

use crate::blocks::{self, is_object, quoted, text_block, tool_name};
use crate::pick::{count, pick_or_none, string};

/// What Codex writes on the user's side, by how it begins.
const WRITTEN_BY_CODEX: [&str; 10] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<skill>",
    "<skills_instructions>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<collaboration_mode>",
    "# AGENTS.md instructions",
];

/// Whether a person typed this text. What is no text, such as a picture, has no words and counts.
pub(super) fn is_typed(text: &str) -> bool {
    let text = text.trim_start();
    !WRITTEN_BY_CODEX.iter().any(|start| text.starts_with(start))
}

/// The raw texts of a message.
pub(super) fn texts(payload: &str) -> Vec<&str> {
    let [content] = pick_or_none(payload, &["content"]);
    let Some(content) = content else { return Vec::new() };
    if content.starts_with('"') {
        return vec![content];
    }
    let parts = array_items(content).unwrap_or_default();
    let text = |part| {
        let [text, refusal] = pick_or_none(part, &["text", "refusal"]);
        text.or(refusal).filter(|text| text.starts_with('"') && *text != "\"\"")
    };
    parts.into_iter().filter_map(text).collect()
}

/// The content blocks of a message that is not the user's, as a list.
pub(super) fn blocks(payload: &str) -> String {
    let parts: Vec<String> = texts(payload).into_iter().map(text_block).collect();
    blocks::list(parts.iter().map(String::as_str))
}

/// The content blocks of a user's message, each with its words.
pub(super) fn user_blocks(content: &str) -> Vec<(String, Cow<'_, str>)> {
    if content.starts_with('"') {
        return vec![(text_block(content), unescape(content).unwrap_or_default())];
    }
    let parts = array_items(content).unwrap_or_default();
    let block = |part| {
        let [text, image] = pick_or_none(part, &["text", "image_url"]);
        match (text.filter(|text| text.starts_with('"')), image) {
            (Some("\"\""), _) => None,
            (Some(text), _) => Some((text_block(text), unescape(text).unwrap_or_default())),
            (None, Some(image)) => blocks::image_url(image).map(|block| (block, Cow::Borrowed(""))),
            (None, None) => Some((text_block(&quoted(part)), Cow::Borrowed(""))),
        }
    };
    parts.into_iter().filter_map(block).collect()
}

/// A call: the tool's name, and the block.
pub(super) fn call(payload: &str) -> (String, String) {
    let names = ["type", "name", "namespace", "call_id", "id", "arguments", "input", "action"];
    let [kind, name, namespace, call_id, id, arguments, input, action] = pick_or_none(payload, &names);
    let name = match (string(name), string(kind)) {
        (Some(name), _) => name,
        (None, Some(kind)) => Cow::Owned(kind.trim_end_matches("_call").to_owned()),
        (None, None) => "".into(),
    };
    let name = match string(namespace) {
        Some(namespace) => tool_name(&format!("{namespace}__{}", name.trim_start_matches('_'))),
        None => tool_name(&name),
    };
    let id = string(call_id).or(string(id)).unwrap_or_default();
    let raw = arguments.or(input).or(action).unwrap_or("{}");
    // Arguments are a string with JSON in it; only an object can be an input as it stands.
    let inner = unescape(raw).filter(|_| raw.starts_with('"'));
    let input = match inner {
        Some(inner) if is_object(&inner) => inner,
        Some(inner) if inner.trim().is_empty() => "{}".into(),
        _ => raw.into(),
    };
    let block = blocks::tool_use(&id, &name, &input);
    (name, block)
}

/// The answer to a call.
pub(super) fn output(payload: &str) -> String {
    let [call_id, output, tools] = pick_or_none(payload, &["call_id", "output", "tools"]);
    let id = string(call_id).unwrap_or_default();
    let raw = output.or(tools).unwrap_or("\"\"");
    if raw.starts_with('"') {
        return blocks::tool_result(&id, raw, false);
    }
    if raw.starts_with('[') && output.is_some() {
        let parts = array_items(raw).unwrap_or_default();
        let part = |part| {
            let [text, image] = pick_or_none(part, &["text", "image_url"]);
            match (text.filter(|text| text.starts_with('"')), image.and_then(blocks::image_url)) {
                (Some("\"\""), _) => None,
                (Some(text), _) => Some(text_block(text)),
                (None, Some(image)) => Some(image),
                (None, None) => Some(text_block(&quoted(part))),
            }
        };
        let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
        return blocks::tool_result(&id, &blocks::list(parts.iter().map(String::as_str)), false);
    }
    // An older form: an object with the text and whether it went well; else JSON, as text.
    let [content, success] = pick_or_none(raw, &["content", "success"]);
    match content.filter(|content| content.starts_with('"')) {
        Some(content) => blocks::tool_result(&id, content, success == Some("false")),
        None => blocks::tool_result(&id, &quoted(raw), false),
    }
}

/// Usage as we count it: the prompt tokens here include those read from the cache.
pub(super) fn usage(raw: &str) -> Usage {
    let [input, cached, output] =
        pick_or_none(raw, &["input_tokens", "cached_input_tokens", "output_tokens"]);
    let (input, cached) = (count(input).unwrap_or(0), count(cached).unwrap_or(0));
    Usage {
        input_tokens: input.saturating_sub(cached),
        cache_read_input_tokens: cached.min(input),
        output_tokens: count(output).unwrap_or(0),
        ..Usage::default()
    }
}

/// The message that stands for a compaction: its summary, and what it kept word for word.
pub(super) fn summary(message: Option<&str>, history: Option<&str>) -> Option<String> {
    let items = history.and_then(|history| array_items(history).ok()).unwrap_or_default();
    if message.is_none() && items.is_empty() {
        return None;
    }
    let mut text = String::from("The session so far was compacted by Codex.");
    if let Some(message) = message {
        let _ = write!(text, " Its summary:\n\n{message}");
    }
    if !items.is_empty() {
        text.push_str("\n\nKept word for word, oldest first:");
    }
    for item in items {
        let [kind, role] = pick_or_none(item, &["type", "role"]);
        if string(kind).as_deref() == Some("compaction") {
            text.push_str("\n\n[A summary that only its provider can read.]");
            continue;
        }
        let role = string(role).unwrap_or("item".into());
        let words: Vec<Cow<'_, str>> = texts(item).into_iter().filter_map(unescape).collect();
        let words = if words.is_empty() { item.to_owned() } else { words.join("\n") };
        let _ = write!(text, "\n\n<{role}>\n{words}\n</{role}>");
    }
    Some(text)
}
