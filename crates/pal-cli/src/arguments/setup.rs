//! Arguments of `pal init` and `pal doctor`.

use clap::Args;

/// Set pal up: find keys and settings of other agents, say what is used, and write a settings file
///
/// Lists API keys, the settings of Claude Code, Codex, Gemini CLI and opencode with what is used and what is not, sessions that
/// `pal import` can read, and MCP servers. Writes settings.toml with comments unless it exists, and asks on a terminal whether you
/// trust the project. Running it again changes nothing that exists.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal init\n  pal init --yes                            trust the project without a question"
)]
pub(crate) struct InitArgs {
    /// Trust the project without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Check the installation: home, settings, keys, model, sandbox, git, hooks and MCP servers
///
/// Each line is a check: ok, a warning, or a problem with its next step. Sends nothing. Exits with 1 if there is a problem.
#[derive(Args)]
#[command(after_help = "Examples:\n  pal doctor\n  pal doctor --json | jq '.[] | select(.state != \"ok\")'")]
pub(crate) struct DoctorArgs {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
