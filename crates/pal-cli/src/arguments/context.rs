//! Arguments of `pal context`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ColorArg;

/// Show the contents of the first request of a new session, and how full the context window is
///
/// Collects what a session starts with: system prompt, tools, instruction files (CLAUDE.md, AGENTS.md, rules and their
/// includes), date and git snapshot. Lists it in request order with sizes and reasons, what was left out and why, and the cache
/// breakpoints. With --session, does the same for a saved session. Nothing is sent and nothing is written.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal context                               a new session in the current directory\n  pal context ~/src/engine --model claude-haiku-5-5\n  pal context --show context | less         the exact text of the instruction files\n  pal context --session 0199a8f2            the context of a saved session\n  pal context --json | jq '.context.files[].path'"
)]
pub(crate) struct ContextArgs {
    /// Directory of the new session (default: the current directory)
    #[arg(value_name = "DIRECTORY", conflicts_with = "session")]
    pub(crate) directory: Option<PathBuf>,
    /// Show this session instead: a log of pal, a session id or the start of one, or another agent's session file
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["added", "bare", "no_git", "no_instructions"])]
    pub(crate) session: Option<String>,
    /// Count for this model (default: the session's own, else claude-opus-5-5)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Add a directory to the session; may be repeated
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(crate) added: Vec<PathBuf>,
    /// Look for instruction files in added directories only
    #[arg(long)]
    pub(crate) bare: bool,
    /// Leave out the git snapshot
    #[arg(long)]
    pub(crate) no_git: bool,
    /// Leave out instruction files
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Print one part exactly as it would be sent
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) show: Option<RequestPartArg>,
    /// Print only the chart and the totals
    #[arg(long, conflicts_with_all = ["show", "json"])]
    pub(crate) brief: bool,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Part of a request before the first prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RequestPartArg {
    /// The system prompt
    System,
    /// The tools, as JSON
    Tools,
    /// The reminder before the first message: instruction files, memory, date
    Context,
    /// The git snapshot
    Git,
}
