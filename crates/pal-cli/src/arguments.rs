//! What the user typed, before it means anything.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

/// The context and memory engine for coding agents.
#[derive(Parser)]
#[command(name = "pal", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Import(Import),
    Tokens(Tokens),
    Render(Render),
    Check(Check),
}

/// Take sessions of other agents over into logs of our own
///
/// Reads sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and mini-swe-agent; the format is found by
/// looking. Nothing is lost: what is no part of the conversation, a bad line included, is kept aside in the log and
/// counted. The source is only read. Importing the same file again changes nothing.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal import ~/.claude/projects/*/*.jsonl\n  pal import --dry-run session.jsonl"
)]
pub(crate) struct Import {
    /// Session files of other agents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Refuse a file at its first bad line instead of keeping the line aside
    #[arg(long)]
    pub(crate) strict: bool,
    /// Only report; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object a file instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what fills the context of a session, and how well it is estimated
///
/// Prints the ledger by category, the anchor (the response whose reported usage the size rests on), thresholds with
/// their states, and for every call the estimate beside what the provider reported.
#[derive(Args)]
pub(crate) struct Tokens {
    /// A session: a log of ours or another agent's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Count for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How to estimate (default: what settings.toml says, else calibrated)
    #[arg(long, value_enum)]
    pub(crate) estimator: Option<EstimatorName>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A way to estimate tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EstimatorName {
    /// Weights fitted to real sessions, per model generation
    Calibrated,
    /// 4 bytes a token, 2 for JSON, 2 000 for media, × 4/3
    Classic,
}

/// Print the request that the session would send next, or sent before one of its responses
///
/// The body goes to standard output exactly as it would be sent, so `pal render FILE | pal check -` validates it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal render session.jsonl | pal check -\n  pal render --at 12 session.jsonl | head -c 2000"
)]
pub(crate) struct Render {
    /// A session: a log of ours or another agent's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The request behind the N-th response, counted from 1 (default: the next one)
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<usize>,
    /// Ignore compaction boundaries: everything that was ever said
    #[arg(long)]
    pub(crate) whole: bool,
    /// Render for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Stand in for a system prompt that the transcript does not hold by as many tokens of text, not just a note
    #[arg(long)]
    pub(crate) stand_in: bool,
    /// Print one JSON object: the body with its sizes and its fingerprint
    #[arg(long)]
    pub(crate) json: bool,
}

/// Validate the body of a Messages request as strictly as the provider does
///
/// Prints what the request holds, or the provider's error and exits with 1.
#[derive(Args)]
pub(crate) struct Check {
    /// The body; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Take the rules of this model instead of the one that the body names
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Switch on a beta by its `anthropic-beta` value; may be repeated
    #[arg(long = "beta", value_name = "NAME")]
    pub(crate) betas: Vec<String>,
    /// Print JSON: the counts, or the error as the provider sends it
    #[arg(long)]
    pub(crate) json: bool,
}
