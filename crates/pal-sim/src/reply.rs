//! What comes in and what goes out, without a socket.

use std::time::Duration;

use bytes::Bytes;

/// A request as it came over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// The headers, names in lower case.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// The first header of a name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An answer: status, headers, and bytes with the moment at which they leave.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body, in the pieces in which it leaves.
    pub chunks: Vec<Chunk>,
    /// How it ends.
    pub ending: Ending,
}

impl Reply {
    /// The whole body as it was meant to arrive.
    pub fn body(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect()
    }
}

/// A piece of an answer.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When it leaves, counted from the request.
    pub at: Duration,
    /// Its bytes.
    pub bytes: Bytes,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// After the last byte.
    Whole,
    /// The connection breaks after the last chunk.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Silent,
}
