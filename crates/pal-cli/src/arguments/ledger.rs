//! What is typed for the commands about money and the cache.

use clap::Args;

use super::ColourName;

/// Show what a session cost, request by request and in all, and what the cache and the layers saved
///
/// Prints the sums by source and by model, what the cache saved, what its breaks cost, what layers took out of sight, and a
/// chart of the context by category over the requests, with marks for compactions (▼) and breaks (✗). Works on sessions of
/// other agents, too, from the usage that they recorded; what they did not record is said, and never counted as nothing.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal cost                                  the newest session of this directory\n  pal cost 0199a8f2 --requests              with a row for every request\n  pal cost ~/.claude/projects/some/session.jsonl\n  pal cost --json 0199a8f2 | jq .all.cost"
)]
pub(crate) struct Cost {
    /// A session: a log of ours, its id or the beginning of it, or another agent's file (default: the newest one that is
    /// kept of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Print a row for every request
    #[arg(long, alias = "verbose")]
    pub(crate) requests: bool,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show where a session lost what the provider had cached, why, and what that cost
///
/// A break is a request that read over 5 % and over 2 000 tokens less from the cache than the one before. Each has the first
/// cause that explains it: a section, a tool or a message that changed, another model, time that passed, or the provider.
/// Falls that a decision of the session announced, such as a compaction, are expected and stand apart.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal breaks                                the newest session of this directory\n  pal breaks 0199a8f2 --diff                with what changed between the two requests\n  pal breaks --all session.jsonl            expected falls, too"
)]
pub(crate) struct Breaks {
    /// A session: a log of ours, its id or the beginning of it, or another agent's file (default: the newest one that is
    /// kept of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Print what changed between the two requests, where that was kept
    #[arg(long)]
    pub(crate) diff: bool,
    /// List expected falls, too
    #[arg(long)]
    pub(crate) all: bool,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
