//! A server that sends exact bytes at exact times and records requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Server actions on a connection after a request.
#[derive(Clone, Debug)]
pub(crate) enum ServerAction {
    /// Continues as soon as the request's head has arrived. Only as the first action.
    Early,
    /// Writes bytes.
    Send(Vec<u8>),
    /// Writes byte by byte.
    Trickle(Vec<u8>),
    /// Writes the same bytes until the client is gone.
    Flood(Vec<u8>),
    /// Writes the same bytes, with a pause after each, until the client is gone.
    Repeat(Vec<u8>, Duration),
    /// Waits.
    Pause(Duration),
    /// Reads another request.
    Next,
    /// Sends nothing more and waits until the client is gone.
    Hang,
    /// Resets the connection.
    Reset,
}

/// A running server; stops when dropped.
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    seen: Arc<Mutex<ServerTraffic>>,
    gone: Arc<Notify>,
    task: JoinHandle<()>,
}

/// Connections and requests so far.
#[derive(Default)]
struct ServerTraffic {
    connections: usize,
    requests: Vec<Vec<u8>>,
}

impl ScriptedServer {
    /// Serves the first connection by the first script, and so on; the last script serves all later ones.
    pub(crate) async fn start(scripts: Vec<Vec<ServerAction>>) -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(ServerTraffic::default()));
        let gone = Arc::new(Notify::new());
        let state = (Arc::clone(&seen), Arc::clone(&gone));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            let mut scripts = scripts.into_iter();
            let mut script = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                script = scripts.next().unwrap_or(script);
                state.0.lock().unwrap().connections += 1;
                connections.spawn(serve(stream, script.clone(), Arc::clone(&state.0), Arc::clone(&state.1)));
            }
        });
        ScriptedServer { address, seen, gone, task }
    }

    /// Base address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Waits until the current client is gone.
    pub(crate) async fn client_gone(&self) {
        self.gone.notified().await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Vec<ServerAction>,
    seen: Arc<Mutex<ServerTraffic>>,
    gone: Arc<Notify>,
) {
    let mut pending = Vec::new();
    let is_early = matches!(script.first(), Some(ServerAction::Early));
    if !read_request(&mut stream, &mut pending, &seen, is_early).await {
        return gone.notify_one();
    }
    for act in script {
        let sent = match act {
            ServerAction::Early => true,
            ServerAction::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            ServerAction::Trickle(bytes) => {
                let mut sent = true;
                for byte in bytes {
                    sent = sent && stream.write_all(&[byte]).await.is_ok();
                    tokio::task::yield_now().await;
                }
                sent
            }
            ServerAction::Flood(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                false
            }
            ServerAction::Repeat(bytes, pause) => {
                while stream.write_all(&bytes).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
                false
            }
            ServerAction::Pause(time) => {
                tokio::time::sleep(time).await;
                true
            }
            ServerAction::Next => read_request(&mut stream, &mut pending, &seen, false).await,
            ServerAction::Hang => {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
                false
            }
            ServerAction::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
        };
        if !sent {
            return gone.notify_one();
        }
    }
    let _ = stream.shutdown().await;
    // Reads what the client still sends, since otherwise the close would become a reset.
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
}

/// Reads a request with a content length, or only its head; false if the client left first.
async fn read_request(
    stream: &mut TcpStream,
    pending: &mut Vec<u8>,
    seen: &Mutex<ServerTraffic>,
    is_early: bool,
) -> bool {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some((head, body)) = request_bytes(pending)
            && (is_early || pending.len() >= head + body)
        {
            let bytes = pending.len().min(head + body);
            let rest = pending.split_off(bytes);
            seen.lock().unwrap().requests.push(std::mem::replace(pending, rest));
            return true;
        }
        match stream.read(&mut buffer).await {
            Ok(bytes) if bytes > 0 => pending.extend_from_slice(&buffer[..bytes]),
            _ => return false,
        }
    }
}

/// Head and body lengths of the first request in `received`, if its head is complete.
fn request_bytes(received: &[u8]) -> Option<(usize, usize)> {
    let head = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some((head, length.map_or(0, |length| length.trim().parse().unwrap())))
}
