//! A collector for tests: takes what is posted to it over HTTP and keeps it by path.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Answer of a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// It takes everything.
    Takes,
    /// It refuses everything.
    Refuses,
    /// It listens and never answers.
    Silent,
}

/// Something that was posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posted {
    /// The path.
    pub path: String,
    /// The headers, as they came.
    pub headers: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A collector on a port of its own. Its threads end with the program.
#[derive(Debug)]
pub struct Collector {
    address: String,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Collector {
    /// Listens from now on. Panics if this machine has no port left.
    pub fn start(manner: Manner) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr().map(|address| format!("http://{address}")).unwrap_or_default();
        let posted = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&posted);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, manner, &kept));
            }
        });
        Collector { address, posted }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All that was posted so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bodies that were posted to a path.
    pub fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let posted = self.posted().into_iter().filter(|posted| posted.path == path);
        posted.map(|posted| posted.body).collect()
    }
}

/// Answers request after request, until the other side hangs up.
fn serve(stream: TcpStream, manner: Manner, kept: &Mutex<Vec<Posted>>) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    while let Some(posted) = read(&mut input) {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(posted);
        let status = match manner {
            Manner::Takes => "200 OK",
            Manner::Refuses => "403 Forbidden",
            Manner::Silent => continue,
        };
        if write!(out, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn read(input: &mut impl BufRead) -> Option<Posted> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            header => headers.push(header.to_owned()),
        }
    }
    let length = headers.iter().find_map(|header| {
        let (name, value) = header.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    });
    let mut body = Vec::new();
    input.take(length.unwrap_or(0)).read_to_end(&mut body).ok()?;
    Some(Posted { path, headers, body })
}
