//! Arguments of `pal dream`.

use clap::Args;

use super::{ColorArg, ProviderArg};

/// Consolidate the memories of this project, if it is due
///
/// A separate agent reads all memories, checks them against the project and earlier sessions, merges related ones, corrects
/// outdated ones and removes useless ones. It can read files and change memories, nothing else. Interactive sessions run it
/// once a day, after a few sessions. Without --now, this command prints the conditions and runs only if all are met. `pal memory
/// undo` reverts its changes; if it fails or is stopped, nothing is changed.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal dream                   show the conditions; run if all are met\n  pal dream --now             run now\n  pal dream --now --dry-run   show the changes as a diff, apply none\n  pal dream --json | jq '.gates[] | select(.is_open | not)'\n\nExit codes: 0 done or not due, 1 failed or stopped."
)]
pub(crate) struct DreamArgs {
    /// Skip all conditions except the lock of a running dream
    #[arg(long)]
    pub(crate) now: bool,
    /// Work on a copy and show the changes
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Model (default: the one in the settings)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Provider (default: the one that offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderArg>,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
}
