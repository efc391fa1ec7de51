//! Windows and thresholds (§2.4–2.8): maximum context size, and where to warn, compact and block.

use pal_model::ModelCard;

/// Tokens between the automatic compaction and the effective window.
const AUTO_COMPACT_BUFFER: u64 = 13_000;
/// Tokens below the effective window where the warning begins.
const WARNING_BUFFER: u64 = 20_000;
/// Tokens below the effective window where only a compaction may be sent.
const BLOCKING_BUFFER: u64 = 3_000;
/// Maximum tokens reserved for the response.
const RESERVE_MAX: u64 = 20_000;
/// Window below which every budget shrinks proportionally.
const FULL_WINDOW: u64 = 200_000;

/// User settings for the window and automatic compaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowSettings {
    /// Upper bound for the window (`PAL_MAX_CONTEXT_TOKENS`).
    pub max_context_tokens: Option<u64>,
    /// Threshold of the automatic compaction.
    pub threshold: CompactionThreshold,
    /// Enables automatic compaction.
    pub auto_compact: bool,
}

/// Threshold of the automatic compaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CompactionThreshold {
    /// A fixed buffer below the effective window.
    Standard,
    /// At this many tokens used.
    Used(u64),
    /// When this many tokens are left of the effective window.
    Left(u64),
    /// At this share of the effective window, in percent.
    Percent(f64),
}

impl WindowSettings {
    /// Default settings.
    pub const STANDARD: WindowSettings = WindowSettings {
        max_context_tokens: None,
        threshold: CompactionThreshold::Standard,
        auto_compact: true,
    };
}

/// Token limits that follow from a card and the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowLimits {
    /// Context window.
    pub window: u64,
    /// Reserved for the response.
    pub reserve: u64,
    /// Window less reserve, capped by the provider's prompt limit.
    pub effective: u64,
    /// Automatic compaction threshold; `None` if disabled.
    pub auto_compact: Option<u64>,
    /// Warning threshold.
    pub warning: u64,
    /// Threshold above which only a compaction may be sent.
    pub blocking: u64,
}

/// Fill level of the context.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowFill {
    /// Percent left on the way to the automatic compaction, or to the effective window when that is off.
    pub percent_left: f64,
    /// The warning threshold is reached.
    pub warning: bool,
    /// A compaction is due.
    pub auto_compact: bool,
    /// Only a compaction may be sent.
    pub blocking: bool,
}

/// Scale of budgets for a window: window ÷ 200,000, clamped to 0.1–1 (§0.4).
pub fn window_scale(window: u64) -> f64 {
    (window as f64 / FULL_WINDOW as f64).clamp(0.1, 1.0)
}

impl WindowLimits {
    /// Computes the limits of a model under the settings.
    pub fn new(card: &ModelCard, settings: &WindowSettings) -> WindowLimits {
        let window = settings.max_context_tokens.map_or(card.window, |most| card.window.min(most)).max(1);
        let scaled = |budget: u64| (budget as f64 * window_scale(window)) as u64;
        let reserve = card.max_output.min(scaled(RESERVE_MAX)).min(window / 2);
        let effective = (window - reserve).min(card.prompt_limit()).max(1);
        let standard = effective.saturating_sub(scaled(AUTO_COMPACT_BUFFER));
        let threshold = match settings.threshold {
            CompactionThreshold::Standard => standard,
            CompactionThreshold::Used(tokens) => tokens.min(standard),
            CompactionThreshold::Left(tokens) => effective.saturating_sub(tokens).min(standard),
            CompactionThreshold::Percent(percent) => {
                ((effective as f64 * percent / 100.0).floor() as u64).min(standard)
            }
        };
        WindowLimits {
            window,
            reserve,
            effective,
            auto_compact: settings.auto_compact.then_some(threshold.max(1)),
            warning: effective.saturating_sub(scaled(WARNING_BUFFER)),
            blocking: effective.saturating_sub(scaled(BLOCKING_BUFFER)),
        }
    }

    /// Limits of a provider whose real window has `window` tokens; a larger one changes nothing.
    pub fn lowered_to(&self, window: u64) -> WindowLimits {
        if window >= self.window {
            return *self;
        }
        let window = window.max(1);
        let scaled = |budget: u64| (budget as f64 * window_scale(window)) as u64;
        let reserve = self.reserve.min(scaled(RESERVE_MAX)).min(window / 2);
        let effective = (window - reserve).min(self.effective).max(1);
        let standard = effective.saturating_sub(scaled(AUTO_COMPACT_BUFFER)).max(1);
        WindowLimits {
            window,
            reserve,
            effective,
            auto_compact: self.auto_compact.map(|threshold| threshold.min(standard)),
            warning: effective.saturating_sub(scaled(WARNING_BUFFER)),
            blocking: effective.saturating_sub(scaled(BLOCKING_BUFFER)),
        }
    }

    /// Fill level of a context of `tokens` tokens.
    pub fn fill(&self, tokens: u64) -> WindowFill {
        let goal = self.auto_compact.unwrap_or(self.effective).max(1);
        WindowFill {
            percent_left: (100.0 * goal.saturating_sub(tokens) as f64 / goal as f64).clamp(0.0, 100.0),
            warning: tokens >= self.warning,
            auto_compact: self.auto_compact.is_some_and(|threshold| tokens >= threshold),
            blocking: tokens >= self.blocking,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::ModelCatalog;

    fn limits(window: u64, max_output: u64, settings: WindowSettings) -> WindowLimits {
        let card = ModelCard { window, max_output, ..ModelCatalog::built_in().find("claude-opus-4-5").card };
        WindowLimits::new(&card, &settings)
    }

    #[test]
    fn the_worked_examples_of_the_specification() {
        assert_eq!(limits(200_000, 64_000, WindowSettings::STANDARD).auto_compact, Some(167_000));
        assert_eq!(limits(200_000, 8_000, WindowSettings::STANDARD).auto_compact, Some(179_000));
    }

    #[test]
    fn percent_never_passes_the_standard_threshold() {
        let at = |percent| {
            let settings = WindowSettings {
                threshold: CompactionThreshold::Percent(percent),
                ..WindowSettings::STANDARD
            };
            limits(200_000, 64_000, settings).auto_compact
        };
        assert_eq!((at(50.0), at(92.0), at(100.0)), (Some(90_000), Some(165_600), Some(167_000)));
    }

    #[test]
    fn thresholds_are_ordered() {
        let limits = limits(200_000, 64_000, WindowSettings::STANDARD);
        assert_eq!((limits.warning, limits.blocking), (160_000, 177_000));
        let fill = limits.fill(83_500);
        assert!((fill.percent_left - 50.0).abs() < 1e-9 && !fill.warning && !fill.auto_compact);
        assert!(limits.fill(160_000).warning && !limits.fill(166_999).auto_compact);
        assert!(limits.fill(167_000).auto_compact && !limits.fill(176_999).blocking);
        assert!(limits.fill(177_000).blocking);
        assert_eq!(limits.fill(1_000_000).percent_left, 0.0);
    }

    #[test]
    fn small_windows_scale_every_budget() {
        let limits = limits(30_000, 64_000, WindowSettings::STANDARD);
        assert_eq!((limits.reserve, limits.effective), (3_000, 27_000));
        assert_eq!((limits.auto_compact, limits.warning, limits.blocking), (Some(25_050), 24_000, 26_550));
        for window in [1, 2, 10, 1_000] {
            let limits = super::tests::limits(window, 64_000, WindowSettings::STANDARD);
            assert!(limits.effective >= 1 && limits.auto_compact >= Some(1), "{limits:?}");
        }
    }

    #[test]
    fn lowered_limits_are_those_of_a_smaller_window() {
        let large = limits(200_000, 64_000, WindowSettings::STANDARD);
        for window in [1, 6_000, 30_000, 128_000, 199_000] {
            assert_eq!(
                large.lowered_to(window),
                limits(window, 64_000, WindowSettings::STANDARD),
                "{window}"
            );
        }
        assert_eq!(large.lowered_to(200_000), large);
        assert_eq!(large.lowered_to(1_000_000), large);
    }

    #[test]
    fn settings_lower_the_window_and_disable_compaction() {
        let settings = WindowSettings {
            max_context_tokens: Some(100_000),
            auto_compact: false,
            ..WindowSettings::STANDARD
        };
        let limits = limits(200_000, 64_000, settings);
        assert_eq!((limits.window, limits.auto_compact), (100_000, None));
        assert!(limits.fill(limits.effective).percent_left == 0.0);
    }
}
