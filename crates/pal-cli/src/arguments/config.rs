//! Arguments of `pal config`.

use clap::{Args, Subcommand, ValueEnum};

use super::ColorArg;

/// Show all settings, their values and where they come from; or change them
///
/// Sources, from lowest to highest precedence: built-in defaults, settings of other agents (docs/setup.md),
/// $PAL_HOME/settings.toml, .pal/settings.toml and .pal/settings.local.toml of the project, --settings, environment variables,
/// flags, the managed settings file. API keys are never shown, only whether they are set.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pal config\n  pal config permissions                    all settings of a table\n  pal config set model opus\n  pal config set permissions.deny 'Read(.env),Bash(rm:*)'\n  pal config unset model\n  pal config edit --scope project\n  pal config --settings 'git = false' git\n  pal config --json | jq '.[] | select(.from[0].place != \"default\")'"
)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    /// Show only this setting or this table of settings
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// A second word, which only an error explains
    #[arg(value_name = "WORD", hide = true)]
    pub(crate) other: Option<String>,
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Set a setting: a word, a number, a list with commas, or TOML
    Set {
        /// Setting, such as permissions.mode, or entry of a table, such as env.NAME
        #[arg(value_name = "KEY")]
        key: String,
        /// Value
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        /// Settings file to change
        #[arg(short, long, value_enum, default_value = "user")]
        scope: ConfigScopeArg,
    },
    /// Remove a setting from a settings file
    Unset {
        /// Setting, such as permissions.mode, or entry of a table, such as env.NAME
        #[arg(value_name = "KEY")]
        key: String,
        /// Settings file to change
        #[arg(short, long, value_enum, default_value = "user")]
        scope: ConfigScopeArg,
    },
    /// Open a settings file in your editor, and check it afterwards
    Edit {
        /// Settings file to change
        #[arg(short, long, value_enum, default_value = "user")]
        scope: ConfigScopeArg,
    },
}

/// Settings file on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ConfigScopeArg {
    /// Yours, for all projects: $PAL_HOME/settings.toml
    User,
    /// The project's, in its repository: .pal/settings.toml
    Project,
    /// Yours in this project: .pal/settings.local.toml
    Local,
}
