//! What is typed for a look at settings.

use clap::Args;

use super::ColourName;

/// Show every setting, its value and where it came from
///
/// Settings come from, far to near: what is built in, $PAL_HOME/settings.toml, .pal/settings.toml and
/// .pal/settings.local.toml of the project, --settings, variables, flags; a managed file counts more than all of them.
/// Keys of providers are never shown, only whether they are set.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal config\n  pal config permissions                    all settings of one table\n  pal config --settings 'git = false' git\n  pal config --json | jq '.[] | select(.from[0].place != \"default\")'"
)]
pub(crate) struct Config {
    /// Only this setting, or this table of settings
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
