//! Reports about sessions: cost, cache breaks, the context window, the visible messages, exports and the session list.
//!
//! Each report is built from a session's entries, ledger or view into plain data, and renders itself as text or JSON into a
//! writer. The crate knows no command line and no terminal: style and width are arguments, so that any front end can use it.

mod bar_cells;
mod break_report;
mod context_report;
mod cost_overview;
mod cost_report;
mod project_names;
mod session_export;
mod session_list;
mod session_name;
mod session_sources;
pub mod stored_sessions;
mod text_layout;
mod text_style;
mod text_table;
mod units;
mod usage_index;
mod view_report;

pub use bar_cells::{cell_eighths, draw_bar};
pub use break_report::BreakReport;
pub use context_report::{ContextReport, LayerOutlook, PlannedSession, PromptPart, scope_name};
pub use cost_overview::{
    CostOverview, DateRange, OverviewGroup, OverviewKey, OverviewOptions, OverviewSources, OverviewTotals,
    parse_day,
};
pub use cost_report::{CostReport, chart_lines};
pub use project_names::{adopt_former_directory, separate_projects};
pub use session_export::SessionTranscript;
pub use session_list::{
    ResponseGaps, SessionDigest, SessionList, SessionSummary, distinct_id_chars, read_summaries,
};
pub use session_name::session_name;
pub use session_sources::{AgentDirectories, expand_pattern, is_pattern, list_session_files, may_be_session};
pub use text_layout::{DEFAULT_COLUMNS, clip_line, sanitize, sanitize_lines, wrap_lines};
pub use text_style::TextStyle;
pub use text_table::TextTable;
pub use units::{
    format_age, format_bytes, format_count, format_duration, format_percent, format_tokens, format_usage,
    format_usd,
};
pub use usage_index::{IndexedUsage, UsageFiles, read_usage};
pub use view_report::{HiddenMessages, ViewReport};
