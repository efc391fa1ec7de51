//! Message threads: conversations that the server holds, so that a request carries only what is new.
//!
//! A request that continues a thread is put together with what is held into the whole request that it stands for, and
//! answered as that. What is held is forgotten five minutes after it was last used, and can be continued once.

use std::collections::VecDeque;

use pal_model::{Text, Timestamp, fields, member, unescape};
use pal_wire::{ApiError, Decoder, Dialect, ErrorKind, Event};
use xxhash_rust::xxh3::Xxh3;

use crate::Reply;

/// How long a thread waits for its continuation.
const IDLE_MILLISECONDS: i64 = 5 * 60 * 1_000;
/// Threads that are held at most; the oldest goes first.
const THREADS_MAX: usize = 256;
/// Bytes that all threads hold at most.
const BYTES_MAX: usize = 256 << 20;
/// Parameters that stay the same across a thread.
const FIXED: [&str; 6] = ["model", "thinking", "tool_choice", "cache_control", "output_config", "speed"];

/// The conversations that are held.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    held: VecDeque<Held>,
}

/// A conversation up to one response.
#[derive(Debug)]
struct Held {
    response: String,
    scope: u64,
    used: Timestamp,
    is_continued: bool,
    fingerprint: u64,
    /// `system` and `tools`, raw, each with a comma behind it.
    head: String,
    /// The messages, the response included, raw, with commas between them.
    messages: String,
}

/// Who asks, and when.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) now: Timestamp,
    pub(crate) scope: u64,
}

/// A request whose thread was resolved.
pub(crate) struct Whole {
    /// The response that it continues.
    previous: Option<String>,
    pub(crate) body: String,
    head: String,
    messages: String,
    fingerprint: u64,
}

/// The fields of a request that names a thread.
pub(crate) struct Part<'a> {
    fields: Vec<pal_model::Field<'a>>,
}

impl<'a> Part<'a> {
    /// None if there is no thread, or nothing that can be read: then the usual way says what is wrong.
    pub(crate) fn read(body: &'a [u8]) -> Option<Part<'a>> {
        memchr::memmem::find(body, b"\"thread\"")?;
        let part = Part { fields: fields(std::str::from_utf8(body).ok()?).ok()? };
        part.raw("thread").filter(|thread| thread.starts_with('{'))?;
        Some(part)
    }

    fn raw(&self, name: &str) -> Option<&'a str> {
        member(&self.fields, name)
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(unescape).map(|text| text.into_owned())
    }

    /// The response after which the thread goes on; none if it begins here.
    fn previous(&self) -> Option<String> {
        let thread = fields(self.raw("thread")?).ok()?;
        let previous = thread.iter().find(|(key, _)| key == "previous_message_id")?;
        unescape(previous.1).map(|id| id.into_owned())
    }

    fn fingerprint(&self, betas: u128) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&betas.to_le_bytes());
        for name in FIXED {
            hash.update(self.raw(name).unwrap_or_default().as_bytes());
            hash.update(&[0]);
        }
        hash.digest()
    }
}

impl Threads {
    /// The whole request that a part of a thread stands for.
    pub(crate) fn resolve(
        &mut self,
        wanted: &Part<'_>,
        betas: u128,
        asker: Asker,
    ) -> Result<Whole, ApiError> {
        let Asker { now, scope } = asker;
        self.held.retain(|held| now.milliseconds() - held.used.milliseconds() <= IDLE_MILLISECONDS);
        let fingerprint = wanted.fingerprint(betas);
        let new = list(wanted.raw("messages").unwrap_or("[]"));
        let previous = wanted.previous();
        let (head, messages) = match &previous {
            None => (head(wanted), new.to_owned()),
            Some(previous) => {
                let held = self
                    .held
                    .iter_mut()
                    .find(|held| held.response == *previous && held.scope == scope)
                    .ok_or_else(|| {
                        let message = format!(
                            "No thread can be continued from `{previous}`: it is unknown or has expired"
                        );
                        ApiError::new(ErrorKind::NotFound, message).with_code("thread_not_found")
                    })?;
                held.check(fingerprint)?;
                held.used = now;
                let joint = if held.messages.is_empty() || new.is_empty() { "" } else { "," };
                let messages = format!("{}{joint}{new}", held.messages);
                (held.head.clone(), messages)
            }
        };
        let mut body = String::with_capacity(head.len() + messages.len() + 1_024);
        body.push('{');
        for (key, value) in &wanted.fields {
            if !matches!(key.as_ref(), "thread" | "messages" | "system" | "tools") {
                pal_model::escape_into(&mut body, key);
                body.push_str(&format!(":{value},"));
            }
        }
        body.push_str(&format!("{head}\"messages\":[{messages}]}}"));
        Ok(Whole { previous, body, head, messages, fingerprint })
    }

    /// Keeps the conversation as it stands after an answer.
    pub(crate) fn hold(&mut self, whole: Whole, reply: &Reply, asker: Asker) {
        let Some(exchange) = &reply.exchange else { return };
        for held in &mut self.held {
            held.is_continued |= whole.previous.as_ref() == Some(&held.response);
        }
        let blocks = blocks_of(reply);
        let mut messages = whole.messages;
        if !blocks.is_empty() {
            let blocks: Vec<&str> = blocks.iter().map(Text::as_str).collect();
            messages.push_str(&format!(r#",{{"role":"assistant","content":[{}]}}"#, blocks.join(",")));
        }
        self.held.push_back(Held {
            response: exchange.response.clone(),
            scope: asker.scope,
            used: asker.now,
            is_continued: false,
            fingerprint: whole.fingerprint,
            head: whole.head,
            messages,
        });
        let bytes = |held: &Held| held.head.len() + held.messages.len();
        let mut total: usize = self.held.iter().map(bytes).sum();
        while self.held.len() > THREADS_MAX || total > BYTES_MAX {
            let Some(oldest) = self.held.pop_front() else { break };
            total -= bytes(&oldest);
        }
    }
}

impl Held {
    fn check(&self, fingerprint: u64) -> Result<(), ApiError> {
        let refuse = |message: &str, code| {
            Err(ApiError::new(ErrorKind::InvalidRequest, format!("thread: {message}")).with_code(code))
        };
        if self.is_continued {
            return refuse(
                "this response was continued already; start a new thread",
                "thread_already_continued",
            );
        }
        if self.fingerprint != fingerprint {
            return refuse(
                "the model, the betas or a parameter differ from those of the thread",
                "thread_fingerprint_mismatch",
            );
        }
        Ok(())
    }
}

/// `system` and `tools` as they stand, each with a comma behind it.
fn head(wanted: &Part<'_>) -> String {
    ["tools", "system"]
        .iter()
        .filter_map(|name| wanted.raw(name).map(|value| format!("\"{name}\":{value},")))
        .collect()
}

/// The inside of an array.
fn list(array: &str) -> &str {
    array.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().trim()
}

/// The blocks of an answer, as a client would keep them.
fn blocks_of(reply: &Reply) -> Vec<Text> {
    let body = reply.body();
    let events = if reply.is_stream() {
        let mut events = Vec::new();
        let mut decoder = Decoder::new(Dialect::Messages);
        decoder.push(&body, &mut events);
        decoder.finish(&mut events);
        events
    } else {
        pal_wire::decode_whole(Dialect::Messages, &body)
    };
    let blocks = events.into_iter().filter_map(|event| match event {
        Event::Block { block, .. } => Some(block.raw().clone()),
        _ => None,
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{HttpRequest, Script, Settings, Simulator};

    struct Talk {
        simulator: Simulator,
        now: i64,
    }

    impl Talk {
        fn new() -> Talk {
            let script =
                Script::parse("[default]\ntext = \"{{count.messages}} messages: {{last_user}}\"\n").unwrap();
            Talk { simulator: Simulator::new(Settings::plain(), Box::new(script)), now: 1_000_000_000_000 }
        }

        fn send(&mut self, body: &Value, betas: &str) -> (u16, Value) {
            let headers = [("anthropic-version", "2026-10-21"), ("anthropic-beta", betas)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            let body = body.to_string();
            let request = HttpRequest {
                method: "POST",
                path: "/v1/messages",
                headers: &headers,
                body: body.as_bytes(),
            };
            self.now += 1_000;
            let reply = self.simulator.handle(Timestamp::from_milliseconds(self.now), &request);
            (reply.status, serde_json::from_slice(&reply.body()).unwrap())
        }

        fn part(&mut self, text: &str, thread: &Value) -> (u16, Value) {
            let body = json!({"model": "claude-opus-5-5", "max_tokens": 100, "thread": thread,
                "messages": [{"role": "user", "content": text}]});
            self.send(&body, "message-threads-2026-08-12")
        }
    }

    fn said(answer: &Value) -> &str {
        answer["content"][0]["text"].as_str().unwrap_or_default()
    }

    fn code(answer: &Value) -> &str {
        answer["error"]["details"]["error_code"].as_str().unwrap_or_default()
    }

    #[test]
    fn a_thread_is_answered_as_the_whole_conversation() {
        let mut talk = Talk::new();
        let (_, first) = talk.part("one", &json!({"type": "create"}));
        assert_eq!(said(&first), "1 messages: one");
        let continued = json!({"type": "continue", "previous_message_id": first["id"]});
        let (status, second) = talk.part("two", &continued);
        assert_eq!((status, said(&second)), (200, "3 messages: two"));
        let whole = json!({"model": "claude-opus-5-5", "max_tokens": 100, "messages": [
            {"role": "user", "content": "one"}, {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": "two"}]});
        let (_, plain) = talk.send(&whole, "message-threads-2026-08-12");
        assert_eq!(plain["usage"]["input_tokens"], second["usage"]["input_tokens"]);
    }

    #[test]
    fn a_thread_ends_by_continuation_by_change_and_by_time() {
        let mut talk = Talk::new();
        let (_, first) = talk.part("one", &json!({"type": "create"}));
        let continued = json!({"type": "continue", "previous_message_id": first["id"]});
        let other = json!({"model": "claude-sonnet-5-5", "max_tokens": 100, "thread": continued,
            "messages": [{"role": "user", "content": "two"}]});
        let (status, changed) = talk.send(&other, "message-threads-2026-08-12");
        assert_eq!((status, code(&changed)), (400, "thread_fingerprint_mismatch"));
        assert_eq!(talk.part("two", &continued).0, 200);
        let (status, again) = talk.part("two", &continued);
        assert_eq!((status, code(&again)), (400, "thread_already_continued"));
        let (_, fresh) = talk.part("one", &json!({"type": "create"}));
        talk.now += 6 * 60 * 1_000;
        let late = json!({"type": "continue", "previous_message_id": fresh["id"]});
        let (status, gone) = talk.part("two", &late);
        assert_eq!((status, code(&gone)), (404, "thread_not_found"));
        let body = json!({"model": "claude-opus-5-5", "max_tokens": 100, "thread": {"type": "create"},
            "messages": [{"role": "user", "content": "x"}]});
        assert_eq!(talk.send(&body, "compact-2026-09-04").0, 400, "threads are behind a header");
    }
}
