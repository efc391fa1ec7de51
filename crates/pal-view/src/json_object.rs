//! Reading JSON objects field by field, and writing content blocks.

use std::borrow::Cow;

use pal_model::{BlockType, Content, JsonField, SharedText, escape_into, member, object_fields, unescape};

/// The fields of a JSON object.
pub(crate) struct JsonObject<'a>(pub(crate) Vec<JsonField<'a>>);

impl<'a> JsonObject<'a> {
    /// Raw value of a field; the last one counts where a key is repeated.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.0, name)
    }

    /// Value of a string field.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }

    /// Returns true if every field is allowed, occurs once and has no escapes in its name.
    pub(crate) fn is_exact(&self, allowed: impl Fn(&str) -> bool) -> bool {
        self.0.iter().enumerate().all(|(at, (key, _))| {
            matches!(key, Cow::Borrowed(_))
                && allowed(key)
                && self.0[..at].iter().all(|(earlier, _)| earlier != key)
        })
    }

    /// Rebuilds the object with the allowed fields only, in the given order.
    pub(crate) fn rebuilt(&self, allowed: &[&str]) -> SharedText {
        let mut json = String::from("{");
        for name in allowed {
            if let Some(value) = self.get(name) {
                if json.len() > 1 {
                    json.push(',');
                }
                escape_into(&mut json, name);
                json.push(':');
                json.push_str(value);
            }
        }
        json.push('}');
        SharedText::from(json)
    }
}

/// Writes a block.
pub(crate) struct BlockBuilder(String);

impl BlockBuilder {
    pub(crate) fn of_type(name: &str) -> BlockBuilder {
        let mut json = String::with_capacity(128);
        json.push_str(r#"{"type":"#);
        escape_into(&mut json, name);
        BlockBuilder(json)
    }

    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.key(name);
        escape_into(&mut self.0, value);
    }

    pub(crate) fn raw(&mut self, name: &str, value: &str) {
        self.key(name);
        self.0.push_str(value);
    }

    pub(crate) fn finish(mut self) -> SharedText {
        self.0.push('}');
        SharedText::from(self.0)
    }

    fn key(&mut self, name: &str) {
        self.0.push(',');
        escape_into(&mut self.0, name);
        self.0.push(':');
    }
}

/// Content of a cleaned tool result.
pub(crate) fn result_content(result: &SharedText) -> Content {
    let known = object_fields(result).map(JsonObject).ok();
    let content = known.and_then(|known| known.get("content"));
    content.map_or(Content::default(), |raw| Content::parse(&result.slice_of(raw)))
}

/// Builds a text block.
pub(crate) fn text_block(text: &str) -> SharedText {
    let mut block = BlockBuilder::of_type("text");
    block.string("text", text);
    block.finish()
}

/// Builds a JSON array of raw items.
pub(crate) fn array<T: AsRef<str>>(items: &[T]) -> String {
    let mut json = String::from("[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json.push_str(item.as_ref());
    }
    json.push(']');
    json
}

/// Renders a block as text, for a block that cannot be sent as its own type.
pub(crate) fn as_text(kind: BlockType, raw: &str) -> String {
    let name = kind.name().unwrap_or("unknown");
    format!("[{name} block, kept as text] {raw}")
}
