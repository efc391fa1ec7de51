//! Small pieces of wire JSON: objects read field by field, and blocks written.

use std::borrow::Cow;

use pal_model::{BlockType, Content, Field, Text, escape_into, fields, member, unescape};

/// The fields of a block.
pub(crate) struct Object<'a>(pub(crate) Vec<Field<'a>>);

impl<'a> Object<'a> {
    /// The raw value of a field; the last one counts where a key is repeated.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.0, name)
    }

    /// The characters of a field that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }

    /// Whether every field is allowed, stands once and is spelled plainly.
    pub(crate) fn is_exact(&self, allowed: impl Fn(&str) -> bool) -> bool {
        self.0.iter().enumerate().all(|(at, (key, _))| {
            matches!(key, Cow::Borrowed(_))
                && allowed(key)
                && self.0[..at].iter().all(|(earlier, _)| earlier != key)
        })
    }

    /// The object with the allowed fields only, in the given order.
    pub(crate) fn rebuilt(&self, allowed: &[&str]) -> Text {
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
        Text::from(json)
    }
}

/// Writes a block.
pub(crate) struct Builder(String);

impl Builder {
    pub(crate) fn of_type(name: &str) -> Builder {
        let mut json = String::with_capacity(128);
        json.push_str(r#"{"type":"#);
        escape_into(&mut json, name);
        Builder(json)
    }

    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.key(name);
        escape_into(&mut self.0, value);
    }

    pub(crate) fn raw(&mut self, name: &str, value: &str) {
        self.key(name);
        self.0.push_str(value);
    }

    pub(crate) fn finish(mut self) -> Text {
        self.0.push('}');
        Text::from(self.0)
    }

    fn key(&mut self, name: &str) {
        self.0.push(',');
        escape_into(&mut self.0, name);
        self.0.push(':');
    }
}

/// The content of a tool result that is fit for the wire.
pub(crate) fn result_content(result: &Text) -> Content {
    let known = fields(result).map(Object).ok();
    let content = known.and_then(|known| known.get("content"));
    content.map_or(Content::default(), |raw| Content::parse(&result.slice_of(raw)))
}

/// A text block.
pub(crate) fn text_block(text: &str) -> Text {
    let mut block = Builder::of_type("text");
    block.string("text", text);
    block.finish()
}

/// A JSON array of raw items.
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

/// What a block says, as text, when it cannot be sent as what it is.
pub(crate) fn as_text(kind: BlockType, raw: &str) -> String {
    let name = kind.name().unwrap_or("unknown");
    format!("[{name} block, kept as text] {raw}")
}
