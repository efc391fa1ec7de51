//! HTTP requests, replies and exchanges, independent of sockets.

use std::time::Duration;

use bytes::Bytes;
use pal_model::Usage;
use serde::Serialize;

/// An HTTP request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// HTTP method, such as `POST`.
    pub method: &'a str,
    /// Path with query.
    pub path: &'a str,
    /// Headers with lower-case names.
    pub headers: &'a [(String, String)],
    /// Request body.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// First header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Path without query.
    pub fn route(&self) -> &'a str {
        self.path.split_once('?').map_or(self.path, |(route, _)| route)
    }

    /// Query; empty if there is none.
    pub fn query(&self) -> &'a str {
        self.path.split_once('?').map_or("", |(_, query)| query)
    }
}

/// An HTTP reply with the time at which each chunk is sent.
#[derive(Clone, Debug)]
pub struct HttpReply {
    /// HTTP status; 0 drops the connection without a reply.
    pub status: u16,
    /// Reply headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body chunks in sending order.
    pub chunks: Vec<ReplyChunk>,
    /// How the body ends.
    pub ending: ReplyEnding,
    /// Exchange record, if a model answered.
    pub exchange: Option<ModelExchange>,
}

/// Record of a request that a model answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelExchange {
    /// Request number, counted from 1.
    pub number: u64,
    /// Request id.
    pub request: String,
    /// Response id.
    pub response: String,
    /// Requested model.
    pub model: String,
    /// Stop reason, in Messages terms.
    pub stop_reason: String,
    /// Token usage.
    pub usage: Usage,
    /// Cost in US dollars, if the card has prices.
    pub cost: Option<f64>,
    /// Cache outcome.
    pub cache: CacheOutcome,
}

/// Cache outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheOutcome {
    /// Breakpoints that counted.
    pub marks: usize,
    /// Positions from the breakpoint back to the longest entry found; 0 is the breakpoint itself.
    pub steps_back: Option<u64>,
    /// Number of entries written.
    pub written: usize,
    /// Tokens of the longest prefix of the request that was ever written in its scope.
    pub known: u64,
    /// True if that prefix has expired.
    pub lapsed: bool,
    /// First difference from the request it names as its predecessor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<PromptDifference>,
}

/// First difference between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum PromptDifference {
    /// Model or speed.
    Model,
    /// A tool.
    Tools {
        /// Tool index, counted from 0.
        tool: u32,
    },
    /// A system block, or another value the system layer depends on.
    System {
        /// System block index, counted from 0.
        block: u32,
    },
    /// Tool choice, thinking, effort or another parameter.
    Parameters,
    /// A block of a message.
    Messages {
        /// Message index, counted from 0.
        message: u32,
        /// Block index in the message, counted from 0.
        block: u32,
    },
}

impl HttpReply {
    /// True if the body is an event stream.
    pub fn is_stream(&self) -> bool {
        let is_type = |name: &str| name == "content-type";
        self.headers.iter().any(|(name, value)| is_type(name) && value.starts_with("text/event-stream"))
    }

    /// Concatenated chunks.
    pub fn body(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect()
    }
}

/// A chunk of a reply body.
#[derive(Clone, Debug)]
pub struct ReplyChunk {
    /// Sending time, counted from the request.
    pub at: Duration,
    /// Chunk bytes.
    pub bytes: Bytes,
}

/// How a reply body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnding {
    /// Complete.
    Whole,
    /// The connection breaks after the last chunk.
    Cut,
    /// Nothing follows and the connection stays open.
    Silent,
}
