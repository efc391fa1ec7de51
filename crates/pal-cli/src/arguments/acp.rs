//! Arguments of `pal acp`.

use clap::Args;

use super::{PermissionModeArg, ProviderArg};

/// Run the agent for an editor, over the Agent Client Protocol on standard input and output
///
/// The editor starts this command. Its sessions are saved like all others: `pal --resume` continues them in the terminal, and
/// the editor can load sessions of the terminal. API keys such as ANTHROPIC_API_KEY come from the environment that the editor
/// sets, or from the settings.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal acp\n  pal acp --provider sim            try it without an API key\n\nIn the settings.json of Zed:\n  \"agent_servers\": {\n    \"Palimpsest\": { \"type\": \"custom\", \"command\": \"pal\", \"args\": [\"acp\"], \"env\": {} }\n  }\n\nSee docs/acp.md."
)]
pub(crate) struct AcpArgs {
    /// Model (default: the session's own, else the one in the settings)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Provider (default: the one that offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderArg>,
    /// Permission mode of new sessions (default: the one in the settings)
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionModeArg>,
    /// Run shell commands without the sandbox
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}
