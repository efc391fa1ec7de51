//! Arguments of `pal compact`, `pal uncompact` and `pal pin`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ProviderArg;
use super::number_parsers::whole_number;

/// Compact a saved session: replace the conversation with a summary
///
/// The session's model writes the summary; without an API key it is extracted from the log word for word. Every summary is
/// audited: prompts, edited files, open tasks and the last error are restored if it lacks them. The files read last are read
/// again, from inside the session's directory only. Nothing is lost: `pal uncompact` undoes it. INSTRUCTIONS tell the model
/// what the summary must cover.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal compact --preview 0199a8f2                 preview; change nothing\n  pal compact 0199a8f2 keep every SQL statement\n  pal compact --up-to 40 --edit session.jsonl    keep from message 40 on (numbers: pal view)\n  pal compact --with extractive session.jsonl    no model, no cost\n  pal uncompact 0199a8f2                         undo"
)]
pub(crate) struct CompactArgs {
    /// Session: a log of pal, or a session id or the start of one
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Instructions for the summary
    #[arg(value_name = "INSTRUCTIONS")]
    pub(crate) instructions: Vec<String>,
    /// Show the result without applying it; model calls are still recorded in the log
    #[arg(long)]
    pub(crate) preview: bool,
    /// Summarize from this message on and keep what precedes it: a number from `pal view`, or an entry id
    #[arg(long, value_name = "ENTRY", conflicts_with = "up_to")]
    pub(crate) from: Option<String>,
    /// Summarize what precedes this message and keep it and the rest
    #[arg(long, value_name = "ENTRY")]
    pub(crate) up_to: Option<String>,
    /// Summary method (default: the first that works of fork, plain, extractive)
    #[arg(long, value_enum, value_name = "WAY")]
    pub(crate) with: Option<SummaryMethodArg>,
    /// Edit the summary in $VISUAL or $EDITOR before it is applied
    #[arg(long, conflicts_with = "preview")]
    pub(crate) edit: bool,
    /// Model to ask and to compact for (default: the session's own)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Provider (default: the one that offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderArg>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Summary method on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SummaryMethodArg {
    /// The session's next request plus a directive: shares the provider's cache
    Fork,
    /// A separate request without tools and pictures; drops the oldest rounds if it does not fit
    Plain,
    /// Extract word for word from the log, without a model
    Extractive,
    /// The provider's own compaction, for models that have it
    Provider,
}

/// Undo the last compaction of a session
///
/// Restores the conversation before it, followed by everything since. Fails if that does not fit the model's window. Run it
/// again to undo the compaction before.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal uncompact 0199a8f2\n  pal uncompact session.jsonl && pal view session.jsonl"
)]
pub(crate) struct UncompactArgs {
    /// Session: a log of pal, or a session id or the start of one
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Use the window of this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pin a text: every later compaction keeps it word for word
///
/// A pin is not sent to the model by itself; every summary from the next compaction on contains it, also after a resume. All
/// pins of a session together have at most 8,000 tokens, less on small windows.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal pin 0199a8f2 'Never touch the generated files.'\n  pal pin 0199a8f2 --file notes/decisions.md\n  pal pin 0199a8f2 --list\n  pal pin 0199a8f2 --remove 2"
)]
pub(crate) struct PinArgs {
    /// Session: a log of pal, or a session id or the start of one
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Text to pin
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "list", "remove"], value_parser = text_to_pin)]
    pub(crate) text: Option<String>,
    /// Pin the current contents of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "list", "remove"])]
    pub(crate) file: Option<PathBuf>,
    /// List the pins
    #[arg(long, conflicts_with_all = ["text", "remove"])]
    pub(crate) list: bool,
    /// Remove the pin with this number
    #[arg(long, value_name = "N", conflicts_with = "text", value_parser = whole_number::<usize>)]
    pub(crate) remove: Option<usize>,
    /// Count tokens for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn text_to_pin(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("nothing to pin: the text is empty") } else { Ok(text.to_owned()) }
}
