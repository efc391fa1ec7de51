//! Colours and width of the terminal that standard output goes to.

use std::io::IsTerminal;

use pal_report::{DEFAULT_COLUMNS, TextStyle};

use crate::arguments::ColourArg;

/// Returns the style for a `--colour` choice; `auto` means colours on a terminal, unless `NO_COLOR` is set.
pub(crate) fn style_for(choice: ColourArg) -> TextStyle {
    match choice {
        ColourArg::Always => TextStyle::new(true),
        ColourArg::Never => TextStyle::new(false),
        ColourArg::Auto => auto_style(),
    }
}

/// Returns the style for standard output: colours on a terminal, unless `NO_COLOR` is set.
pub(crate) fn auto_style() -> TextStyle {
    let is_allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    TextStyle::new(is_allowed && std::io::stdout().is_terminal())
}

/// Columns of the terminal that standard output goes to, between 40 and 240; [`DEFAULT_COLUMNS`] if it goes elsewhere.
pub(crate) fn columns() -> usize {
    let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    width.map_or(DEFAULT_COLUMNS, |width| width.clamp(40, 240))
}

/// Formats a heading for standard output.
pub(crate) fn bold(text: &str) -> String {
    auto_style().bold(text)
}

/// Formats a warning for standard output.
pub(crate) fn yellow(text: &str) -> String {
    auto_style().yellow(text)
}
