//! Arguments of `pal help`.

use clap::Args;

/// Show a page of the documentation, or the help of a command
///
/// Without a topic, lists all pages. Pages are Markdown, as in docs/ of the source.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal help\n  pal help permissions\n  pal help docs/settings.md\n  pal help cost"
)]
pub(crate) struct HelpArgs {
    /// Page, such as settings or docs/settings.md, or a command
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
}
