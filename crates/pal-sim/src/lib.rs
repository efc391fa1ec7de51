//! A simulated model provider that needs no key: strict validation, a real prefix cache, real token counts, prices
//! and faults.
//!
//! Pure: time is an argument, randomness comes from a seed, and a reply is a list of chunks with their sending times.
//! `pal-sim-server` serves it over HTTP.
//!
//! ```
//! use pal_model::Timestamp;
//! use pal_sim::{
//!     HttpRequest, ModelOutput, ModelPrompt, OutputBlock, SimSettings, SimulatedModel, SimulatedProvider,
//! };
//!
//! struct Polite;
//! impl SimulatedModel for Polite {
//!     fn answer(&mut self, _prompt: &ModelPrompt<'_>) -> ModelOutput {
//!         ModelOutput { blocks: vec![OutputBlock::Text("You are welcome.".into())], stop: None }
//!     }
//! }
//! let mut provider = SimulatedProvider::new(SimSettings::plain(), Box::new(Polite));
//! let request = HttpRequest {
//!     method: "POST",
//!     path: "/v1/messages",
//!     headers: &[("anthropic-version".into(), "2026-10-21".into())],
//!     body: br#"{"model":"claude-opus-5-5","max_tokens":64,"messages":[{"role":"user","content":"Thanks"}]}"#,
//! };
//! let reply = provider.handle(Timestamp::from_milliseconds(0), &request);
//! assert_eq!(reply.status, 200);
//! assert!(String::from_utf8(reply.body()).unwrap().contains("You are welcome."));
//! assert!(reply.exchange.unwrap().usage.output_tokens > 0);
//! ```

mod block_facts;
mod block_identity;
mod block_signatures;
mod bound_thinking;
mod cache_diagnostics;
mod cache_entries;
mod context_edits;
mod extractive;
mod faults;
mod fitted_answer;
mod http_reply;
mod http_request;
mod id_generator;
mod media_tokens;
mod message_threads;
mod messages_endpoint;
mod messages_request;
mod messages_response;
mod messages_turn;
mod models_endpoint;
mod openai;
mod parsed_prompt;
mod prefix_cache;
mod prompt_text;
mod provider_compaction;
mod recorded_model;
mod scripted_model;
mod seeded_rng;
mod sim_settings;
mod simulated_model;
mod simulated_provider;
mod token_counts;
mod usage_json;
mod usage_ledger;

pub use extractive::ExtractiveModel;
pub use faults::{FaultError, FaultPlan};
pub use http_reply::{
    CacheOutcome, HttpReply, HttpRequest, ModelExchange, PromptDifference, ReplyChunk, ReplyEnding,
};
pub use recorded_model::RecordedModel;
pub use scripted_model::{ScriptError, ScriptedModel};
pub use sim_settings::{ReplyPace, SignaturePolicy, SimSettings};
pub use simulated_model::{
    ModelOutput, ModelPrompt, OutputBlock, PromptMessage, SimulatedModel, StopOverride,
};
pub use simulated_provider::SimulatedProvider;
pub use usage_ledger::{LedgerTotals, UsageLedger};
