//! Arguments of `pal demo`.

use clap::Args;

use super::ColorArg;

/// Run a demo: a real session in a scratch directory, without an API key or network, in seconds
///
/// The agent works on a small project with real tools against a simulated provider whose model follows a script: long results
/// are spilled to disk, the session resumes after two hours, its window fills up and is compacted, the process is killed during
/// a command and continues. All figures are read from the log and from the requests. Exits with 1 and names each promise that
/// was not kept.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal demo\n  pal demo --keep                           keep the project, the log and all requests\n  pal demo --json | jq .resume"
)]
pub(crate) struct DemoArgs {
    /// Keep the scratch directory and print its path
    #[arg(long)]
    pub(crate) keep: bool,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print one JSON object with all figures
    #[arg(long)]
    pub(crate) json: bool,
}
