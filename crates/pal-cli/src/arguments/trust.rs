//! Arguments of `pal trust`.

use clap::Args;

/// Trust this project: let its settings and MCP servers run commands
///
/// Prints `.pal/settings.toml`, `.pal/settings.local.toml`, `.mcp.json`, `.claude/settings.json` and
/// `.claude/settings.local.json` in full, and asks for confirmation. Trust covers the current contents: when one of these files
/// changes, the project is untrusted until you run this command again.
#[derive(Args)]
#[command(after_help = "Examples:\n  pal trust\n  pal trust --yes")]
pub(crate) struct TrustArgs {
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}
