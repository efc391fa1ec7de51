//! The one HTTP driver over the dialects: keys, retries, streams, timeouts.
//!
//! [`pal_wire`] says what a call looks like and what the bytes of an answer mean; this crate carries both over the
//! net and knows no dialect. It is the only place that holds keys.
//!
//! ```no_run
//! use pal_provider::{ANTHROPIC_ADDRESS, Client, Endpoint, Key, Policy, Progress};
//! use pal_wire::{Call, Delta, Dialect, Event};
//!
//! # async fn talk(call: Call, key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::new(Dialect::Messages, ANTHROPIC_ADDRESS, Some(Key::api(key)))?;
//! let client = Client::new(endpoint, Policy::patient())?;
//! let mut answer = client.send(call);
//! while let Some(progress) = answer.next().await {
//!     match progress {
//!         Progress::Event(Event::Grew { delta: Delta::Text(text), .. }) => print!("{text}"),
//!         Progress::Event(Event::Finished(finished)) => println!("\n{:?}", finished.usage),
//!         Progress::Event(Event::Failed(failure)) => return Err(failure.into()),
//!         Progress::Event(_) => {}
//!         Progress::Waiting(wait) => {
//!             let seconds = wait.left.as_secs();
//!             eprintln!("{}; attempt {} of {} in {seconds} s", wait.failure, wait.attempt, wait.of);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The course of a call
//!
//! 1. The body leaves as the parts it consists of, with its exact length; nobody puts it together in one buffer.
//! 2. The head of the answer arrives. Any status but success is a refusal: at most 64 KB of it are read, for at most
//!    5 s, and it becomes a typed [`Failure`](pal_wire::Failure). Redirects are not followed.
//! 3. The body is read as what it is, not as what was asked for: a stream through the decoder, JSON as a whole.
//! 4. Events are passed on as they come; `Finished` or `Failed` is the last one, and always comes.
//!
//! A failed attempt is followed by another one if [`RetryPolicy`](pal_wire::RetryPolicy) says so and **nothing was shown**.
//! Shown is: a delta with at least one character, a block that is whole, and the opening of a block that names a tool.
//! Not shown is: `Started`, the opening of any other block, an empty delta, a ping. So an attempt that failed may have
//! told `Started` and `Opened`; the [`Waiting`] that follows says that they are void. Once something was shown, a
//! failure is final: what came is kept, nothing comes twice.
//!
//! Nothing is spawned. Dropping an [`Answer`] drops the request, closes its connection and ends its waits.
//!
//! # Limits
//!
//! Every phase of an attempt has a time limit, so that no server can hold a caller for ever ([`Timeouts`] says why each is
//! as long as it is). A model on this machine or in its network gets 20 min to the head ([`Timeouts::local`]).
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
//! An attempt that was `Silent` is tried again twice at most, whatever the policy says; one that met its `Deadline` is not.
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
//! With two retries, that is at most three attempts, as the default policy has it. The columns: what goes wrong, on
//! every attempt unless it says "once"; whether a stream was asked for or a whole answer; when it happens, before or
//! after something was shown; the [`FailureKind`](pal_wire::FailureKind), or `Finished`; the number of requests sent;
//! how much of the answer the caller was shown. A test reads this table and proves it row by row.
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

mod answer;
mod client;
mod endpoint;
mod policy;
mod reading;
mod rope;
mod secret;
mod stagger;
mod transport;

pub use answer::{Answer, Progress, Waiting};
pub use client::{Client, Whole};
pub use endpoint::{ANTHROPIC_ADDRESS, Endpoint, EndpointError, OPENAI_ADDRESS};
pub use policy::{Policy, Timeouts};
pub use secret::Key;
pub use stagger::{Pass, Stagger};
pub use transport::ClientError;
