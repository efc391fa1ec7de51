//! Compaction: the conversation so far becomes a summary, and what must survive it does.

mod audit;

pub use audit::{AuditBudgets, AuditInput, Audited, audit};
