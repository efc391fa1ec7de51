//! Arguments of `pal ask`.

use std::path::PathBuf;

use clap::Args;

use super::ProviderArg;
use super::number_parsers::whole_number;

/// Ask a model a question, with or without a session as context; nothing is saved
///
/// With --session the model sees what the session's next request would contain, followed by the question; the log stays
/// unchanged. Each TEXT is an independent question: quote questions of several words. Several questions run in parallel; the
/// first runs alone until its answer starts, so that the others read their common prefix from the provider's cache. The model
/// decides the provider: Claude uses ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, GPT uses
/// OPENAI_BASE_URL with OPENAI_API_KEY. Retries, tokens and cost are printed to standard error.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal ask --provider sim 'Is anybody there?'\n  pal ask --session log.jsonl 'Which files did we change?'\n  pal ask --session log.jsonl 'What is left to do?' 'Which tests fail?' 'What would you do otherwise?'\n  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 pal ask --provider chat --model qwen3 'Hello'"
)]
pub(crate) struct AskArgs {
    /// One or more questions
    #[arg(value_name = "TEXT", required = true, value_parser = text_to_ask)]
    pub(crate) questions: Vec<String>,
    /// Use this session as context: a log of pal or another agent's session file
    #[arg(long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,
    /// Model (default: the session's own, else claude-opus-5-5)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Provider (default: the one that offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderArg>,
    /// Maximum tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = whole_number::<u64>)]
    pub(crate) max_tokens: u64,
    /// Print one JSON object per question when its answer is complete
    #[arg(long)]
    pub(crate) json: bool,
}

fn text_to_ask(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("nothing to ask: the text is empty") } else { Ok(text.to_owned()) }
}
