//! What is typed for the commands about sessions that run.

use clap::Args;

/// List the sessions that run on this machine, and where they can be written to
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal agents\n  pal agents --json | jq -r '.[].name'\n  pal send palimpsest-8b01 'The tests are green again.'"
)]
pub(crate) struct Agents {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say something to a session that runs; it hears it with its next results
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal send palimpsest-8b01 'The tests are green again.'\n  pal send '*' 'The network goes down in five minutes.'"
)]
pub(crate) struct Send {
    /// Its name, as `pal agents` shows it, or how it begins; `*` for all
    #[arg(value_name = "NAME")]
    pub(crate) to: String,
    /// What to say
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Who says it
    #[arg(long, value_name = "NAME", default_value = "pal-send")]
    pub(crate) from: String,
}
