//! Arguments of `pal agents` and `pal send`.

use clap::Args;

/// List the running sessions on this machine, and their message addresses
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal agents\n  pal agents --json | jq -r '.[].name'\n  pal send palimpsest-8b01 'The tests are green again.'"
)]
pub(crate) struct AgentsArgs {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a message to a running session; the agent reads it with its next tool results
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal send palimpsest-8b01 'The tests are green again.'\n  pal send '*' 'The network goes down in five minutes.'"
)]
pub(crate) struct SendArgs {
    /// Session name as shown by `pal agents`, or the start of one; `*` for all
    #[arg(value_name = "NAME")]
    pub(crate) to: String,
    /// Message text
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// Sender name
    #[arg(long, value_name = "NAME", default_value = "pal-send")]
    pub(crate) from: String,
}
