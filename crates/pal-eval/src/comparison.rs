//! Evaluation: policies × models × windows over recorded sessions, beside the offline optimum.
//!
//! Every policy is replayed through the engine against the simulator, and costs what the simulator bills. The evaluation also counts page
//! faults (content that the recorded agent used again after the view had dropped it), adds the expected cost of reading lost content
//! again ([`LossModel`]), and compares with the offline optimum ([`offline_optimum`]). `docs/eval.md` describes the method.
//!
//! ```
//! use pal_eval::comparison::{EvalPlan, POLICY_ROWS, run_evaluation};
//! use pal_model::ModelCatalog;
//!
//! let plan = EvalPlan { rows: POLICY_ROWS.iter().collect(), models: vec![None], windows: vec![200_000], cards: ModelCatalog::built_in() };
//! let findings = run_evaluation(&plan, 0, &|_| Err(String::from("there is none")), &mut |_| {});
//! assert_eq!((findings.sessions, findings.tables.len()), (0, 1));
//! ```

mod bootstrap;
mod charts;
mod eval_plan;
mod eval_report;
mod eval_run;
mod file_touches;
mod held_out_fit;
mod line_uses;
mod loss_model;
mod offline_optimum;
mod peer_policies;
mod policy_comparison;
mod policy_rows;
mod policy_savings;
mod replay_meter;
mod session_observation;
mod session_trace;
mod svg_picture;
mod trace_rates;
mod visible_content;

pub(crate) use bootstrap::ratio_interval;
pub use eval_plan::EvalPlan;
pub use eval_report::EvalReportError;
pub(crate) use eval_report::write_report;
pub(crate) use eval_run::run_on_all_cores;
pub use eval_run::{EvalProgress, run_evaluation};
pub(crate) use file_touches::{RecordedFileTouch, find_touches};
pub use line_uses::{CondenseLoss, ToolLines};
pub use loss_model::LossModel;
pub use offline_optimum::{OfflineOptimum, offline_optimum};
pub use policy_comparison::{
    CondensingRow, EvalCell, EvalSessionRow, EvalTable, EvalTotals, ForecastQuality, FrontierPoint,
    PolicyComparison,
};
pub use policy_rows::{POLICY_ROWS, PolicyRow, find_policy_row};
pub use policy_savings::{
    AS_RECORDED, CostSaving, PolicySavings, RecordedCost, SavingsOptions, SavingsRow, WindowBasis,
    measure_savings,
};
pub use session_trace::{ContentUse, SessionTrace, TraceCall};
pub(crate) use svg_picture::{SvgPicture, TextAnchor};
pub use trace_rates::TraceRates;
pub(crate) use visible_content::VisibleContent;
