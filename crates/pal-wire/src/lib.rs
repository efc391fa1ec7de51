//! The dialects of the providers: what goes over the wire, and whether it is right.
//!
//! Pure: bytes in, values out; no files, clock, network, environment or randomness.
//!
//! ```
//! use pal_wire::{Rules, check_request};
//!
//! let body = br#"{"model":"claude-opus-5-5","max_tokens":64,"messages":[]}"#;
//! let error = check_request(body, &Rules::newest()).unwrap_err();
//! assert_eq!(error.status, 400);
//! assert_eq!(error.message, "messages: at least one message is required");
//! ```

mod call;
mod check;
mod event;
mod failure;

pub use call::{Call, Conversation, Dialect, Piece};
pub use check::{
    ApiError, ApiVersion, Beta, Betas, Checked, Endpoint, ErrorKind, Node, NodeText, NodeType, Reading,
    Rules, check_request,
};
pub use event::{Delta, Event, Finished, Started};
pub use failure::{Failure, FailureKind};
