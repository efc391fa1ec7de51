//! What is typed to put memories in order.

use clap::Args;

use super::{ColourName, ProviderName};

/// Put the memories of this project in order, if it is time to
///
/// An agent of its own reads all memories, checks them against the project and earlier sessions, brings together what belongs
/// together, corrects what was overtaken and removes what is of no use. It can look and it can change memories, and nothing
/// else. Interactive sessions have it done by themselves once a day, after a few sessions; without --now this command says
/// what it waits for. What it changed can be taken back with `pal memory undo`; if it fails or is stopped, nothing is changed.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal dream                   what it waits for; and if that is nothing, do it\n  pal dream --now             do it now\n  pal dream --now --dry-run   only show what it would change, as a diff\n  pal dream --json | jq '.gates[] | select(.is_open | not)'\n\nExit codes: 0 done or not due, 1 it failed or was stopped."
)]
pub(crate) struct Dream {
    /// Do not wait for anything but another process that does it already
    #[arg(long)]
    pub(crate) now: bool,
    /// Work on a copy, and show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask this model (default: the one in the settings)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Whom to ask (default: whoever offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderName>,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
}
