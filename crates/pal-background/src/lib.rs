//! Background work of a session: notes, memory extraction, dreams, memory prefetch and cache keepalive.
//!
//! Everything here runs beside a conversation and never in it: forks read the conversation's cache and drive the
//! machine of `pal-run` on their own threads, under enforced access, within turn, time and cost limits and within the
//! daily [`BackgroundBudget`]. An [`ExchangeListener`] receives the report of every request.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pal_background::{BackgroundBudget, Clock, read_background_ledger};
//! use pal_model::{RequestSource, Usage};
//! use pal_provider::{ANTHROPIC_ADDRESS, ClientPolicy, ProviderConnection, ProviderEndpoint};
//! use pal_wire::Dialect;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let endpoint = ProviderEndpoint::new(Dialect::Messages, ANTHROPIC_ADDRESS, None)?;
//! let connection = ProviderConnection::new(runtime, endpoint, ClientPolicy::patient())?;
//! let budget = BackgroundBudget::new(home, 10_000, "a session", Arc::new(connection));
//! let (source, now) = (RequestSource::from_name("notes"), Clock::default().now());
//! budget.may_begin(&source, now)?;
//! budget.record_usage(&source, &Usage { output_tokens: 12_000, ..Usage::default() }, None, now);
//! assert!(budget.may_begin(&source, now).is_err(), "the tokens of the day are used up");
//! assert_eq!(read_background_ledger(home)?.runs[0].output, 12_000);
//! # Ok(())
//! # }
//! ```

mod background_budget;
mod background_config;
mod cache_keepalive;
mod clock;
mod daily_spending;
mod fork_runner;
mod fork_tools;
mod learned_pauses;
mod memory_prefetch;
mod memory_tasks;
mod note_keeper;
mod prompt_suggester;
mod timed_exchange;

pub use background_budget::{BackgroundBudget, BackgroundLedger, BackgroundRun, read_background_ledger};
pub use background_config::{BackgroundConfig, BackgroundModel, DreamGateSettings, ExtractionOptions};
pub use cache_keepalive::{CacheKeepalive, KeepaliveListener, SentPing};
pub use clock::{Clock, random_ids};
pub use daily_spending::{DaySpending, SpendingEntry, read_day_spending, record_spending};
pub use learned_pauses::{LearnedPauses, PauseTable};
pub use memory_prefetch::{MemoryKeeper, MemoryPrefetch, WriteOrigin, memory_index};
pub use memory_tasks::{
    Dream, DreamGate, DreamGates, DreamReport, DreamScheduler, DreamState, DreamTask, DreamTurn, Extraction,
    revert_killed_dreams,
};
pub use note_keeper::{NOTES_ATTACHMENT, NoteKeeper, NotesReminder};
pub use prompt_suggester::{PromptSuggester, SuggestionListener};
pub use timed_exchange::{ExchangeListener, TimedExchange};
