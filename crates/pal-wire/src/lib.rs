//! Provider dialects: encoding of requests, decoding of responses, and strict checking of requests.
//!
//! Pure: bytes in, values out; no files, clock, network, environment or randomness. An [`ApiCall`] goes out; its response
//! becomes [`ResponseEvent`]s through a [`ResponseDecoder`] or [`decode_response`], or a [`ProviderFailure`] through
//! [`classify_failure`]; a [`RetryPolicy`] decides on retries.
//!
//! ```
//! use pal_wire::{RequestRules, check_request};
//!
//! let body = br#"{"model":"claude-opus-5-5","max_tokens":64,"messages":[]}"#;
//! let error = check_request(body, &RequestRules::newest()).unwrap_err();
//! assert_eq!(error.status, 400);
//! assert_eq!(error.message, "messages: at least one message is required");
//! ```

mod api_call;
mod chat;
mod chunk_writer;
mod classify;
mod content_part;
mod conversation_message;
mod dialect_encoder;
mod encoded_messages;
mod messages;
mod model_list;
mod openai_usage;
mod provider_failure;
mod rate_limit;
mod request_validator;
mod response_decoder;
mod response_event;
mod response_reader;
mod responses;
mod retry_policy;
mod sse;
mod tool_arguments;
mod tool_function;

pub use api_call::{ApiCall, ConversationBlock, Dialect, WireConversation};
pub use chat::ChatServer;
pub use classify::classify_failure;
pub use conversation_message::BreakpointMode;
pub use dialect_encoder::DialectEncoder;
pub use messages::{TASK_BUDGET_BETA, beta_headers, count_tokens_call, messages_call, unparsed_input};
pub use model_list::{
    ModelListPage, ModelListing, model_list_headers, model_list_path, model_list_table, parse_model_list,
};
pub use provider_failure::{FailureKind, ProviderFailure};
pub use rate_limit::RateLimit;
pub use request_validator::{
    ApiError, ApiErrorKind, ApiVersion, Beta, BetaSet, JsonNode, MessagesEndpoint, NodeText, NodeType,
    RequestDocument, RequestRules, RequestStats, check_request,
};
pub use response_decoder::{ResponseDecoder, decode_response};
pub use response_event::{BlockDelta, ResponseEnd, ResponseEvent, ResponseStart};
pub use retry_policy::RetryPolicy;
