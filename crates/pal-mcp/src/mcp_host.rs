//! Servers that run inside the program that drives this one. That program passes their JSON-RPC messages on.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;

/// Bytes that fit into the pipe in either direction.
const PIPE_BYTES: usize = 1 << 16;
/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

/// Receives messages that a server sends by itself: JSON-RPC, one object each.
pub type McpMessageListener = Box<dyn Fn(String) + Send + Sync>;

/// The program that drives this one and runs MCP servers of its own.
pub trait McpHost: fmt::Debug + Send + Sync {
    /// Delivers a JSON-RPC message to a server and blocks until its reply. The reply to a notification is ignored.
    fn deliver(&self, server: &str, message: &str) -> Result<String, String>;

    /// Sets the listener for messages that a server sends by itself.
    fn listen(&self, server: &str, listener: McpMessageListener);
}

/// Opens a pipe to a server of the host. Needs a tokio runtime.
pub(crate) fn open_host_pipe(host: &Arc<dyn McpHost>, server: &str) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (input, mut output) = split(theirs);
    let (sender, mut replies) = unbounded_channel::<String>();
    let listener = sender.clone();
    host.listen(
        server,
        Box::new(move |message| {
            // Fails after the connection has ended.
            let _ = listener.send(message);
        }),
    );
    tokio::spawn(async move {
        while let Some(reply) = replies.recv().await {
            if output.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let (host, server) = (Arc::clone(host), server.to_owned());
    tokio::spawn(async move {
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let (host, server, sender) = (Arc::clone(&host), server.clone(), sender.clone());
            let id = request_id(&line);
            let is_notification = id.is_none();
            let delivery = spawn_blocking(move || deliver(host.as_ref(), &server, &line, id, &sender));
            // Requests may overlap, but a notification precedes what follows it.
            if is_notification {
                let _ = delivery.await;
            }
        }
    });
    ours
}

/// Delivers a message and passes the reply to a request on.
fn deliver(
    host: &dyn McpHost,
    server: &str,
    line: &str,
    id: Option<Value>,
    replies: &UnboundedSender<String>,
) {
    let reply = host.deliver(server, line);
    let Some(id) = id else { return };
    let reply = reply.unwrap_or_else(|why| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": INTERNAL_ERROR, "message": why}}).to_string()
    });
    // Fails after the connection has ended.
    let _ = replies.send(reply);
}

/// Id of a request; none for a notification or a reply.
fn request_id(line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    message.get("method")?;
    message.get("id").filter(|id| !id.is_null()).cloned()
}
