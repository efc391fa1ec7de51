//! The dialects of the providers: what goes over the wire, and whether it is right.
//!
//! Pure: bytes in, values out; no files, clock, network, environment or randomness. A [`Call`] goes out; its answer
//! becomes [`Event`]s through a [`Decoder`] or [`decode_whole`], or a [`Failure`] through [`classify`]; a [`RetryPolicy`]
//! says whether to try again.
//!
//! ```
//! use pal_wire::{Rules, check_request};
//!
//! let body = br#"{"model":"claude-opus-5-5","max_tokens":64,"messages":[]}"#;
//! let error = check_request(body, &Rules::newest()).unwrap_err();
//! assert_eq!(error.status, 400);
//! assert_eq!(error.message, "messages: at least one message is required");
//! ```

mod arguments;
mod call;
mod chat;
mod check;
mod classify;
mod counts;
mod decode;
mod encode;
mod event;
mod failure;
mod function;
mod kept;
mod limits;
mod message;
mod messages;
mod portion;
mod reader;
mod responses;
mod retry;
mod spell;
mod sse;

pub use call::{Call, Conversation, Dialect, Piece};
pub use chat::ChatServer;
pub use check::{
    ApiError, ApiVersion, Beta, Betas, Checked, Endpoint, ErrorKind, Node, NodeText, NodeType, Reading,
    Rules, check_request,
};
pub use classify::classify;
pub use decode::{Decoder, decode_whole};
pub use encode::Encoder;
pub use event::{Delta, Event, Finished, Started};
pub use failure::{Failure, FailureKind};
pub use limits::RateLimit;
pub use message::Breakpoints;
pub use messages::{
    betas, count_tokens_call, messages_call, messages_call_with, messages_headers, model_path, refresh,
    unparsed_input,
};
pub use retry::RetryPolicy;
