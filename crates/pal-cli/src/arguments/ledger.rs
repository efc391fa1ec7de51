//! Arguments of `pal cost` and `pal breaks`.

use clap::Args;

use super::ColorArg;

/// Show the cost of a session, per request and in total, and what the cache and the layers saved
///
/// Prints totals by source and by model, savings of the cache, the cost of cache breaks, tokens that layers removed from view,
/// and a chart of the context by category over the requests, with marks for compactions (▼) and cache breaks (✗). Works on
/// other agents' sessions, too, as far as they record usage; missing figures are reported, never counted as zero.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal cost                                  newest session of this directory\n  pal cost 0199a8f2 --requests              with a row per request\n  pal cost ~/.claude/projects/some/session.jsonl\n  pal cost --json 0199a8f2 | jq .all.cost"
)]
pub(crate) struct CostArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Print a row per request
    #[arg(long, alias = "verbose")]
    pub(crate) requests: bool,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the cache breaks of a session, their causes and their cost
///
/// A cache break is a request whose cache read is more than 5% and more than 2,000 tokens smaller than that of the request
/// before. Each is listed with the first cause that explains it: a changed section, tool or message, another model, an expired
/// TTL, or the provider. Drops that a decision of the session caused, such as a compaction, are expected and listed separately.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal breaks                                newest session of this directory\n  pal breaks 0199a8f2 --diff                with a diff of the two requests\n  pal breaks --all session.jsonl            expected drops, too"
)]
pub(crate) struct BreaksArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Print a diff of the two requests, where both were saved
    #[arg(long)]
    pub(crate) diff: bool,
    /// List expected drops, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
