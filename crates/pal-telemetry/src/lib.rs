//! What the program tells of its own work: a log for those who look for a fault, and, with the feature `otel`, spans and
//! figures for a collector.
//!
//! It owns the filter of the log, the names that are exported, and the thread that exports. Two invariants: nothing of what
//! people, models and tools said leaves unless that was asked for, and no collector, however slow or broken, makes a
//! session wait beyond the end of its run, there for two seconds at most. `docs/telemetry.md` has the names.

mod logging;
#[cfg(feature = "otel")]
mod otel;

pub use logging::{LogError, start_log};
#[cfg(feature = "otel")]
pub use otel::{Telemetry, TelemetryTarget, TelemetryTargetError};
