//! Arguments of `pal sessions`, `pal export` and `pal import`.

use std::path::PathBuf;

use super::number_parsers::whole_number;
use clap::{Args, ValueEnum};

/// List the saved sessions of this project, newest first
///
/// A project is a repository with all its worktrees, else a directory. Each session is listed with its title (or the start of
/// its first prompt), time of last activity, log entries, size on disk, tokens, cost, model and the start of its id. Damaged
/// logs are listed with their damage.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal sessions\n  pal sessions --all\n  pal -p --resume 0199a8f2 'Continue.'       with an id from the list\n  pal sessions --json | jq -r '.[] | [.id, .cost_usd] | @tsv'"
)]
pub(crate) struct SessionsArgs {
    /// Directory of the project (default: the current directory)
    #[arg(value_name = "DIRECTORY", conflicts_with = "all")]
    pub(crate) directory: Option<PathBuf>,
    /// List the sessions of all projects
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Maximum number of sessions
    #[arg(short = 'n', long, value_name = "N", value_parser = whole_number::<usize>)]
    pub(crate) limit: Option<usize>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Export a session as Markdown, HTML or JSON
///
/// Contains the whole conversation in order: prompts, answers, tool calls with folded results, notes on compactions and cache
/// breaks, and the cost at the end. HTML is one self-contained file without scripts. JSON contains the entries of the log.
/// Works on other agents' sessions, too.
///
/// Secrets (keys, tokens, passwords) are masked as `[secret: kind]`; their number is printed to standard error. --no-mask keeps
/// them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal export 0199a8f2 > session.md\n  pal export 0199a8f2 --format html -o session.html\n  pal export ~/.claude/projects/some/session.jsonl --format json | jq '.summary'"
)]
pub(crate) struct ExportArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Format (default: by the file extension, else markdown)
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep keys, tokens and passwords as they are
    #[arg(long)]
    pub(crate) no_mask: bool,
}

/// Format of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Markdown
    #[value(alias = "md")]
    Markdown,
    /// One self-contained HTML file
    Html,
    /// One JSON object
    Json,
}

/// Import sessions of other agents into logs of pal
///
/// Reads sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and mini-swe-agent, and detects the format. A directory
/// stands for all sessions in it. Nothing is lost: lines that are no part of the conversation, malformed ones included, are
/// kept aside in the log and counted. The source is not changed. Importing a session that has grown extends its log; importing
/// the same file again changes nothing.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal import ~/.claude/projects/*/*.jsonl\n  pal import ~/.claude/projects ~/.codex/sessions\n  pal import --watch ~/.claude/projects      follow sessions while they are written\n  pal import --dry-run session.jsonl"
)]
pub(crate) struct ImportArgs {
    /// Session files of other agents, or directories of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Keep running, and import sessions whenever they change
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) watch: bool,
    /// Reject a file at its first malformed line instead of keeping the line aside
    #[arg(long)]
    pub(crate) strict: bool,
    /// Report only; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object per file instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}
