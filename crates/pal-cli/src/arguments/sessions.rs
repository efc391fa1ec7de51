//! What is typed for the commands about sessions that are kept.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// List the sessions that are kept of this project, the newest first
///
/// A project is a repository with all its worktrees, else a directory. Each session has its title (else how its first prompt
/// begins), when something last happened in it, how many entries its log has, how much room it takes on disk, the tokens that went through its
/// requests, what they cost, the model, and the beginning of its id. Logs that are damaged are listed with what is wrong.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal sessions\n  pal sessions --all\n  pal -p --resume 0199a8f2 'Go on.'          with an id from the list\n  pal sessions --json | jq -r '.[] | [.id, .cost_usd] | @tsv'"
)]
pub(crate) struct Sessions {
    /// Whose sessions (default: those of the current directory's project)
    #[arg(value_name = "DIRECTORY", conflicts_with = "all")]
    pub(crate) directory: Option<PathBuf>,
    /// Those of every project
    #[arg(short, long)]
    pub(crate) all: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a session down for people or programs
///
/// Everything that was said, in order: prompts, answers, tool calls with their results folded, compactions and lost caches as
/// notes, and what it cost at the end. HTML is one file that needs nothing else and runs no scripts. JSON holds the entries as
/// they stand in the log. Works on sessions of other agents, too.
///
/// Secrets (keys, tokens, passwords) are masked as `[secret: kind]`; how many is told on standard error. --no-mask keeps them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal export 0199a8f2 > session.md\n  pal export 0199a8f2 --format html -o session.html\n  pal export ~/.claude/projects/some/session.jsonl --format json | jq '.summary'"
)]
pub(crate) struct Export {
    /// A session: a log of ours, its id or the beginning of it, or another agent's file (default: the newest one that is
    /// kept of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// As what (default: by the ending of the file, else markdown)
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep keys, tokens and passwords as they are
    #[arg(long)]
    pub(crate) no_mask: bool,
}

/// As what a session is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For editors and web pages that show Markdown
    #[value(alias = "md")]
    Markdown,
    /// One file for a browser
    Html,
    /// One object for programs
    Json,
}
