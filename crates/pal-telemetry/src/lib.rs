//! Diagnostics of the program: a log for debugging and, with the feature `otel`, OpenTelemetry spans and metrics.
//!
//! It owns the log filter, the exported names, and the export thread. Two invariants: no content of users, models or tools leaves the
//! machine unless the user opts in, and no collector, however slow or broken, delays a session except at the end of its run, by two
//! seconds at most. `docs/telemetry.md` lists the names.

mod logging;
#[cfg(feature = "otel")]
mod otel;

pub use logging::{LogError, start_log};
#[cfg(feature = "otel")]
pub use otel::{Telemetry, TelemetryTarget, TelemetryTargetError};
