//! Arguments of `pal tokens`, `pal render`, `pal check` and `pal view`.

use clap::Args;

use super::number_parsers::whole_number;
use super::{ColorArg, EstimatorArg};

/// Show what fills the context of a session, and how accurate the estimate is
///
/// Prints tokens by category, the anchor (the response whose reported usage the size is based on), thresholds with their
/// states, and for every call the estimate beside the provider's count.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal tokens                                newest session of this directory\n  pal tokens 0199a8f2\n  pal tokens --model claude-haiku-5-5 session.jsonl\n  pal tokens --json session.jsonl | jq .total"
)]
pub(crate) struct TokensArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Count for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Token estimator (default: the one in the settings, else calibrated)
    #[arg(long, value_enum)]
    pub(crate) estimator: Option<EstimatorArg>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the next request of a session, or an earlier one
///
/// Writes the exact request body to standard output; `pal render | pal check` validates it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal render | pal check                    newest session of this directory\n  pal render --at 12 session.jsonl | head -c 2000"
)]
pub(crate) struct RenderArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Request that led to response N, counted from 1 (default: the next request)
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>)]
    pub(crate) at: Option<usize>,
    /// Ignore compaction boundaries: render the whole conversation
    #[arg(long)]
    pub(crate) whole: bool,
    /// Render for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Replace a system prompt that the transcript does not contain by filler of the same size instead of a note
    #[arg(long)]
    pub(crate) stand_in: bool,
    /// Print one JSON object: the body with its sizes and its fingerprint
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verify a session's log, or validate a request body like the provider
///
/// For a session (id, directory or log), verifies the checksum of every line and the order of entries. Exits with 1 if the log
/// is damaged; --repair then appends an entry that continues it across the damage. Existing bytes are never changed. Any other
/// file, or - for standard input, is validated as a request body: prints its contents, or the provider's error and exits with 1.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal check 0199a8f2\n  pal check 0199a8f2 --repair\n  pal check body.json\n  pal render session.jsonl | pal check"
)]
pub(crate) struct CheckArgs {
    /// Session, or the file of a request body; - reads a body from standard input (default: what is piped in)
    #[arg(value_name = "SESSION|FILE")]
    pub(crate) subject: Option<String>,
    /// Repair a damaged log by appending to it
    #[arg(long)]
    pub(crate) repair: bool,
    /// For a request body: use the rules of this model instead of the one it names
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// For a request body: enable only this beta, by its `anthropic-beta` value; may be repeated (default: those that pal
    /// sends to the model)
    #[arg(long = "beta", value_name = "NAME")]
    pub(crate) betas: Vec<String>,
    /// Print JSON: counts and damage, or the error in the provider's format
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what the model sees, message by message, and why
///
/// Every decision is printed beside the content it changed, with its reason: spilled, cleared, snipped, folded, stripped or
/// compacted. Hidden ranges take one line with their counts. Pins and the next action of each layer come last. Nothing is
/// changed. `pal compact --from` and `--up-to` accept the message numbers.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal view                                  newest session of this directory\n  pal view 0199a8f2 --full | less -R\n  pal view --at 12 session.jsonl            the input of response 12"
)]
pub(crate) struct ViewArgs {
    /// Session: a log of pal, a session id or the start of one, or another agent's session file (default: the newest
    /// session of the current directory)
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Input of response N, counted from 1 (default: input of the next response)
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>)]
    pub(crate) at: Option<usize>,
    /// Show the view of this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print texts in full instead of their first lines
    #[arg(long)]
    pub(crate) full: bool,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
