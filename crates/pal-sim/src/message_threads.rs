//! Message threads: conversations held by the server, so that a request sends only new messages.
//!
//! A request that continues a thread is expanded to the whole request and answered as such. A thread expires
//! five minutes after its last use and can be continued once.

use std::collections::VecDeque;

use pal_model::{SharedText, Timestamp, member, object_fields, unescape};
use pal_wire::{ApiError, ApiErrorKind, Dialect, ResponseDecoder, ResponseEvent};
use xxhash_rust::xxh3::Xxh3;

use crate::HttpReply;

/// Expiry of an unused thread, in milliseconds.
const IDLE_MILLISECONDS: i64 = 5 * 60 * 1_000;
/// Maximum number of threads; the oldest is dropped first.
const THREADS_MAX: usize = 256;
/// Maximum bytes held by all threads.
const BYTES_MAX: usize = 256 << 20;
/// Parameters that must not change within a thread.
const FIXED: [&str; 6] = ["model", "thinking", "tool_choice", "cache_control", "output_config", "speed"];

/// All held threads.
#[derive(Debug, Default)]
pub(crate) struct MessageThreads {
    held: VecDeque<HeldThread>,
}

/// A conversation up to and including one response.
#[derive(Debug)]
struct HeldThread {
    response: String,
    scope: u64,
    used: Timestamp,
    is_continued: bool,
    fingerprint: u64,
    /// `system` and `tools`, raw, each followed by a comma.
    head: String,
    /// Messages including the response, raw, separated by commas.
    messages: String,
}

/// Client and time of a thread request.
#[derive(Clone, Copy)]
pub(crate) struct ThreadCaller {
    pub(crate) now: Timestamp,
    pub(crate) scope: u64,
}

/// A thread request expanded to the whole conversation.
pub(crate) struct ResolvedThread {
    /// Response id it continues.
    previous: Option<String>,
    pub(crate) body: String,
    head: String,
    messages: String,
    fingerprint: u64,
}

/// Fields of a request that names a thread.
pub(crate) struct ThreadRequest<'a> {
    fields: Vec<pal_model::JsonField<'a>>,
}

impl<'a> ThreadRequest<'a> {
    /// `None` if there is no thread or the body is invalid: then the usual validation reports the error.
    pub(crate) fn read(body: &'a [u8]) -> Option<ThreadRequest<'a>> {
        memchr::memmem::find(body, b"\"thread\"")?;
        let part = ThreadRequest { fields: object_fields(std::str::from_utf8(body).ok()?).ok()? };
        part.raw("thread").filter(|thread| thread.starts_with('{'))?;
        Some(part)
    }

    fn raw(&self, name: &str) -> Option<&'a str> {
        member(&self.fields, name)
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(unescape).map(|text| text.into_owned())
    }

    /// Response id to continue from; `None` starts a thread.
    fn previous(&self) -> Option<String> {
        let thread = object_fields(self.raw("thread")?).ok()?;
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

impl MessageThreads {
    /// Expands a thread request to the whole request.
    pub(crate) fn resolve(
        &mut self,
        wanted: &ThreadRequest<'_>,
        betas: u128,
        asker: ThreadCaller,
    ) -> Result<ResolvedThread, ApiError> {
        let ThreadCaller { now, scope } = asker;
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
                        ApiError::new(ApiErrorKind::NotFound, message).with_code("thread_not_found")
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
        Ok(ResolvedThread { previous, body, head, messages, fingerprint })
    }

    /// Stores the conversation after an answer.
    pub(crate) fn store(&mut self, whole: ResolvedThread, reply: &HttpReply, asker: ThreadCaller) {
        let Some(exchange) = &reply.exchange else { return };
        for held in &mut self.held {
            held.is_continued |= whole.previous.as_ref() == Some(&held.response);
        }
        let blocks = reply_blocks(reply);
        let mut messages = whole.messages;
        if !blocks.is_empty() {
            let blocks: Vec<&str> = blocks.iter().map(SharedText::as_str).collect();
            messages.push_str(&format!(r#",{{"role":"assistant","content":[{}]}}"#, blocks.join(",")));
        }
        self.held.push_back(HeldThread {
            response: exchange.response.clone(),
            scope: asker.scope,
            used: asker.now,
            is_continued: false,
            fingerprint: whole.fingerprint,
            head: whole.head,
            messages,
        });
        let bytes = |held: &HeldThread| held.head.len() + held.messages.len();
        let mut total: usize = self.held.iter().map(bytes).sum();
        while self.held.len() > THREADS_MAX || total > BYTES_MAX {
            let Some(oldest) = self.held.pop_front() else { break };
            total -= bytes(&oldest);
        }
    }
}

impl HeldThread {
    fn check(&self, fingerprint: u64) -> Result<(), ApiError> {
        let refuse = |message: &str, code| {
            Err(ApiError::new(ApiErrorKind::InvalidRequest, format!("thread: {message}")).with_code(code))
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

/// `tools` and `system`, raw, each followed by a comma.
fn head(wanted: &ThreadRequest<'_>) -> String {
    ["tools", "system"]
        .iter()
        .filter_map(|name| wanted.raw(name).map(|value| format!("\"{name}\":{value},")))
        .collect()
}

/// Contents of a JSON array, without brackets.
fn list(array: &str) -> &str {
    array.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().trim()
}

/// Blocks of a reply, as a client would keep them.
fn reply_blocks(reply: &HttpReply) -> Vec<SharedText> {
    let body = reply.body();
    let events = if reply.is_stream() {
        let mut events = Vec::new();
        let mut decoder = ResponseDecoder::new(Dialect::Messages);
        decoder.push(&body, &mut events);
        decoder.finish(&mut events);
        events
    } else {
        pal_wire::decode_response(Dialect::Messages, &body)
    };
    let blocks = events.into_iter().filter_map(|event| match event {
        ResponseEvent::Block { block, .. } => Some(block.raw().clone()),
        _ => None,
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{HttpRequest, ScriptedModel, SimSettings, SimulatedProvider};

    struct ThreadConversation {
        simulator: SimulatedProvider,
        now: i64,
    }

    impl ThreadConversation {
        fn new() -> ThreadConversation {
            let script =
                ScriptedModel::parse("[default]\ntext = \"{{count.messages}} messages: {{last_user}}\"\n")
                    .unwrap();
            ThreadConversation {
                simulator: SimulatedProvider::new(SimSettings::plain(), Box::new(script)),
                now: 1_000_000_000_000,
            }
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
        let mut talk = ThreadConversation::new();
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
    fn threads_refuse_second_continuations_changes_and_expiry() {
        let mut talk = ThreadConversation::new();
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
