//! Fidelity: what compactions keep of what the agent needs next, measured without a model.
//!
//! A *fact* is a distinctive word (a path, a number, an identifier) that the context showed before a compaction. It is *used next* if the
//! recorded agent writes it within the next 30 calls, and the user does not name it first. [`run_fidelity`] counts, for the recorded
//! clients' own compactions and for ours at the same points, how many facts used next the new context still shows, what the agent reads
//! again, and which of the user's constraints stay. It does the same for the compactions that policies make in replays.
//! `docs/proof.md` describes the method.
//!
//! ```
//! use pal_eval::fidelity::{FidelityPlan, run_fidelity};
//! use pal_model::ModelCatalog;
//!
//! let plan = FidelityPlan { rows: Vec::new(), window: 200_000, cards: ModelCatalog::built_in() };
//! let report = run_fidelity(&plan, 0, &|_| Err(String::from("there is none")), &mut |_| {});
//! assert_eq!((report.sessions, report.makers.len()), (0, 0));
//! ```

mod compaction_figures;
mod fidelity_report;
mod fidelity_run;
mod next_use;
mod own_compaction;
mod user_constraints;

pub use compaction_figures::CompactionFigures;
pub use fidelity_report::{FidelityReport, MakerFigures};
pub use fidelity_run::{FidelityPlan, run_fidelity};
