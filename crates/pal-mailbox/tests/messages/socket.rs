//! Messages between sessions.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_mailbox::{DeliverError, Envelope, ListenError, MESSAGE_BYTES_MAX, Mailbox, MessageSocket};
use tempfile::TempDir;

use super::{message, name, texts};

const LIMIT: Duration = Duration::from_secs(30);

/// A session that records what it receives.
struct ListeningSession {
    dir: TempDir,
    path: PathBuf,
    received: Arc<Mutex<Vec<Envelope>>>,
    socket: Option<MessageSocket>,
}

impl ListeningSession {
    fn new() -> ListeningSession {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/s.sock");
        let mut session = ListeningSession { dir, path, received: Arc::default(), socket: None };
        session.listen();
        session
    }

    fn listen(&mut self) {
        let received = Arc::clone(&self.received);
        let receive = move |message: Envelope| match message.text.as_str() {
            "no" => Err(String::from("not today")),
            _ => {
                received.lock().unwrap().push(message);
                Ok(())
            }
        };
        self.socket = Some(MessageSocket::listen(&self.path, receive).unwrap());
    }

    fn received(&self) -> Vec<String> {
        texts(self.received.lock().unwrap().iter())
    }
}

#[test]
fn acknowledged_messages_arrive_once() {
    let session = ListeningSession::new();
    let first = message("lead", "scout", "one");
    MessageSocket::post(&session.path, &first, LIMIT).unwrap();
    assert_eq!(session.received(), ["one"], "at once");
    MessageSocket::post(&session.path, &first, LIMIT).unwrap();
    let refused = message("lead", "scout", "no");
    for _ in 0..2 {
        let error = MessageSocket::post(&session.path, &refused, LIMIT).unwrap_err();
        assert!(matches!(&error, DeliverError::Refused { why, .. } if why == "not today"), "{error}");
    }
    let large = "x".repeat(MESSAGE_BYTES_MAX - 1000);
    MessageSocket::post(&session.path, &message("lead", "scout", &large), LIMIT).unwrap();
    assert_eq!(session.received(), ["one", &large]);
}

#[test]
fn socket_is_private_and_removed_on_drop() {
    let mut session = ListeningSession::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&session.path), mode(session.path.parent().unwrap())), (0o600, 0o700));
    let second = MessageSocket::listen(&session.path, |_| Ok(())).unwrap_err();
    assert!(matches!(second, ListenError::InUse { .. }), "{second}");
    session.socket = None;
    assert_eq!(fs::read_dir(session.path.parent().unwrap()).unwrap().count(), 0, "nothing is left");
    let nobody = MessageSocket::post(&session.path, &message("a", "b", "x"), LIMIT).unwrap_err();
    assert!(matches!(nobody, DeliverError::NoListener { .. }), "{nobody}");
}

#[test]
fn stale_socket_is_replaced_but_other_files_are_not() {
    let mut session = ListeningSession::new();
    session.socket = None;
    drop(UnixListener::bind(&session.path).unwrap());
    assert!(fs::metadata(&session.path).unwrap().file_type().is_socket(), "a socket without a listener");
    let nobody = MessageSocket::post(&session.path, &message("a", "b", "x"), LIMIT).unwrap_err();
    assert!(matches!(nobody, DeliverError::NoListener { .. }), "{nobody}");
    session.listen();
    MessageSocket::post(&session.path, &message("a", "b", "hello"), LIMIT).unwrap();
    assert_eq!(session.received(), ["hello"]);

    let file = session.path.with_file_name("file");
    fs::write(&file, "precious").unwrap();
    assert!(matches!(MessageSocket::listen(&file, |_| Ok(())), Err(ListenError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let long = session.dir.path().join("x".repeat(120));
    assert!(matches!(MessageSocket::listen(&long, |_| Ok(())), Err(ListenError::Path { .. })));
    let open = session.dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = MessageSocket::listen(&open.join("s"), |_| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("others may enter"), "{refused}");
}

#[test]
fn silent_or_malformed_clients_block_nothing() {
    let session = ListeningSession::new();
    let _silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&session.path).unwrap()).collect();
    let mut half = UnixStream::connect(&session.path).unwrap();
    half.write_all(b"{\"id\":").unwrap();
    let begun = Instant::now();
    MessageSocket::post(&session.path, &message("a", "b", "hello"), LIMIT).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    half.write_all(b"nonsense\n").unwrap();
    let mut answer = [0; 200];
    let read = half.read(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).contains("\"ok\":false"));
    let mut endless = UnixStream::connect(&session.path).unwrap();
    let sent = (0..64).try_for_each(|_| endless.write_all(&[b'x'; 16 * 1024]));
    let mut rest = String::new();
    let _ = endless.read_to_string(&mut rest);
    assert!(sent.is_err() || rest.contains("bytes"), "no memory for what never ends: {rest}");
    drop(session);
}

#[test]
fn unresponsive_session_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deaf.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let begun = Instant::now();
    let late = MessageSocket::post(&path, &message("a", "b", "x"), Duration::from_millis(100)).unwrap_err();
    assert!(matches!(late, DeliverError::Timeout { .. }), "{late}");
    assert!(late.to_string().contains("send the same message again"), "{late}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn concurrent_senders_arrive_once_and_in_order() {
    let session = ListeningSession::new();
    std::thread::scope(|scope| {
        for sender in ["a", "b", "c", "d"] {
            let path = &session.path;
            scope.spawn(move || {
                for number in 0..100 {
                    let message = message(sender, "x", &number.to_string());
                    MessageSocket::post(path, &message, LIMIT).unwrap();
                }
            });
        }
    });
    let received = session.received.lock().unwrap();
    for sender in ["a", "b", "c", "d"] {
        let numbers =
            received.iter().filter(|each| each.from == name(sender)).map(|each| each.text.to_string());
        assert!(numbers.eq((0..100).map(|number| number.to_string())), "of {sender}");
    }
}

#[test]
fn mailbox_prevents_duplicates_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mail) = (dir.path().join("run/s.sock"), dir.path().join("mail"));
    let once = message("lead", "scout", "once");
    for _ in 0..2 {
        let mut mailbox = Mailbox::open(&mail, &name("scout")).unwrap();
        let receive = move |message| mailbox.post(&message).map(drop).map_err(|error| error.to_string());
        let _socket = MessageSocket::listen(&path, receive).unwrap();
        MessageSocket::post(&path, &once, LIMIT).unwrap();
    }
    let mut inbox = pal_mailbox::Inbox::open(&mail, &name("scout")).unwrap();
    assert_eq!(inbox.take().unwrap().len(), 1);
}
