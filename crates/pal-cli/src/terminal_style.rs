//! Colors and width of the terminal that standard output goes to.

use std::io::IsTerminal;

use pal_report::{DEFAULT_COLUMNS, TextStyle};

use crate::arguments::ColorArg;

/// Returns the style for a `--color` choice; `auto` means colors on a terminal, unless `NO_COLOR` is set.
pub(crate) fn style_for(choice: ColorArg) -> TextStyle {
    match choice {
        ColorArg::Always => TextStyle::new(true),
        ColorArg::Never => TextStyle::new(false),
        ColorArg::Auto => auto_style(),
    }
}

/// Returns the style for standard output: colors on a terminal, unless `NO_COLOR` is set.
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
