//! Arguments of `pal login` and `pal logout`.

use clap::{Args, ValueEnum};

/// Store an API key, so that it need not be in the environment
///
/// Asks for the key without showing it, or reads it from standard input. The key is stored in the keyring of the system
/// (through `secret-tool` on Linux and `security` on macOS), else in keys.json in the home of pal, which only you can read.
/// An environment variable goes before it. The key is sent to its provider only.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal login\n  pal login openai\n  pal login --file\n  pass show anthropic | pal login"
)]
pub(crate) struct LoginArgs {
    /// Provider of the key
    #[arg(value_enum, value_name = "PROVIDER", default_value = "anthropic")]
    pub(crate) provider: KeyProviderArg,
    /// Store the key in keys.json even if the system has a keyring
    #[arg(long)]
    pub(crate) file: bool,
}

/// Remove a stored API key
#[derive(Args)]
#[command(after_help = "Examples:\n  pal logout\n  pal logout openai")]
pub(crate) struct LogoutArgs {
    /// Provider of the key
    #[arg(value_enum, value_name = "PROVIDER", default_value = "anthropic")]
    pub(crate) provider: KeyProviderArg,
}

/// Provider of a stored key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum KeyProviderArg {
    /// Claude
    Anthropic,
    /// GPT
    Openai,
}

impl KeyProviderArg {
    /// Name in the file of keys.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyProviderArg::Anthropic => "anthropic",
            KeyProviderArg::Openai => "openai",
        }
    }

    /// Environment variable that goes before a stored key.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            KeyProviderArg::Anthropic => "ANTHROPIC_API_KEY",
            KeyProviderArg::Openai => "OPENAI_API_KEY",
        }
    }
}
