//! Conversion of rollout items to content blocks.

use std::borrow::Cow;
use std::fmt::Write;

use pal_model::{Usage, array_items, unescape};

use crate::content_blocks::{self, is_object, quoted, text_block, tool_name};
use crate::raw_fields::{count, pick_or_none, string};

/// Prefixes of user messages written by Codex.
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

/// True if a person typed this text. Content without text, such as an image, counts as typed.
pub(super) fn is_typed(text: &str) -> bool {
    let text = text.trim_start();
    !WRITTEN_BY_CODEX.iter().any(|start| text.starts_with(start))
}

/// Raw texts of a message.
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

/// Content blocks of a non-user message, as a list.
pub(super) fn blocks(payload: &str) -> String {
    let parts: Vec<String> = texts(payload).into_iter().map(text_block).collect();
    content_blocks::list(parts.iter().map(String::as_str))
}

/// Content blocks of a user message, each with its text.
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
            (None, Some(image)) => content_blocks::image_url(image).map(|block| (block, Cow::Borrowed(""))),
            (None, None) => Some((text_block(&quoted(part)), Cow::Borrowed(""))),
        }
    };
    parts.into_iter().filter_map(block).collect()
}

/// Tool name and block of a call.
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
    // Arguments are a JSON string; only an object can be used as input directly.
    let inner = unescape(raw).filter(|_| raw.starts_with('"'));
    let input = match inner {
        Some(inner) if is_object(&inner) => inner,
        Some(inner) if inner.trim().is_empty() => "{}".into(),
        _ => raw.into(),
    };
    let block = content_blocks::tool_use(&id, &name, &input);
    (name, block)
}

/// Result block of a call.
pub(super) fn output(payload: &str) -> String {
    let [call_id, output, tools] = pick_or_none(payload, &["call_id", "output", "tools"]);
    let id = string(call_id).unwrap_or_default();
    let raw = output.or(tools).unwrap_or("\"\"");
    if raw.starts_with('"') {
        return content_blocks::tool_result(&id, raw, false);
    }
    if raw.starts_with('[') && output.is_some() {
        let parts = array_items(raw).unwrap_or_default();
        let part = |part| {
            let [text, image] = pick_or_none(part, &["text", "image_url"]);
            match (text.filter(|text| text.starts_with('"')), image.and_then(content_blocks::image_url)) {
                (Some("\"\""), _) => None,
                (Some(text), _) => Some(text_block(text)),
                (None, Some(image)) => Some(image),
                (None, None) => Some(text_block(&quoted(part))),
            }
        };
        let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
        return content_blocks::tool_result(
            &id,
            &content_blocks::list(parts.iter().map(String::as_str)),
            false,
        );
    }
    // Older form: an object with the text and a success flag; otherwise JSON as text.
    let [content, success] = pick_or_none(raw, &["content", "success"]);
    match content.filter(|content| content.starts_with('"')) {
        Some(content) => content_blocks::tool_result(&id, content, success == Some("false")),
        None => content_blocks::tool_result(&id, &quoted(raw), false),
    }
}

/// Usage in our terms: Codex includes cache reads in the prompt tokens.
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

/// Message that replaces compacted content: the summary and the verbatim items.
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
