//! Metadata of a response: id, model, stop reason, usage and other members.

use std::collections::BTreeMap;

use pal_model::{
    JsonField, ResponseId, SharedText, Usage, escape_into, member_string, object_fields, unescape,
};
use smol_str::SmolStr;

use crate::response_reader::malformed;
use crate::{ProviderFailure, ResponseEnd, ResponseStart};

/// Members of a response besides its blocks. Later values replace earlier ones unless they are null. Members are sorted
/// by name, so that a streamed and a complete response yield the same text.
#[derive(Debug)]
pub(crate) struct MessageMetadata {
    response: ResponseId,
    model: SmolStr,
    stop_reason: Option<SmolStr>,
    usage: BTreeMap<String, String>,
    extras: BTreeMap<String, String>,
}

impl MessageMetadata {
    /// Reads the message object without its content.
    pub(crate) fn new(message: &[JsonField<'_>]) -> Result<MessageMetadata, Box<ProviderFailure>> {
        let string = |name: &str| member_string(message, name).filter(|text| !text.is_empty());
        let response = string("id").ok_or_else(|| malformed("the message has no id"))?;
        let mut summary = MessageMetadata {
            response: ResponseId::from(response.as_ref()),
            model: SmolStr::new(string("model").unwrap_or_default()),
            stop_reason: None,
            usage: BTreeMap::new(),
            extras: BTreeMap::new(),
        };
        for (key, value) in message {
            match key.as_ref() {
                "id" | "type" | "role" | "model" | "content" => {}
                _ => summary.member(key, value)?,
            }
        }
        Ok(summary)
    }

    /// Returns the id of the response.
    pub(crate) fn response(&self) -> &ResponseId {
        &self.response
    }

    /// Returns true if the stop reason is known.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Sets a member of the message.
    pub(crate) fn member(&mut self, key: &str, value: &str) -> Result<(), Box<ProviderFailure>> {
        match key {
            _ if value == "null" => {}
            "stop_reason" => {
                let reason = unescape(value).ok_or_else(|| malformed("stop_reason is not a string"))?;
                self.stop_reason = Some(SmolStr::new(reason));
            }
            "usage" => {
                for (key, value) in object_fields(value).map_err(|_| malformed("usage is not an object"))? {
                    keep(&mut self.usage, &key, value);
                }
            }
            _ => keep(&mut self.extras, key, value),
        }
        Ok(())
    }

    /// Returns the first event of the response.
    pub(crate) fn started(&self) -> ResponseStart {
        ResponseStart { response: self.response.clone(), model: self.model.clone(), usage: self.usage().1 }
    }

    /// Returns the last event of the response.
    pub(crate) fn finished(&mut self) -> ResponseEnd {
        let (raw, usage) = self.usage();
        if !self.usage.is_empty() {
            // `Usage` holds only a part of what is reported.
            self.extras.insert(String::from("usage"), raw);
        }
        ResponseEnd {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: self.stop_reason.clone(),
            usage,
            extras: SharedText::from(object(&self.extras)),
        }
    }

    /// Returns the reported usage as raw JSON and parsed.
    fn usage(&self) -> (String, Usage) {
        let raw = object(&self.usage);
        // Malformed counts are zero; a malformed list of passes loses the passes, not the counts.
        let usage = serde_json::from_str(&raw).unwrap_or_else(|_| {
            let counts: BTreeMap<_, _> =
                self.usage.iter().filter(|(key, _)| key.ends_with("_tokens")).collect();
            serde_json::from_str(&object(counts)).unwrap_or_default()
        });
        (raw, usage)
    }
}

fn keep(members: &mut BTreeMap<String, String>, key: &str, value: &str) {
    if value != "null" {
        members.insert(key.to_owned(), without_line_breaks(value));
    }
}

fn object<'a>(members: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let mut object = String::from("{");
    for (key, value) in members {
        if object.len() > 1 {
            object.push(',');
        }
        escape_into(&mut object, key);
        object.push(':');
        object.push_str(value);
    }
    object.push('}');
    object
}

/// Replaces line breaks, which are white space in JSON, by spaces: a log has one entry per line.
pub(crate) fn without_line_breaks(json: impl Into<String>) -> String {
    let json = json.into();
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        json.replace(['\n', '\r'], " ")
    } else {
        json
    }
}
