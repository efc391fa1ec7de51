//! Settings: environment and files resolved to values, once. Nothing else reads the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pal_model::Cards;
use pal_view::{CacheLifetime, Threshold, WindowSettings};
use serde::Deserialize;
use smol_str::SmolStr;

use crate::arguments::EstimatorName;
use crate::failure::Failure;
use crate::provider::Credentials;
use crate::surroundings::{Choices, Surroundings};

/// The variable that switches off all compaction.
const DISABLE_COMPACT: &str = "PAL_DISABLE_COMPACT";
/// The variable that switches off compaction before a request; a request that proves too long is made shorter all the
/// same.
const DISABLE_AUTO_COMPACT: &str = "PAL_DISABLE_AUTO_COMPACT";

/// What all commands may need to know.
pub(crate) struct Settings {
    /// Where our files live, if a home is known.
    pub(crate) home: Option<PathBuf>,
    /// The model table, the user's on top.
    pub(crate) cards: Cards,
    /// How to estimate tokens.
    pub(crate) estimator: EstimatorName,
    /// Windows and compaction.
    window: WindowSettings,
    /// Thresholds of single models.
    thresholds: BTreeMap<String, Threshold>,
    /// Addresses and keys of providers.
    pub(crate) credentials: Credentials,
    /// Whether sessions may be compacted at all, by hand, too.
    pub(crate) may_compact: bool,
    /// The variable that switches off compaction, or only that by itself.
    pub(crate) switched_off: Option<&'static str>,
    /// The user's editor.
    pub(crate) editor: Option<String>,
    /// What a session that starts looks at around it.
    pub(crate) surroundings: Surroundings,
    /// For how long the provider's cache is asked to keep what is marked.
    pub(crate) cache_lifetime: CacheLifetime,
    /// How hard models shall think; none for their own measure.
    pub(crate) effort: Option<SmolStr>,
    /// Values that were ignored, and why.
    pub(crate) warnings: Vec<String>,
}

/// `settings.toml`, as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    estimator: Option<EstimatorName>,
    auto_compact: Option<bool>,
    threshold: Option<RawThreshold>,
    thresholds: BTreeMap<String, RawThreshold>,
    instructions: Option<bool>,
    instruction_tokens_max: Option<u64>,
    instruction_tokens_drop: Option<bool>,
    allow_includes: Vec<String>,
    git: Option<bool>,
    git_limit_ms: Option<u64>,
    cache_lifetime: Option<RawLifetime>,
    effort: Option<Effort>,
}

/// For how long the provider's cache is asked to keep what is marked.
#[derive(Clone, Copy, Deserialize)]
enum RawLifetime {
    #[serde(rename = "5m")]
    Minutes5,
    #[serde(rename = "1h")]
    Hour1,
}

/// How hard a model shall think, in the provider's words.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    fn name(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

/// Where to compact: one of the three.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawThreshold {
    Used(u64),
    Left(u64),
    Percent(f64),
}

impl RawThreshold {
    fn resolve(self) -> Result<Threshold, String> {
        match self {
            RawThreshold::Used(tokens) => Ok(Threshold::Used(tokens)),
            RawThreshold::Left(tokens) => Ok(Threshold::Left(tokens)),
            RawThreshold::Percent(percent) if percent > 0.0 && percent <= 100.0 => {
                Ok(Threshold::Percent(percent))
            }
            RawThreshold::Percent(percent) => Err(format!("{percent} is no percentage above 0, up to 100")),
        }
    }
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Settings, Failure> {
        let home = pal_store::home_from_environment();
        let (cards, file) = match &home {
            Some(home) => {
                (cards_with(&home.join("models.toml"))?, read_settings(&home.join("settings.toml"))?)
            }
            None => (Cards::shipped(), File::default()),
        };
        Settings::resolve(home, cards, file, |name| std::env::var(name).ok())
    }

    /// The environment counts more than the file.
    fn resolve(
        home: Option<PathBuf>,
        cards: Cards,
        file: File,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, Failure> {
        let wrong = |error: String| Failure::with_hint(format!("settings.toml: {error}"), "correct the file");
        let mut window = WindowSettings::STANDARD;
        window.auto_compact = file.auto_compact.unwrap_or(true);
        if let Some(threshold) = file.threshold {
            window.threshold = threshold.resolve().map_err(wrong)?;
        }
        let mut thresholds = BTreeMap::new();
        for (model, threshold) in file.thresholds {
            thresholds.insert(model, threshold.resolve().map_err(wrong)?);
        }
        let mut warnings = read_variables(&mut window, &mut thresholds, &variable);
        let may_compact = !is_on(&variable, DISABLE_COMPACT);
        let switched_off =
            [DISABLE_COMPACT, DISABLE_AUTO_COMPACT].into_iter().find(|name| is_on(&variable, name));
        let filled = |name| variable(name).filter(|value| !value.trim().is_empty());
        let editor = filled("VISUAL").or_else(|| filled("EDITOR"));
        let choices = Choices {
            instructions: file.instructions.unwrap_or(true),
            instruction_tokens_max: file.instruction_tokens_max,
            instruction_tokens_drop: file.instruction_tokens_drop.unwrap_or(false),
            allow_includes: file.allow_includes,
            git: file.git.unwrap_or(true),
            git_limit_ms: file.git_limit_ms,
        };
        let surroundings = Surroundings::resolve(home.as_deref(), choices, &variable, &mut warnings);
        let credentials = Credentials::read(variable);
        let cache_lifetime = match file.cache_lifetime {
            None | Some(RawLifetime::Minutes5) => CacheLifetime::Minutes5,
            Some(RawLifetime::Hour1) => CacheLifetime::Hour1,
        };
        let estimator = file.estimator.unwrap_or(EstimatorName::Calibrated);
        Ok(Settings {
            home,
            cards,
            estimator,
            window,
            thresholds,
            credentials,
            may_compact,
            switched_off,
            editor,
            surroundings,
            cache_lifetime,
            effort: file.effort.map(|effort| SmolStr::new_static(effort.name())),
            warnings,
        })
    }

    /// Windows and compaction for a model.
    pub(crate) fn window_for(&self, model: &str) -> WindowSettings {
        let threshold = self.thresholds.get(model).copied().unwrap_or(self.window.threshold);
        WindowSettings { threshold, ..self.window }
    }
}

fn read_settings(path: &Path) -> Result<File, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| {
            Failure::with_hint(format!("{}: {error}", path.display()), "correct the file or move it away")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) => Err(Failure::of_file(path, &error)),
    }
}

fn cards_with(path: &Path) -> Result<Cards, Failure> {
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
fn read_variables(
    window: &mut WindowSettings,
    thresholds: &mut BTreeMap<String, Threshold>,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(text) = variable("PAL_MAX_CONTEXT_TOKENS") {
        match text.parse() {
            Ok(tokens) if tokens > 0 => window.max_context_tokens = Some(tokens),
            _ => warnings
                .push(format!("PAL_MAX_CONTEXT_TOKENS={text} is ignored: it wants a number of tokens")),
        }
    }
    if let Some(text) = variable("PAL_AUTOCOMPACT_PCT") {
        match text.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                window.threshold = Threshold::Percent(percent);
                thresholds.clear();
            }
            _ => warnings.push(format!(
                "PAL_AUTOCOMPACT_PCT={text} is ignored: it wants a percentage above 0, up to 100"
            )),
        }
    }
    if is_on(&variable, DISABLE_COMPACT) || is_on(&variable, DISABLE_AUTO_COMPACT) {
        window.auto_compact = false;
    }
    warnings
}

/// Whether a switch is set: to anything but nothing and 0.
fn is_on(variable: impl Fn(&str) -> Option<String>, name: &str) -> bool {
    variable(name).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(file: &str, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        let file = toml::from_str(file).unwrap();
        Settings::resolve(None, Cards::shipped(), file, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn values_that_make_no_sense_are_ignored_with_a_warning() {
        for value in ["0", "-5", "100.1", "NaN", "many", ""] {
            let settings = with("", &[("PAL_AUTOCOMPACT_PCT", value)]).unwrap();
            assert_eq!(
                (settings.window_for("m").threshold, settings.warnings.len()),
                (Threshold::Standard, 1),
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_around_a_session_and_the_cache_have_their_settings() {
        let settings = with("", &[]).unwrap();
        assert_eq!((settings.cache_lifetime, settings.effort), (CacheLifetime::Minutes5, None));
        let file =
            "cache_lifetime = \"1h\"\neffort = \"xhigh\"\nallow_includes = [\"docs/a.md\", \"/srv/b.md\"]\n";
        let settings = with(file, &[]).unwrap();
        assert_eq!(settings.cache_lifetime, CacheLifetime::Hour1);
        assert_eq!(settings.effort.as_deref(), Some("xhigh"));
        assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
        assert!(settings.warnings[0].contains("docs/a.md"), "a path that depends on where one stands");
        for wrong in ["cache_lifetime = \"2h\"", "effort = \"most\"", "git_limit_ms = -1"] {
            assert!(toml::from_str::<File>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_environment_counts_more_than_the_file() {
        let file = "estimator = \"classic\"\nauto_compact = false\nthreshold.percent = 80\n[thresholds]\nmine = { left = 50000 }\n";
        let settings = with(file, &[]).unwrap();
        assert_eq!(settings.estimator, EstimatorName::Classic);
        assert!(!settings.window_for("m").auto_compact);
        assert_eq!(settings.window_for("m").threshold, Threshold::Percent(80.0));
        assert_eq!(settings.window_for("mine").threshold, Threshold::Left(50_000));
        let settings =
            with(file, &[("PAL_AUTOCOMPACT_PCT", "62.5"), ("PAL_MAX_CONTEXT_TOKENS", "100000")]).unwrap();
        assert_eq!(settings.window_for("mine").threshold, Threshold::Percent(62.5));
        assert_eq!(settings.window_for("mine").max_context_tokens, Some(100_000));
        assert!(!with("", &[("PAL_DISABLE_AUTO_COMPACT", "1")]).unwrap().window_for("m").auto_compact);
        assert!(with("", &[("PAL_DISABLE_AUTO_COMPACT", "0")]).unwrap().window_for("m").auto_compact);
        assert!(with("threshold.percent = 0", &[]).is_err());
    }
}
