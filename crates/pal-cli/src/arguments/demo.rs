//! What is typed to see it work.

use clap::Args;

use super::ColourName;

/// See it work: a real session in a scratch folder, without a key and without a network, in seconds
///
/// The program works on a small project with real tools, against a simulated provider on this machine whose model is a script:
/// long results go to disk, the session comes back after two hours, its window fills up and is compacted, the process is
/// killed in the middle of a command and goes on where it was. Everything that is told is read from the log and from what was
/// sent; what was promised and not seen is named, and then the exit code is 1.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal demo\n  pal demo --keep                           leaves the project, the log and every request to look at\n  pal demo --json | jq .resume"
)]
pub(crate) struct Demo {
    /// Leave the scratch folder, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON object with all figures instead of the story
    #[arg(long)]
    pub(crate) json: bool,
}
