//! Arguments of `pal sim`.

use std::path::PathBuf;

use super::number_parsers::{at_least_one, whole_number};
use clap::{Args, ValueEnum};

/// Run a simulated provider on this machine: no API key, no cost, validation as strict as the real one
///
/// Serves Anthropic Messages, OpenAI Responses and Chat Completions on loopback with a real prefix cache, real token counts and
/// real prices. Point any client at it. Prints every request with its cache reads, cache writes and cost. docs/simulator.md
/// describes scripts and faults.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal sim\n  ANTHROPIC_BASE_URL=http://127.0.0.1:4010 ANTHROPIC_API_KEY=any claude\n  pal sim --model-script loop.toml --faults '529@1-2,cut:0.05' --seed 7\n  pal sim --speed virtual --log exchanges/"
)]
pub(crate) struct SimArgs {
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 4010, value_parser = whole_number::<u16>)]
    pub(crate) port: u16,
    /// Answer from a script (default: extract answers from the request)
    #[arg(long, value_name = "FILE")]
    pub(crate) model_script: Option<PathBuf>,
    /// Answer with the responses of a recorded session
    #[arg(long, value_name = "FILE", conflicts_with = "model_script")]
    pub(crate) replay: Option<PathBuf>,
    /// Faults to inject, and when
    #[arg(long, value_name = "SPEC")]
    pub(crate) faults: Option<String>,
    /// Seed of ids and random faults: the same seed gives the same answers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u64>)]
    pub(crate) seed: u64,
    /// Real or virtual time
    #[arg(long, value_enum, ignore_case = true, default_value = "real")]
    pub(crate) speed: SpeedArg,
    /// Save every request and response in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,
    /// Accept only this API key; may be repeated (default: any)
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Accept thinking blocks signed by another provider, and bind each to the place where it is first seen
    #[arg(long)]
    pub(crate) learn_signatures: bool,
    /// Refuse prompts above this many tokens, whatever the model's card says
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub(crate) window: Option<u64>,
    /// Print one JSON object per request
    #[arg(long)]
    pub(crate) json: bool,
}

/// Time of the simulator on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SpeedArg {
    /// Responses take as long as real ones
    Real,
    /// Responses are sent at once; a virtual clock jumps ahead
    Virtual,
}
