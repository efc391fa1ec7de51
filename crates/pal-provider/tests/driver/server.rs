//! A server that says exact bytes at exact moments and remembers what it was told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What the server does on a connection after it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Goes on as soon as the head of the request has come. Only as the first act.
    Early,
    /// Writes.
    Send(Vec<u8>),
    /// Writes one byte after the other.
    Trickle(Vec<u8>),
    /// Writes the same again and again until the client is gone.
    Flood(Vec<u8>),
    /// Writes the same again and again, with a pause behind each, until the client is gone.
    Repeat(Vec<u8>, Duration),
    /// Does nothing for a while.
    Pause(Duration),
    /// Reads another request.
    Next,
    /// Says nothing more and waits until the client is gone.
    Hang,
    /// Breaks the connection off, without a farewell.
    Reset,
}

/// A running server; it ends with this value.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    gone: Arc<Notify>,
    task: JoinHandle<()>,
}

/// What a server remembers.
#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<Vec<u8>>,
}

impl Server {
    /// The first connection is served by the first script, and so on; the last script serves all others, too.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
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
        Server { address, seen, gone, task }
    }

    /// Its base address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How often somebody connected.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Waits until a client that the server was waiting for, or talking to, is gone.
    pub(crate) async fn client_gone(&self) {
        self.gone.notified().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Act>, seen: Arc<Mutex<Seen>>, gone: Arc<Notify>) {
    let mut pending = Vec::new();
    let is_early = matches!(script.first(), Some(Act::Early));
    if !read_request(&mut stream, &mut pending, &seen, is_early).await {
        return gone.notify_one();
    }
    for act in script {
        let sent = match act {
            Act::Early => true,
            Act::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            Act::Trickle(bytes) => {
                let mut sent = true;
                for byte in bytes {
                    sent = sent && stream.write_all(&[byte]).await.is_ok();
                    tokio::task::yield_now().await;
                }
                sent
            }
            Act::Flood(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                false
            }
            Act::Repeat(bytes, pause) => {
                while stream.write_all(&bytes).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
                false
            }
            Act::Pause(time) => {
                tokio::time::sleep(time).await;
                true
            }
            Act::Next => read_request(&mut stream, &mut pending, &seen, false).await,
            Act::Hang => {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
                false
            }
            Act::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
        };
        if !sent {
            return gone.notify_one();
        }
    }
    let _ = stream.shutdown().await;
    // What the client still sends is read, or the farewell would become a reset.
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
}

/// Reads a request, whose body has a stated length, or only its head; false if the client left before that.
async fn read_request(
    stream: &mut TcpStream,
    pending: &mut Vec<u8>,
    seen: &Mutex<Seen>,
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

/// The lengths of head and body of the request at the beginning of what was received, if its head is whole.
fn request_bytes(received: &[u8]) -> Option<(usize, usize)> {
    let head = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some((head, length.map_or(0, |length| length.trim().parse().unwrap())))
}
