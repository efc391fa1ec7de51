//! Arguments of `pal recall`.

use std::path::PathBuf;

use clap::Args;

use super::ColorArg;
use super::number_parsers::whole_number;

/// Search all saved sessions of this project for exact text
///
/// Searches prompts, answers, tool results, logs of subagents and spilled results. Shows a line for each match; --full shows it
/// with context, the author, the time, and the file and line. Words match in any order and with any ending, and a misspelt word
/// matches the nearest one; text in double quotes matches as it is. Nothing leaves this machine. The first search indexes
/// everything; later ones only what is new.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal recall 'why did we drop the cache'\n  pal recall --all retryPolicy backoff\n  pal recall '\"connection reset\" retry' --full\n  pal recall --session 0199a8f2 'error TS2345' -C 8\n  pal recall migration --json | jq -r '.[] | [.at, .session, .text] | @tsv'"
)]
pub(crate) struct RecallArgs {
    /// Words to search for
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// Search only this session: its id, the start of it, or its log
    #[arg(short, long, value_name = "SESSION", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Search the sessions of all projects
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Maximum number of results
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = whole_number::<usize>)]
    pub(crate) limit: usize,
    /// Show each match with its context, author, time, file and line
    #[arg(short, long)]
    pub(crate) full: bool,
    /// Lines of context around a match (default: 2); implies --full
    #[arg(short = 'C', long, value_name = "N", value_parser = whole_number::<usize>)]
    pub(crate) context: Option<usize>,
    /// Directory of the project (default: the current directory)
    #[arg(long = "in", value_name = "DIRECTORY", conflicts_with_all = ["all", "session"])]
    pub(crate) directory: Option<PathBuf>,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
