//! What is typed for finding what was said, and for offering it to other agents.

use std::path::PathBuf;

use clap::Args;

use super::ColourName;

/// Find what was ever said in the sessions of this project, word for word
///
/// Looks through all sessions that are kept: what you and the models said, what tools returned, the logs of agents that were
/// sent, and what was too long for a log. Shows the exact lines with those around them, who said it and when, and the file
/// and line where it stands. Words may come in any order; their endings do not matter. Nothing leaves this machine. The first
/// search reads everything once; after that only what is new.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal recall 'why did we drop the cache'\n  pal recall --all retryPolicy backoff\n  pal recall --session 0199a8f2 'error TS2345' -C 8\n  pal recall migration --json | jq -r '.[] | [.at, .session, .text] | @tsv'"
)]
pub(crate) struct Recall {
    /// What to look for
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// Only in this session: its id, or how it begins, or its log
    #[arg(short, long, value_name = "SESSION", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// In the sessions of every project
    #[arg(short, long)]
    pub(crate) all: bool,
    /// At most so many places
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Lines to show around what was found
    #[arg(short = 'C', long, value_name = "N", default_value_t = 2)]
    pub(crate) context: usize,
    /// The project (default: that of the current directory)
    #[arg(long = "in", value_name = "DIRECTORY", conflicts_with_all = ["all", "session"])]
    pub(crate) directory: Option<PathBuf>,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Offer memory and recall to other agents: a server of the Model Context Protocol on standard input and output
///
/// Any agent that knows the protocol can search, read and write the memories of a project and find what was said in its
/// sessions. Other agents start the server themselves; docs/mcp.md shows how to tell them. Every memory that comes in this way
/// is versioned, says which program wrote it, and has its secrets masked.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  claude mcp add palimpsest -- pal mcp\n  codex mcp add palimpsest -- pal mcp --project ~/src/thing\n  pal mcp --read-only                         nothing can be written"
)]
pub(crate) struct Mcp {
    /// The project (default: that of the directory in which it is started)
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) project: Option<PathBuf>,
    /// Offer nothing that writes
    #[arg(long)]
    pub(crate) read_only: bool,
}
