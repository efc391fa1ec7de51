//! Arguments of `pal gc`.

use clap::Args;

/// Free disk space: remove the oldest outputs of commands and spilled results
///
/// Removes the oldest files until all of them together are within the limit (setting `max_outputs_mb`), and leaves a short text
/// in the place of each that says so. What was said stays: logs are never touched. Sessions that are open in another process
/// are left alone. Without `--yes` it shows what it would remove, and asks if there is a terminal.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal gc                        show what is over the limit, then ask\n  pal gc --keep-mb 500 --yes    keep the newest 500 MB\n  pal gc --keep-mb 0 --yes      remove all outputs\n  pal gc --json | jq .would_free_bytes"
)]
pub(crate) struct Gc {
    /// Keep the newest outputs up to this size, in megabytes (default: max_outputs_mb)
    #[arg(long, value_name = "MB")]
    pub(crate) keep_mb: Option<u64>,
    /// Remove without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
