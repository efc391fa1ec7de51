//! Arguments of `pal cost` and `pal breaks`.

use clap::{Args, ValueEnum};

use super::ColorArg;
use super::number_parsers::at_least_one;

/// Show what sessions cost: one in detail, or all sessions of all agents together
///
/// For one session: totals by source and by model, savings of the cache, the cost of cache breaks, tokens that layers removed
/// from view, and a chart of the context by category over the requests, with marks for compactions (▼) and cache breaks (✗).
///
/// --savings replays one session against the simulator: what sending everything, the recorded client and each policy of pal
/// cost, without and with the expected cost of reading dropped content again.
///
/// With several sessions, a directory, a pattern, --all, --by, --since or --until: one table over all of them. --all reads the
/// sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and pal. Files that were read before are not read again. A
/// response that several files repeat counts once. What is not known is reported, never counted as zero.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal cost                                  newest session of this directory\n  pal cost 0199a8f2 --requests              with a row per request\n  pal cost 0199a8f2 --savings               what each policy would have cost\n  pal cost ~/.claude/projects/some/session.jsonl\n  pal cost --all --by day,project --since 30d\n  pal cost --by month,model --csv > months.csv\n  pal cost ~/.claude/projects 'backup/**/*.jsonl' --by session\n  pal cost --json 0199a8f2 | jq .all.cost"
)]
pub(crate) struct CostArgs {
    /// Sessions: logs of pal, session ids or the start of one, other agents' session files, directories, or patterns such as
    /// `'*.jsonl'` (default: the newest session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Print a row per request
    #[arg(long, alias = "verbose")]
    pub(crate) requests: bool,
    /// Replay the session under the policies `none`, `threshold` and `cost-aware`, and show what each saves
    #[arg(long)]
    pub(crate) savings: bool,
    /// Window of the replays in tokens (default: that of the model, or a smaller one that the recorded compactions fit)
    #[arg(long, value_name = "N", requires = "savings", value_parser = at_least_one)]
    pub(crate) window: Option<u64>,
    #[command(flatten)]
    pub(crate) overview: OverviewArgs,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of a table over many sessions.
#[derive(Args, Default)]
pub(crate) struct OverviewArgs {
    /// All sessions of all agents on this machine
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Group by up to four of these, separated by commas (default: day)
    #[arg(long, value_enum, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) by: Vec<OverviewKeyArg>,
    /// First day: 2026-11-01, 20261101, today, yesterday, 7d, 4w
    #[arg(long, value_name = "DAY")]
    pub(crate) since: Option<String>,
    /// Last day, included
    #[arg(long, value_name = "DAY")]
    pub(crate) until: Option<String>,
    /// Time zone of days, such as Europe/Berlin or UTC (default: that of this machine)
    #[arg(long, value_name = "ZONE")]
    pub(crate) timezone: Option<String>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// Key of a table over many sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OverviewKeyArg {
    /// Day
    Day,
    /// Week, by its Monday
    Week,
    /// Month
    Month,
    /// Repository or directory
    Project,
    /// Model that answered
    Model,
    /// Program that sent the requests
    Agent,
    /// Session
    Session,
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
