//! Control messages on standard output and input: requests to the driving program, and their replies.
//!
//! Any thread may send a request and wait for its reply. A line is written whole, so lines of several threads never mix.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_hooks::HookHost;
use pal_mcp::{McpHost, McpMessageListener};
use pal_process::CancelToken;
use serde_json::{Value, json};

/// Poll interval of a wait that can be cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Writes one line.
type LineSink = Box<dyn Fn(&str) + Send + Sync>;

/// Reply to a request, or the reason why there is none.
type ControlReply = Result<Value, String>;

/// Channel of control messages.
pub(super) struct ControlChannel {
    write: LineSink,
    pending: Mutex<PendingRequests>,
    /// Listeners for messages of MCP servers, by server.
    listeners: Mutex<HashMap<String, McpMessageListener>>,
    count: AtomicU64,
}

/// Requests that wait for a reply.
#[derive(Default)]
struct PendingRequests {
    /// The input has ended: no reply can come.
    is_closed: bool,
    waiting: HashMap<String, PendingRequest>,
}

struct PendingRequest {
    reply: Sender<ControlReply>,
    /// Whether an interrupt ends the wait.
    is_interruptible: bool,
}

impl fmt::Debug for ControlChannel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ControlChannel").finish_non_exhaustive()
    }
}

impl ControlChannel {
    /// Channel on standard output.
    pub(super) fn on_stdout() -> Arc<ControlChannel> {
        ControlChannel::new(Box::new(|line| {
            let mut out = std::io::stdout().lock();
            // A reader that is gone is noticed by the event output.
            let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        }))
    }

    pub(super) fn new(write: LineSink) -> Arc<ControlChannel> {
        Arc::new(ControlChannel {
            write,
            pending: Mutex::default(),
            listeners: Mutex::default(),
            count: AtomicU64::new(0),
        })
    }

    fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request of the driving program.
    pub(super) fn respond(&self, request_id: &str, answer: ControlReply) {
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": request_id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": request_id, "error": error}),
        };
        (self.write)(&json!({"type": "control_response", "response": response}).to_string());
    }

    /// Delivers a reply of the driving program; one that is not awaited any more is dropped.
    pub(super) fn resolve(&self, response: &Value) {
        let id = response.get("request_id").and_then(Value::as_str).unwrap_or_default();
        let Some(waiting) = self.pending().waiting.remove(id) else { return };
        let reply = match response.get("subtype").and_then(Value::as_str) {
            Some("success") => Ok(response.get("response").cloned().unwrap_or_default()),
            _ => {
                let error = response.get("error").and_then(Value::as_str);
                Err(error.unwrap_or("the driving program reports an error without a text").to_owned())
            }
        };
        let _ = waiting.reply.send(reply);
    }

    /// Delivers a message that an MCP server of the driving program sends by itself.
    pub(super) fn deliver_server_message(&self, server: &str, message: &Value) -> Result<(), String> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listeners.get(server).ok_or_else(|| format!("no MCP server is named `{server}`"))?;
        listener(message.to_string());
        Ok(())
    }

    /// Asks the driving program and waits, until an interrupt or the end of the input.
    pub(super) fn ask(&self, request: &Value) -> ControlReply {
        self.request(request, None, true, &|| false)
    }

    /// Ends the waits that an interrupt ends.
    pub(super) fn interrupt(&self) {
        let mut pending = self.pending();
        let ids: Vec<String> = pending
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.is_interruptible)
            .map(|(id, _)| id.clone())
            .collect();
        let ended: Vec<(String, PendingRequest)> = ids
            .into_iter()
            .filter_map(|id| pending.waiting.remove(&id).map(|waiting| (id, waiting)))
            .collect();
        drop(pending);
        for (id, waiting) in ended {
            self.withdraw(&id);
            let _ = waiting.reply.send(Err(String::from("interrupted")));
        }
    }

    /// Ends all waits: the input has ended.
    pub(super) fn close(&self) {
        let mut pending = self.pending();
        pending.is_closed = true;
        for (_, waiting) in pending.waiting.drain() {
            let _ = waiting.reply.send(Err(String::from("the driving program closed the input")));
        }
    }

    /// Sends a request and waits for the reply.
    fn request(
        &self,
        request: &Value,
        limit: Option<Duration>,
        is_interruptible: bool,
        is_cancelled: &dyn Fn() -> bool,
    ) -> ControlReply {
        let id = format!("pal-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let (reply, replies) = channel();
        {
            let mut pending = self.pending();
            if pending.is_closed {
                return Err(String::from("the driving program closed the input"));
            }
            pending.waiting.insert(id.clone(), PendingRequest { reply, is_interruptible });
        }
        (self.write)(&json!({"type": "control_request", "request_id": id, "request": request}).to_string());
        let begun = Instant::now();
        loop {
            match replies.recv_timeout(POLL_INTERVAL) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Disconnected) => return Err(String::from("the request was dropped")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let is_late = limit.is_some_and(|limit| begun.elapsed() >= limit);
            if is_late || is_cancelled() {
                self.pending().waiting.remove(&id);
                self.withdraw(&id);
                let why = if is_late { "the driving program did not answer in time" } else { "interrupted" };
                return Err(why.to_owned());
            }
        }
    }

    /// Tells the driving program that a reply is not needed any more.
    fn withdraw(&self, id: &str) {
        (self.write)(&json!({"type": "control_cancel_request", "request_id": id}).to_string());
    }
}

impl HookHost for ControlChannel {
    fn call(
        &self,
        callback: &str,
        input: &str,
        tool_use_id: Option<&str>,
        limit: Duration,
        cancel: &CancelToken,
    ) -> Result<String, String> {
        let input: Value = serde_json::from_str(input).map_err(|error| error.to_string())?;
        let request = json!({
            "subtype": "hook_callback", "callback_id": callback, "input": input, "tool_use_id": tool_use_id,
        });
        let reply = self.request(&request, Some(limit), false, &|| cancel.is_cancelled())?;
        Ok(if reply.is_null() { String::from("{}") } else { reply.to_string() })
    }
}

impl McpHost for ControlChannel {
    fn deliver(&self, server: &str, message: &str) -> Result<String, String> {
        let message: Value = serde_json::from_str(message).map_err(|error| error.to_string())?;
        let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
        let mut reply = self.request(&request, None, false, &|| false)?;
        match reply.get_mut("mcp_response").map(Value::take) {
            Some(response) => Ok(response.to_string()),
            None => Err(String::from("the reply of the driving program has no `mcp_response`")),
        }
    }

    fn listen(&self, server: &str, listener: McpMessageListener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), listener);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel, and the lines that it writes.
    fn recorded() -> (Arc<ControlChannel>, std::sync::mpsc::Receiver<Value>) {
        let (sender, lines) = channel();
        let write = move |line: &str| {
            let _ = sender.send(serde_json::from_str(line).unwrap());
        };
        (ControlChannel::new(Box::new(write)), lines)
    }

    #[test]
    fn replies_find_their_requests_in_any_order() {
        let (control, lines) = recorded();
        let ask = |text: &'static str| {
            let control = Arc::clone(&control);
            std::thread::spawn(move || control.ask(&json!({"subtype": text})))
        };
        let waits: HashMap<String, _> =
            ["one", "two"].into_iter().map(|text| (text.to_owned(), ask(text))).collect();
        let mut asked: Vec<Value> = (0..2).map(|_| lines.recv().unwrap()).collect();
        asked.reverse();
        for request in &asked {
            let (id, text) = (&request["request_id"], &request["request"]["subtype"]);
            let response = match text.as_str() {
                Some("one") => json!({"subtype": "success", "request_id": id, "response": {"said": text}}),
                _ => json!({"subtype": "error", "request_id": id, "error": "no"}),
            };
            control.resolve(&response);
        }
        for (text, wait) in waits {
            let reply = wait.join().unwrap();
            match text.as_str() {
                "one" => assert_eq!(reply, Ok(json!({"said": "one"}))),
                _ => assert_eq!(reply, Err(String::from("no"))),
            }
        }
    }

    #[test]
    fn an_interrupt_withdraws_a_question_and_the_end_of_input_ends_all() {
        let (control, lines) = recorded();
        let asking = Arc::clone(&control);
        let wait = std::thread::spawn(move || asking.ask(&json!({"subtype": "can_use_tool"})));
        let asked = lines.recv().unwrap();
        control.interrupt();
        assert_eq!(wait.join().unwrap(), Err(String::from("interrupted")));
        let withdrawn = lines.recv().unwrap();
        assert_eq!(withdrawn["type"], "control_cancel_request");
        assert_eq!(withdrawn["request_id"], asked["request_id"]);
        control.close();
        assert!(control.deliver("calc", "{}").unwrap_err().contains("closed the input"));
    }

    #[test]
    fn a_hook_that_does_not_answer_in_time_fails() {
        let (control, lines) = recorded();
        let limit = Duration::from_millis(30);
        let said = control.call("hook_0", "{}", None, limit, &CancelToken::new());
        assert!(said.unwrap_err().contains("in time"));
        let asked = lines.recv().unwrap();
        assert_eq!(asked["request"]["callback_id"], "hook_0");
        assert_eq!(lines.recv().unwrap()["type"], "control_cancel_request");
    }
}
