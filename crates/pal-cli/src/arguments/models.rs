//! Arguments of `pal models`.

use clap::Args;

use super::{ColorArg, ProviderArg};

/// List model cards: windows, output limits and prices
///
/// Cards are built in, refreshed from the provider, or your own in `models.toml`, each overriding the one before field by
/// field. `--refresh` asks the provider's Models endpoint for limits and capabilities; prices are not reported there.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal models\n  pal models --refresh\n  OPENAI_BASE_URL=http://127.0.0.1:8000/v1 pal models --refresh --provider chat\n  pal models --json | jq '.[].name'"
)]
pub(crate) struct ModelsArgs {
    /// Ask the provider for its models first
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Provider to ask
    #[arg(long, value_enum, ignore_case = true, default_value = "anthropic")]
    pub(crate) provider: ProviderArg,
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Use colors
    #[arg(long, value_enum, value_name = "WHEN", ignore_case = true, default_value = "auto")]
    pub(crate) color: ColorArg,
}
