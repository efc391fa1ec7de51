//! HTTP driver for all dialects: keys, retries, streams, timeouts.
//!
//! [`pal_wire`] encodes calls and decodes answers; this crate sends and receives the bytes and knows no dialect. It is
//! the only crate that holds keys.
//!
//! ```no_run
//! use pal_provider::{
//!     ANTHROPIC_ADDRESS, AnswerProgress, ApiKey, ClientPolicy, ProviderClient, ProviderEndpoint,
//! };
//! use pal_wire::{ApiCall, BlockDelta, Dialect, ResponseEvent};
//!
//! # async fn talk(call: ApiCall, key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = ProviderEndpoint::new(Dialect::Messages, ANTHROPIC_ADDRESS, Some(ApiKey::api(key)))?;
//! let client = ProviderClient::new(endpoint, ClientPolicy::patient())?;
//! let mut answer = client.send(call);
//! while let Some(progress) = answer.next().await {
//!     match progress {
//!         AnswerProgress::Event(ResponseEvent::BlockDelta { delta: BlockDelta::Text(text), .. }) => print!("{text}"),
//!         AnswerProgress::Event(ResponseEvent::Finished(finished)) => println!("\n{:?}", finished.usage),
//!         AnswerProgress::Event(ResponseEvent::Failed(failure)) => return Err(failure.into()),
//!         AnswerProgress::Event(_) => {}
//!         AnswerProgress::Waiting(wait) => {
//!             let seconds = wait.remaining.as_secs();
//!             eprintln!("{}; attempt {} of {} in {seconds} s", wait.failure, wait.attempt, wait.max_attempts);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Course of a call
//!
//! 1. The body is sent in parts, with its exact length; it is never joined in one buffer.
//! 2. The head of the answer arrives. Any status but success is an error: at most 64 KB of it are read, for at most
//!    5 s, and it becomes a typed [`ProviderFailure`](pal_wire::ProviderFailure). Redirects are not followed.
//! 3. The body is decoded by its actual format, not by the requested one: a stream as it arrives, JSON as a whole.
//! 4. Events are returned as they arrive; the last one is always `Finished` or `Failed`.
//!
//! A failed attempt is followed by another one if [`RetryPolicy`](pal_wire::RetryPolicy) allows it and **nothing was shown**.
//! Shown: a delta with at least one character, a complete block, and the opening of a block that names a tool. Not
//! shown: `Started`, the opening of any other block, an empty delta, a ping. A failed attempt may thus have returned
//! `Started` and `Opened`; the [`RetryWait`] that follows makes them void. Once something was shown, a failure is
//! final: received content is kept and nothing is repeated.
//!
//! No task is spawned. Dropping an [`AnswerStream`] cancels the request, closes its connection and ends its waits.
//!
//! # Limits
//!
//! Every phase of an attempt has a time limit, so that no server can hold a caller for ever
//! ([`AttemptTimeouts`] gives the reasons). A model on this machine or in its network gets 20 min to the head
//! ([`AttemptTimeouts::local`]).
//!
//! | for | by default | then |
//! | --- | --- | --- |
//! | a connection: name lookup, TCP, TLS | 10 s | `Connection` |
//! | the next 64 KB of the request to be taken | 30 s | `Silent` |
//! | the head of a streamed answer, counted from the end of the request | 3 min | `Silent` |
//! | the first content of an answer; a ping is none | 20 min | `Silent` |
//! | the next byte of the body; a ping is one | 90 s | `Silent` |
//! | the next content; a ping is none | 20 min | `Silent` |
//! | the whole answer | 1 h | `Deadline` |
//!
//! A `Silent` attempt is retried at most twice, independent of the policy; one that met its `Deadline` is not retried.
//!
//! | size of | at most | then |
//! | --- | --- | --- |
//! | the headers | what hyper takes, 100 headers and 400 KB | `Connection` |
//! | a refusal | 64 KB, read for 5 s | as its status says |
//! | one event of a stream | 16 MB | `Malformed` |
//! | text, thinking and tool input of an answer; an answer that is not streamed | 32 MB | `AnswerTooLarge` |
//! | an answer on the wire | three times that | `AnswerTooLarge` |
//! | blocks of an answer | 10,000 | `AnswerTooLarge` |
//!
//! # Outcomes
//!
//! Outcomes with the default of two retries, that is, at most three attempts. Columns: the fault, on every attempt
//! unless it says "once"; the requested form, a stream or a whole answer; the time of the fault, before or after
//! something was shown; the [`FailureKind`](pal_wire::FailureKind), or `Finished`; the number of requests sent; the part
//! of the answer shown to the caller. A test checks this table row by row.
//!
//! | fault | asked | when | outcome | attempts | shown |
//! | --- | --- | --- | --- | --- | --- |
//! | none | stream | | `Finished` | 1 | all |
//! | none | whole | | `Finished` | 1 | all |
//! | connection refused | stream | before | `Connection` | 3 | nothing |
//! | connection refused | whole | before | `Connection` | 3 | nothing |
//! | closed without a word | stream | before | `Connection` | 3 | nothing |
//! | closed without a word | whole | before | `Connection` | 3 | nothing |
//! | reset without a word | stream | before | `Connection` | 3 | nothing |
//! | reset without a word | whole | before | `Connection` | 3 | nothing |
//! | not HTTP | stream | before | `Connection` | 3 | nothing |
//! | flood of headers | stream | before | `Connection` | 3 | nothing |
//! | silence before the head | stream | before | `Silent` | 3 | nothing |
//! | silence before the head | whole | before | `Silent` | 3 | nothing |
//! | status 400 | stream | before | `Invalid` | 1 | nothing |
//! | status 400 | whole | before | `Invalid` | 1 | nothing |
//! | prompt too long | stream | before | `TooLong` | 1 | nothing |
//! | prompt too long | whole | before | `TooLong` | 1 | nothing |
//! | status 401 | stream | before | `Authentication` | 1 | nothing |
//! | status 402 | stream | before | `Billing` | 1 | nothing |
//! | status 403 | stream | before | `Permission` | 1 | nothing |
//! | status 404 | stream | before | `NotFound` | 1 | nothing |
//! | status 409 | stream | before | `Conflict` | 3 | nothing |
//! | status 413 | stream | before | `TooLarge` | 1 | nothing |
//! | status 413 while the body is sent | stream | before | `TooLarge` | 1 | nothing |
//! | status 429 | stream | before | `RateLimited` | 3 | nothing |
//! | status 429 | whole | before | `RateLimited` | 3 | nothing |
//! | spend limit reached | stream | before | `Billing` | 1 | nothing |
//! | status 500 | stream | before | `Server` | 3 | nothing |
//! | status 500 | whole | before | `Server` | 3 | nothing |
//! | status 504 | stream | before | `Timeout` | 3 | nothing |
//! | status 529 | stream | before | `Overloaded` | 3 | nothing |
//! | status 529 | whole | before | `Overloaded` | 3 | nothing |
//! | status 529 once | stream | before | `Finished` | 2 | all |
//! | status 529 once | whole | before | `Finished` | 2 | all |
//! | status 502 with a web page | stream | before | `Server` | 3 | nothing |
//! | status 500 without an end | stream | before | `Server` | 3 | nothing |
//! | status 500 that floods | stream | before | `Server` | 3 | nothing |
//! | status 500 that breaks off | whole | before | `Server` | 3 | nothing |
//! | redirect | stream | before | `Invalid` | 1 | nothing |
//! | status 204 | stream | before | `Malformed` | 3 | nothing |
//! | status 204 | whole | before | `Malformed` | 3 | nothing |
//! | empty body | stream | before | `Cut` | 3 | nothing |
//! | empty body | whole | before | `Cut` | 3 | nothing |
//! | web page | stream | before | `Malformed` | 3 | nothing |
//! | web page | whole | before | `Malformed` | 3 | nothing |
//! | plain text | stream | before | `Malformed` | 3 | nothing |
//! | error with status 200 | stream | before | `Overloaded` | 3 | nothing |
//! | error with status 200 | whole | before | `Overloaded` | 3 | nothing |
//! | whole answer instead of a stream | stream | | `Finished` | 1 | all |
//! | stream instead of a whole answer | whole | | `Finished` | 1 | all |
//! | wrong content type | stream | | `Finished` | 1 | all |
//! | wrong content type | whole | | `Finished` | 1 | all |
//! | compressed | stream | | `Finished` | 1 | all |
//! | compressed | whole | | `Finished` | 1 | all |
//! | broken compression | stream | before | `Malformed` | 3 | nothing |
//! | broken compression | whole | before | `Malformed` | 3 | nothing |
//! | closed | stream | before | `Cut` | 3 | nothing |
//! | closed | stream | after | `Cut` | 1 | half |
//! | closed | whole | before | `Cut` | 3 | nothing |
//! | closed once | stream | before | `Finished` | 2 | all |
//! | closed once | whole | before | `Finished` | 2 | all |
//! | closed, of unknown length | stream | before | `Cut` | 3 | nothing |
//! | closed, of unknown length | stream | after | `Cut` | 1 | half |
//! | reset | stream | before | `Cut` | 3 | nothing |
//! | reset | stream | after | `Cut` | 1 | half |
//! | reset | whole | before | `Cut` | 3 | nothing |
//! | silence | stream | before | `Silent` | 3 | nothing |
//! | silence | stream | after | `Silent` | 1 | half |
//! | silence | whole | before | `Silent` | 3 | nothing |
//! | pings, then silence | stream | after | `Silent` | 1 | half |
//! | error event | stream | before | `Overloaded` | 3 | nothing |
//! | error event | stream | after | `Overloaded` | 1 | half |
//! | malformed | stream | before | `Malformed` | 3 | nothing |
//! | malformed | stream | after | `Malformed` | 1 | half |
//! | malformed | whole | before | `Malformed` | 3 | nothing |
//! | unknown events and pings | stream | | `Finished` | 1 | all |
//! | an event twice | stream | | `Finished` | 1 | all |
//! | wrong usage | stream | | `Finished` | 1 | all |
//! | wrong usage | whole | | `Finished` | 1 | all |
//! | slow bytes | stream | | `Finished` | 1 | all |
//! | slow bytes | whole | | `Finished` | 1 | all |
//! | closed after the last event | stream | | `Finished` | 1 | all |
//! | silence after the last event | stream | | `Finished` | 1 | all |

mod answer_stream;
mod api_key;
mod body_reader;
mod client_policy;
mod client_state;
mod cloud;
mod endpoint;
mod http_transport;
mod parts_body;
mod provider_client;
mod provider_connection;
mod request_encoder;
mod request_stagger;

pub use answer_stream::{AnswerProgress, AnswerStream, RetryWait};
pub use api_key::ApiKey;
pub use client_policy::{AttemptTimeouts, ClientPolicy};
pub use cloud::{AwsCredentials, CloudPlatform, GoogleCredentials, GoogleCredentialsError};
pub use endpoint::{ANTHROPIC_ADDRESS, EndpointError, OPENAI_ADDRESS, ProviderEndpoint, SIMULATOR_HEADER};
pub use http_transport::ClientError;
pub use provider_client::{CompleteAnswer, ProviderClient};
pub use provider_connection::{
    ExchangeEnd, ExchangeStep, ProviderConnection, ProviderExchange, SharedPrefix,
};
pub use request_encoder::RequestEncoder;
pub use request_stagger::{RequestStagger, SendPermit};
