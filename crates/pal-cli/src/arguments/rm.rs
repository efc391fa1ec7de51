//! Arguments of `pal rm`.

use clap::Args;

/// Remove sessions: to the trash, from which they can be restored
///
/// Moves the log of each session with its outputs, notes and subagents to the trash in pal's home. `pal recall`, `pal sessions`
/// and `pal -r` no longer find it; `pal cost --all` still counts what it cost. A session that is open in another process is
/// not removed. `pal gc` deletes sessions that have been in the trash for `keep_trash_days` (30 by default).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal rm 0199a8f2                 with an id from `pal sessions --all`\n  pal rm --undo                   restore the session removed last\n  pal rm --undo 0199a8f2\n  pal rm --list                   sessions in the trash"
)]
pub(crate) struct RmArgs {
    /// Sessions: ids, the start of an id, or paths of logs
    #[arg(value_name = "SESSION", required_unless_present_any = ["undo", "list"])]
    pub(crate) sessions: Vec<String>,
    /// Restore sessions from the trash; without an id, the one removed last
    #[arg(long, conflicts_with = "list")]
    pub(crate) undo: bool,
    /// List the sessions in the trash
    #[arg(long)]
    pub(crate) list: bool,
    /// Print one JSON object per session
    #[arg(long)]
    pub(crate) json: bool,
}
