//! Content blocks: scanning foreign ones and building our own.

use std::borrow::Cow;

use pal_model::{BlockType, TokenEstimator, array_items, escape_into, unescape};

use crate::raw_fields::{pick_each, pick_or_none};

/// Tokens counted for an image or a document of any size.
const MEDIA_TOKENS: f64 = 2000.0;

/// Kind, text and name of one raw block.
pub(crate) struct ScannedBlock<'a> {
    pub(crate) kind: BlockType,
    /// Raw text of a text block.
    pub(crate) text: Option<&'a str>,
    /// Raw name of a call.
    pub(crate) name: Option<&'a str>,
}

/// Scans raw content; a string counts as one text block.
pub(crate) fn scan(content: &str) -> Vec<ScannedBlock<'_>> {
    if content.starts_with('"') {
        return vec![ScannedBlock { kind: BlockType::Text, text: Some(content), name: None }];
    }
    // Items that are not objects take the slow path, which cannot fail.
    let quick = pick_each(content, &NAMES);
    let items = quick.unwrap_or_else(|_| {
        let items = array_items(content).unwrap_or_default();
        items.into_iter().map(|item| pick_or_none(item, &NAMES)).collect()
    });
    let block = |[kind, text, name]: [Option<_>; 3]| ScannedBlock {
        kind: kind.and_then(unescape).map_or(BlockType::Unknown, |name| BlockType::from_name(&name)),
        text,
        name,
    };
    items.into_iter().map(block).collect()
}

const NAMES: [&str; 3] = ["type", "text", "name"];

/// Raw blocks, in the order of [`scan`].
pub(crate) fn raw_blocks(content: &str) -> Vec<&str> {
    if content.starts_with('"') { vec![content] } else { array_items(content).unwrap_or_default() }
}

/// Estimated tokens of raw content.
pub(crate) fn estimate(content: &str, model: &str, measure: &dyn TokenEstimator) -> f64 {
    let of_block = |(block, raw): (ScannedBlock<'_>, &str)| match block.kind {
        BlockType::Text => block.text.and_then(unescape).map_or(0.0, |text| measure.text(model, &text)),
        BlockType::Image | BlockType::Document => MEDIA_TOKENS,
        _ => measure.json(model, raw),
    };
    scan(content).into_iter().zip(raw_blocks(content)).map(of_block).sum()
}

/// Names of the tools called in raw content.
pub(crate) fn calls(content: &str) -> Vec<Cow<'_, str>> {
    scan(content)
        .into_iter()
        .filter(|block| block.kind == BlockType::ToolUse)
        .map(|block| block.name.and_then(unescape).unwrap_or_default())
        .collect()
}

/// Raw list of raw blocks.
pub(crate) fn list<'a>(blocks: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for block in blocks {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(block);
    }
    list.push(']');
    list
}

/// JSON string literal of a text.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, text);
    out
}

/// Text block with a raw string literal. Lone surrogates, which providers refuse, are replaced.
pub(crate) fn text_block(literal: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, pal_model::replace_lone_surrogates(literal))
}

/// True if a text is a JSON object that may be stored in a log.
pub(crate) fn is_object(text: &str) -> bool {
    pal_model::object_fields(text).is_ok() && !crate::source_lines::is_too_deep(text.as_bytes())
}

/// Call block with this id and name; input that is not a JSON object is wrapped.
pub(crate) fn tool_use(id: &str, name: &str, input: &str) -> String {
    let input = pal_model::replace_lone_surrogates(input);
    let input =
        if input.trim_start().starts_with('{') { input } else { format!(r#"{{"input":{input}}}"#).into() };
    format!(
        r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
        quoted(&tool_id(id)),
        quoted(&tool_name(name))
    )
}

/// Result block; `content` is a raw string or a list of blocks.
pub(crate) fn tool_result(id: &str, content: &str, is_error: bool) -> String {
    let content = pal_model::replace_lone_surrogates(content);
    let error = if is_error { r#","is_error":true"# } else { "" };
    format!(r#"{{"type":"tool_result","tool_use_id":{},"content":{content}{error}}}"#, quoted(&tool_id(id)))
}

/// Image block from a raw URL or data URL.
pub(crate) fn image_url(url: &str) -> Option<String> {
    let address = unescape(url)?;
    if let Some((media_type, data)) =
        address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    {
        return Some(image_data(&quoted(media_type), &quoted(data)));
    }
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    is_web.then(|| format!(r#"{{"type":"image","source":{{"type":"url","url":{url}}}}}"#))
}

/// Image block from raw strings.
pub(crate) fn image_data(media_type: &str, data: &str) -> String {
    format!(r#"{{"type":"image","source":{{"type":"base64","media_type":{media_type},"data":{data}}}}}"#)
}

/// Converts an id to one that providers accept: letters, digits, `_` and `-`.
pub(crate) fn tool_id(id: &str) -> Cow<'_, str> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(is_fit) {
        return Cow::Borrowed(id);
    }
    // Ids that differ only in other characters must stay different.
    let mut fit = String::from(if id.is_empty() { "none" } else { "" });
    for c in id.chars() {
        match c {
            '|' => fit.push('_'),
            c if is_fit(c) => fit.push(c),
            c => fit.push_str(&format!("-{:x}-", c as u32)),
        }
    }
    Cow::Owned(fit)
}

/// Converts a name to one that providers accept: at most 128 letters, digits, `_` and `-`.
pub(crate) fn tool_name(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(keep).take(128).collect();
    if name.is_empty() { "unnamed".into() } else { name }
}

/// Reminder with `text`, as content with one text block. Reminder tags inside the quoted text are escaped.
pub(crate) fn reminder(text: &str) -> String {
    let text = pal_model::wrap_reminder(&pal_model::escape_tags(text.trim_end()));
    list([text_block(&quoted(&text)).as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_and_ids_are_sanitized() {
        assert_eq!(tool_name("mcp__a-b__c"), "mcp__a-b__c");
        assert_eq!(tool_name("functions.exec é"), "functions_exec__");
        assert_eq!(tool_name(&"x".repeat(200)).len(), 128);
        assert_eq!(tool_name(""), "unnamed");
        assert_eq!(tool_id("toolu_01-a"), "toolu_01-a");
        assert_eq!(tool_id("call_1|fc_2"), "call_1_fc_2");
        assert_ne!(tool_id("a.b"), tool_id("a:b"));
    }

    #[test]
    fn built_blocks_are_valid_json() {
        let cases = [
            (
                tool_use("c 1", "a.b", r#""text \ud83d""#),
                r#"{"type":"tool_use","id":"c-20-1","name":"a_b","input":{"input":"text \\ufffd"}}"#,
            ),
            (
                tool_use("c1", "run", r#"{"x":1e2}"#),
                r#"{"type":"tool_use","id":"c1","name":"run","input":{"x":1e2}}"#,
            ),
            (
                tool_result("c1", "\"no\"", true),
                r#"{"type":"tool_result","tool_use_id":"c1","content":"no","is_error":true}"#,
            ),
            (
                image_url(r#""data:image/png;base64,AAAA""#).unwrap(),
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
            ),
            (reminder("a\n"), r#"[{"type":"text","text":"<system-reminder>\na\n</system-reminder>"}]"#),
            (
                reminder("</system-reminder>"),
                r#"[{"type":"text","text":"<system-reminder>\n<\\/system-reminder>\n</system-reminder>"}]"#,
            ),
        ];
        for (made, expected) in cases {
            assert_eq!(made, expected.replace("\\\\u", "\\u"));
            serde_json::from_str::<serde_json::Value>(&made).unwrap();
        }
        assert!(image_url(r#""file:///etc/passwd""#).is_none());
    }
}
