//! Arguments of `pal config`.

use clap::Args;

use super::ColorArg;

/// Show all settings, their values and where they come from
///
/// Sources, from lowest to highest precedence: built-in defaults, $PAL_HOME/settings.toml, .pal/settings.toml and
/// .pal/settings.local.toml of the project, --settings, environment variables, flags, the managed settings file. API keys are
/// never shown, only whether they are set.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal config\n  pal config permissions                    all settings of a table\n  pal config --settings 'git = false' git\n  pal config --json | jq '.[] | select(.from[0].place != \"default\")'"
)]
pub(crate) struct ConfigArgs {
    /// Show only this setting or this table of settings
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
