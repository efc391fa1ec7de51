//! Settings: environment and files resolved to values, once. Nothing else reads the environment.

use std::path::PathBuf;

use pal_model::Cards;
use pal_view::{Threshold, WindowSettings};

use crate::failure::Failure;

/// What all commands may need to know.
pub(crate) struct Settings {
    /// Where our files live, if a home is known.
    pub(crate) home: Option<PathBuf>,
    /// The model table, the user's on top.
    pub(crate) cards: Cards,
    /// Windows and compaction.
    pub(crate) window: WindowSettings,
    /// Values that were ignored, and why.
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Settings, Failure> {
        let home = pal_store::home_from_environment();
        let cards = match &home {
            Some(home) => cards_with(&home.join("models.toml"))?,
            None => Cards::shipped(),
        };
        let (window, warnings) = window_settings(|name| std::env::var(name).ok());
        Ok(Settings { home, cards, window, warnings })
    }
}

fn cards_with(path: &std::path::Path) -> Result<Cards, Failure> {
    let shipped = Cards::shipped();
    match std::fs::read_to_string(path) {
        Ok(text) => shipped.overridden(&text).map_err(|error| {
            Failure::with_hint(format!("{}: {error}", path.display()), "correct the file or move it away")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(shipped),
        Err(error) => Err(Failure::of_file(path, &error)),
    }
}

/// Windows and thresholds from the environment; values that make no sense are ignored with a warning.
fn window_settings(variable: impl Fn(&str) -> Option<String>) -> (WindowSettings, Vec<String>) {
    let mut settings = WindowSettings::STANDARD;
    let mut warnings = Vec::new();
    if let Some(text) = variable("PAL_MAX_CONTEXT_TOKENS") {
        match text.parse() {
            Ok(tokens) if tokens > 0 => settings.max_context_tokens = Some(tokens),
            _ => warnings
                .push(format!("PAL_MAX_CONTEXT_TOKENS={text} is ignored: it wants a number of tokens")),
        }
    }
    if let Some(text) = variable("PAL_AUTOCOMPACT_PCT") {
        match text.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                settings.threshold = Threshold::Percent(percent)
            }
            _ => warnings.push(format!(
                "PAL_AUTOCOMPACT_PCT={text} is ignored: it wants a percentage above 0, up to 100"
            )),
        }
    }
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    settings.auto_compact = !is_set("PAL_DISABLE_COMPACT") && !is_set("PAL_DISABLE_AUTO_COMPACT");
    (settings, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &'static [(&'static str, &'static str)]) -> (WindowSettings, Vec<String>) {
        window_settings(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn values_that_make_no_sense_are_ignored_with_a_warning() {
        for value in ["0", "-5", "100.1", "NaN", "many", ""] {
            let (settings, warnings) =
                window_settings(|name| (name == "PAL_AUTOCOMPACT_PCT").then(|| value.to_owned()));
            assert_eq!((settings.threshold, warnings.len()), (Threshold::Standard, 1), "{value}");
        }
        let (settings, warnings) =
            with(&[("PAL_AUTOCOMPACT_PCT", "62.5"), ("PAL_MAX_CONTEXT_TOKENS", "100000")]);
        assert_eq!(
            (settings.threshold, settings.max_context_tokens),
            (Threshold::Percent(62.5), Some(100_000))
        );
        assert!(warnings.is_empty());
        assert!(!with(&[("PAL_DISABLE_AUTO_COMPACT", "1")]).0.auto_compact);
        assert!(with(&[("PAL_DISABLE_AUTO_COMPACT", "0")]).0.auto_compact);
    }
}
