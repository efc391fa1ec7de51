//! The other side of the wire: a provider that can be asked without a key, strict, with a real prefix cache, real
//! token counts, prices and faults.
//!
//! Pure: the time is an argument, chance comes from a seed, and an answer is a list of bytes with the moment at
//! which each leaves. `pal-sim-server` puts it behind a socket.
//!
//! ```
//! use pal_model::Timestamp;
//! use pal_sim::{Answer, Ask, HttpRequest, Model, Said, Settings, Simulator};
//!
//! struct Polite;
//! impl Model for Polite {
//!     fn answer(&mut self, _ask: &Ask<'_>) -> Answer {
//!         Answer { blocks: vec![Said::Text("You are welcome.".into())], stop: None }
//!     }
//! }
//! let mut simulator = Simulator::new(Settings::plain(), Box::new(Polite));
//! let request = HttpRequest {
//!     method: "POST",
//!     path: "/v1/messages",
//!     headers: &[("anthropic-version".into(), "2026-10-21".into())],
//!     body: br#"{"model":"claude-opus-5-5","max_tokens":64,"messages":[{"role":"user","content":"Thanks"}]}"#,
//! };
//! let reply = simulator.handle(Timestamp::from_milliseconds(0), &request);
//! assert_eq!(reply.status, 200);
//! assert!(String::from_utf8(reply.body()).unwrap().contains("You are welcome."));
//! assert!(reply.exchange.unwrap().usage.output_tokens > 0);
//! ```

mod answer;
mod binding;
mod cache;
mod chance;
mod compaction;
mod edits;
mod entries;
mod extractive;
mod facts;
mod faults;
mod heard;
mod http;
mod identity;
mod ids;
mod ledger;
mod media;
mod messages;
mod model;
mod models;
mod openai;
mod prompt;
mod recent;
mod replay;
mod reply;
mod request;
mod script;
mod seal;
mod settings;
mod simulator;
mod speak;
mod threads;
mod tokens;
mod turn;
mod usage;

pub use extractive::Extractive;
pub use faults::{FaultError, Faults};
pub use ledger::{Ledger, LedgerTotals};
pub use model::{Answer, Ask, AskMessage, Model, Said, Stop};
pub use replay::Replay;
pub use reply::{CacheStory, Chunk, Difference, Ending, Exchange, HttpRequest, Reply};
pub use script::{Script, ScriptError};
pub use settings::{Pace, Settings, Signatures};
pub use simulator::Simulator;
