//! What is typed to serve an editor.

use clap::Args;

use super::{PermissionMode, ProviderName};

/// Work for an editor that speaks the Agent Client Protocol, over standard input and output
///
/// The editor starts this program; nobody types it. Sessions are kept as any others are: `pal --resume` goes on with them in
/// the terminal, and the editor can load what began there. What it needs to reach a model, such as ANTHROPIC_API_KEY, comes
/// from the environment that the editor gives it, or from the settings.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal acp\n  pal acp --provider sim            to try it without a key\n\nIn the settings.json of Zed:\n  \"agent_servers\": {\n    \"Palimpsest\": { \"type\": \"custom\", \"command\": \"pal\", \"args\": [\"acp\"], \"env\": {} }\n  }\n\nThe whole in docs/acp.md."
)]
pub(crate) struct Acp {
    /// Ask this model (default: the session's own, else the one in the settings)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Whom to ask (default: whoever offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderName>,
    /// What is allowed without a rule when a session begins (default: what the settings say)
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// Run shell commands without the sandbox
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}
