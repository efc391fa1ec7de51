//! Sessions on disk, and the driver that runs them.
//!
//! [`Session`] keeps a log and its view in step: every entry appended to the log is pushed to the view. It runs
//! the layers before each request, writes spilled texts before the decision that refers to them, executes
//! compactions, and recovers when the provider rejects a request as too long. Models, files and clocks are
//! behind [`SessionHost`]; this crate makes no policy decisions and opens no connection.
//!
//! A program that has an agent loop of its own appends what happens and asks for the next request:
//!
//! ```
//! use pal_context::ContextPolicy;
//! use pal_engine::{OfflineHost, Session, SessionConfig};
//! use pal_model::{EntryDraft, IdSource, MessageOrigin, ModelCatalog, Timestamp};
//! use pal_view::{Estimator, Lens, ViewScope, WindowLimits, WindowSettings};
//!
//! let directory = tempfile::tempdir()?;
//! let log = directory.path().join("log.jsonl");
//! let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
//! let limits = WindowLimits::new(&card, &WindowSettings::STANDARD);
//! let config = SessionConfig::for_log(&log, ContextPolicy::threshold(), limits, 8_000);
//! let lens = Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current };
//! let mut session = Session::create(&log, lens, IdSource::seeded(1))?;
//!
//! // Entries in: messages, answers and tool results, as raw JSON.
//! let now = Timestamp::from_milliseconds(1_790_000_000_000);
//! session.append(EntryDraft::user(MessageOrigin::Person, "\"Is the build green?\""), now)?;
//!
//! // Request out, with what each layer decided and why.
//! let prepared = session.prepare(&config, now, &mut OfflineHost::default())?;
//! for report in prepared.reports.iter().filter(|report| report.acted) {
//!     println!("{} freed {} tokens: {}", report.layer, report.tokens_freed, report.reason);
//! }
//! assert!(prepared.request.body().contains("Is the build green?"));
//!
//! // The answer and its usage are entries too; see `Session::append_answer` and `Session::append_response`.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod announcement;
mod cache_watch;
mod cold_turn;
mod conversation_fork;
mod error;
mod fold_execution;
mod keepalive_plan;
mod length_refusal;
mod media_refusal;
mod model_client;
mod offline_host;
mod pins;
mod prepared_request;
mod run_driver;
mod run_host;
mod send_request;
mod session;
mod session_compaction;
mod session_config;
mod session_host;
mod session_params;
mod spill_files;
mod summary_edit;
mod token_calibration;
mod watched_request;

pub use announcement::PendingAnnouncement;
pub use cache_watch::AnsweredRequest;
pub use conversation_fork::{ConversationFork, cache_key};
pub use error::EngineError;
pub use keepalive_plan::KeepalivePlan;
pub use model_client::{
    BrokenResponse, GuessedWindow, ModelClient, ModelResponse, OutgoingRequest, RequestOutcome,
    SummaryExchange, TokenObservation,
};
pub use offline_host::OfflineHost;
pub use pins::pin_tokens;
pub use prepared_request::PreparedRequest;
pub use run_driver::drive;
pub use run_host::{PermissionPrompt, RunEvent, RunHost, RunInbox, RunObserver, ToolExecutor, TurnHooks};
pub use send_request::RequestResult;
pub use session::Session;
pub use session_compaction::CompactionResult;
pub use session_config::{CacheSettings, CompactionSettings, SessionConfig};
pub use session_host::{
    CompactionFollowUp, CompactionInputs, CompactionObserver, FileReader, Notifier, SessionHost, TimeSource,
};
pub use summary_edit::{edit_summary, summary_text};
