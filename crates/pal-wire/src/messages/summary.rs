//! What an answer says about itself as a whole: who answers, why it stopped, what it took, and everything else.

use std::collections::BTreeMap;

use pal_model::{Field, ResponseId, Text, Usage, escape_into, fields, member_string, unescape};
use smol_str::SmolStr;

use crate::reader::malformed;
use crate::{Failure, Finished, Started};

/// The members of an answer besides its blocks. Later values win, unless they are null. Members are kept by name, so
/// that a streamed answer and a whole one come to the same text.
#[derive(Debug)]
pub(crate) struct Summary {
    response: ResponseId,
    model: SmolStr,
    stop_reason: Option<SmolStr>,
    usage: BTreeMap<String, String>,
    extras: BTreeMap<String, String>,
}

impl Summary {
    /// Reads the message object but for its content.
    pub(crate) fn new(message: &[Field<'_>]) -> Result<Summary, Box<Failure>> {
        let string = |name: &str| member_string(message, name).filter(|text| !text.is_empty());
        let response = string("id").ok_or_else(|| malformed("the message has no id"))?;
        let mut summary = Summary {
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

    /// The id of the response.
    pub(crate) fn response(&self) -> &ResponseId {
        &self.response
    }

    /// Whether it is known why the model stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Takes one more member of the message, as the object itself or a later change has it.
    pub(crate) fn member(&mut self, key: &str, value: &str) -> Result<(), Box<Failure>> {
        match key {
            _ if value == "null" => {}
            "stop_reason" => {
                let reason = unescape(value).ok_or_else(|| malformed("stop_reason is not a string"))?;
                self.stop_reason = Some(SmolStr::new(reason));
            }
            "usage" => {
                for (key, value) in fields(value).map_err(|_| malformed("usage is not an object"))? {
                    keep(&mut self.usage, &key, value);
                }
            }
            _ => keep(&mut self.extras, key, value),
        }
        Ok(())
    }

    /// The first event of the answer.
    pub(crate) fn started(&self) -> Started {
        Started { response: self.response.clone(), model: self.model.clone(), usage: self.usage().1 }
    }

    /// The last event of the answer.
    pub(crate) fn finished(&mut self) -> Finished {
        let (raw, usage) = self.usage();
        if !self.usage.is_empty() {
            // The counts that we name are only a part of what is reported.
            self.extras.insert(String::from("usage"), raw);
        }
        Finished {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: self.stop_reason.clone(),
            usage,
            extras: Text::from(object(&self.extras)),
        }
    }

    /// The usage as it was reported, and as far as we read it.
    fn usage(&self) -> (String, Usage) {
        let raw = object(&self.usage);
        // Counts of odd types read as zero; an odd list of passes loses the passes, not the counts.
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
        members.insert(key.to_owned(), on_one_line(value));
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

/// JSON without line ends, which are white space wherever they stand in it: a log has one entry a line.
pub(crate) fn on_one_line(json: impl Into<String>) -> String {
    let json = json.into();
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        json.replace(['\n', '\r'], " ")
    } else {
        json
    }
}
