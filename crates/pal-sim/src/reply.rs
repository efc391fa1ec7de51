//! What comes in and what goes out, without a socket.

use std::time::Duration;

use bytes::Bytes;
use pal_model::Usage;
use serde::Serialize;

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

    /// The path without its query.
    pub fn route(&self) -> &'a str {
        self.path.split_once('?').map_or(self.path, |(route, _)| route)
    }

    /// The query; empty if there is none.
    pub fn query(&self) -> &'a str {
        self.path.split_once('?').map_or("", |(_, query)| query)
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
    /// What the exchange was, where a model answered, so that a caller in process need not parse the body.
    pub exchange: Option<Exchange>,
}

/// A request that a model answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    /// Which request of the simulator it was, counted from 1.
    pub number: u64,
    /// The id of the request.
    pub request: String,
    /// The id of the response.
    pub response: String,
    /// The model, as it was asked for.
    pub model: String,
    /// Why the answer stopped.
    pub stop_reason: String,
    /// What it took.
    pub usage: Usage,
    /// What that costs in US dollars, where the card has prices.
    pub cost: Option<f64>,
    /// What the cache did.
    pub cache: CacheStory,
}

/// What the cache did for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheStory {
    /// Marks that counted.
    pub marks: usize,
    /// Steps from the mark that found the longest entry back to that entry; 0 is the mark itself.
    pub steps_back: Option<u64>,
    /// Entries that were written.
    pub written: usize,
    /// Tokens of the longest beginning of the request that was ever written, by anybody who may be read from.
    pub known: u64,
    /// Whether that has expired.
    pub lapsed: bool,
    /// Where the request first differs from the one that it names as the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<Difference>,
}

/// Where two requests first differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Difference {
    /// The model, or the speed.
    Model,
    /// A tool, counted from 0.
    Tools {
        /// Which.
        tool: u32,
    },
    /// A system block, counted from 0, or what else the system layer depends on.
    System {
        /// Which.
        block: u32,
    },
    /// Choice of tools, thinking, effort, or another parameter.
    Parameters,
    /// A block of a message.
    Messages {
        /// Which message, counted from 0.
        message: u32,
        /// Which of its blocks, counted from 0.
        block: u32,
    },
}

impl Reply {
    /// Whether the body is a stream of events.
    pub fn is_stream(&self) -> bool {
        let is_type = |name: &str| name == "content-type";
        self.headers.iter().any(|(name, value)| is_type(name) && value.starts_with("text/event-stream"))
    }

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
