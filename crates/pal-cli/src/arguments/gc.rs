//! Arguments of `pal gc`.

use super::number_parsers::whole_number;
use clap::Args;

/// Free disk space: remove the oldest command outputs and spilled results
///
/// Removes the oldest files until the total is within the limit (setting `max_outputs_mb`), and leaves a short note in place of
/// each. Deletes sessions that `pal rm` moved to the trash more than `keep_trash_days` ago, and moves sessions without activity
/// for `keep_sessions_days` there. Other logs are never touched. Sessions that are open in another process are skipped. Without
/// `--yes`, lists everything and asks for confirmation on a terminal.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal gc                        list files over the limit, then ask\n  pal gc --keep-mb 500 --yes    keep the newest 500 MB\n  pal gc --keep-mb 0 --yes      remove all outputs\n  pal gc --json | jq .would_free_bytes"
)]
pub(crate) struct GcArgs {
    /// Keep the newest outputs up to this size, in megabytes (default: max_outputs_mb)
    #[arg(long, value_name = "MB", value_parser = whole_number::<u64>)]
    pub(crate) keep_mb: Option<u64>,
    /// Remove without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
