//! The measuring bench: policies × models × windows over recorded sessions, with the least that is possible beside them.
//!
//! Every policy is replayed through the engine against the simulator (`pal-replay`); what it costs is what the simulator
//! bills. Beside that the lab counts page faults, content that the recorded agent used again while our view had dropped it,
//! adds what reading lost content again costs ([`Loss`]), and compares with the clairvoyant ([`limit`]), who knows the
//! future. The method in prose is in `docs/lab.md`.
//!
//! ```
//! use pal_lab::{Plan, ROWS, run};
//! use pal_model::Cards;
//!
//! let plan = Plan { rows: ROWS.iter().collect(), models: vec![None], windows: vec![200_000], cards: Cards::shipped() };
//! let findings = run(&plan, 0, &|_| Err(String::from("there is none")), &mut |_| {});
//! assert_eq!((findings.sessions, findings.tables.len()), (0, 1));
//! ```

mod bench;
mod charts;
mod clairvoyant;
mod findings;
mod lines;
mod loss;
mod measure;
mod peers;
mod report;
mod rows;
mod sight;
mod svg;
mod touches;
mod trace;

pub use bench::{Plan, Progress, run};
pub use clairvoyant::{Limit, limit};
pub use findings::{Cell, CondensingRow, Findings, Forecasting, Point, SessionRow, Sum, Table};
pub use lines::{Condensing, ToolLines};
pub use loss::Loss;
pub use report::WriteError;
pub use rows::{ROWS, Row, row};
pub use trace::{Call, Rates, Trace, Use};
