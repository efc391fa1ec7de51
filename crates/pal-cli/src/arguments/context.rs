//! What is typed for a look at what goes into a request.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ColourName;

/// Show what would go into the first request of a session that starts here, and how full the window is
///
/// Gathers what a session begins with: the system prompt, the tools, instruction files (CLAUDE.md, AGENTS.md, rules and what
/// they include), the date, a snapshot of git. Lists it in the order of the request with sizes and reasons, what was left out
/// and why, and where the provider's cache is marked. With --session, the same of a session that is stored. Nothing is sent
/// and nothing is written.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal context                               of the current directory\n  pal context ~/src/engine --model claude-haiku-5-5\n  pal context --show context | less         the very text of the instruction files\n  pal context --session 0199a8f2            what fills a stored session\n  pal context --json | jq '.context.files[].path'"
)]
pub(crate) struct Context {
    /// Where the session would start (default: the current directory)
    #[arg(value_name = "DIRECTORY", conflicts_with = "session")]
    pub(crate) directory: Option<PathBuf>,
    /// Look at this session instead: a log of ours, its id or the beginning of it, or another agent's file
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
    /// Do not ask git
    #[arg(long)]
    pub(crate) no_git: bool,
    /// Read no instruction files
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Print the text of one part exactly as it would be sent
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) show: Option<PartName>,
    /// Only the picture and the sums, without the list of what is in the request
    #[arg(long, conflicts_with_all = ["show", "json"])]
    pub(crate) brief: bool,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of a request that stands before what people say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PartName {
    /// The system prompt
    System,
    /// The tools, as JSON
    Tools,
    /// The reminder before the first message: instruction files, memory, date
    Context,
    /// The snapshot of git
    Git,
}
