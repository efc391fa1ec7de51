//! Windows and thresholds (§2.4–2.8): how large the context may be, when to warn, compact and stop.

use pal_model::Card;

/// Tokens between the automatic compaction and the effective window.
const AUTO_COMPACT_BUFFER: u64 = 13_000;
/// Tokens below the effective window from which on the user is warned.
const WARNING_BUFFER: u64 = 20_000;
/// Tokens below the effective window from which on no request but a compaction leaves.
const BLOCKING_BUFFER: u64 = 3_000;
/// Most tokens reserved for an answer.
const RESERVE_MAX: u64 = 20_000;
/// The window below which every budget shrinks with it.
const FULL_WINDOW: u64 = 200_000;

/// What the user set about windows and compaction. All fields are given at the call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowSettings {
    /// An upper bound for the window (`PAL_MAX_CONTEXT_TOKENS`).
    pub max_context_tokens: Option<u64>,
    /// Where to compact.
    pub threshold: Threshold,
    /// Whether to compact by itself.
    pub auto_compact: bool,
}

/// Where the automatic compaction is set off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Threshold {
    /// A buffer below the effective window.
    Standard,
    /// At this many tokens used.
    Used(u64),
    /// When this many tokens are left of the effective window.
    Left(u64),
    /// At this share of the effective window, in percent.
    Percent(f64),
}

impl WindowSettings {
    /// What holds when nothing is set.
    pub const STANDARD: WindowSettings =
        WindowSettings { max_context_tokens: None, threshold: Threshold::Standard, auto_compact: true };
}

/// The limits that follow from a card and the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The window.
    pub window: u64,
    /// Kept free for the answer.
    pub reserve: u64,
    /// Window less reserve, and no more than the provider takes as a prompt.
    pub effective: u64,
    /// Where to compact; none when that is off.
    pub auto_compact: Option<u64>,
    /// Where to warn.
    pub warning: u64,
    /// Where only a compaction may leave.
    pub blocking: u64,
}

/// How full the context is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fill {
    /// Percent left on the way to the automatic compaction, or to the effective window when that is off.
    pub percent_left: f64,
    /// The user should know.
    pub warning: bool,
    /// A compaction is due.
    pub auto_compact: bool,
    /// Nothing but a compaction may leave.
    pub blocking: bool,
}

/// The share by which budgets shrink on small windows: window ÷ 200 000, between a tenth and one (§0.4).
pub fn scale(window: u64) -> f64 {
    (window as f64 / FULL_WINDOW as f64).clamp(0.1, 1.0)
}

impl Limits {
    /// The limits of a model under the settings.
    pub fn new(card: &Card, settings: &WindowSettings) -> Limits {
        let window = settings.max_context_tokens.map_or(card.window, |most| card.window.min(most)).max(1);
        let scaled = |budget: u64| (budget as f64 * scale(window)) as u64;
        let reserve = card.max_output.min(scaled(RESERVE_MAX)).min(window / 2);
        let effective = (window - reserve).min(card.prompt_limit()).max(1);
        let standard = effective.saturating_sub(scaled(AUTO_COMPACT_BUFFER));
        let threshold = match settings.threshold {
            Threshold::Standard => standard,
            Threshold::Used(tokens) => tokens.min(standard),
            Threshold::Left(tokens) => effective.saturating_sub(tokens).min(standard),
            Threshold::Percent(percent) => {
                ((effective as f64 * percent / 100.0).floor() as u64).min(standard)
            }
        };
        Limits {
            window,
            reserve,
            effective,
            auto_compact: settings.auto_compact.then_some(threshold.max(1)),
            warning: effective.saturating_sub(scaled(WARNING_BUFFER)),
            blocking: effective.saturating_sub(scaled(BLOCKING_BUFFER)),
        }
    }

    /// How full a context of `tokens` is.
    pub fn fill(&self, tokens: u64) -> Fill {
        let goal = self.auto_compact.unwrap_or(self.effective).max(1);
        Fill {
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
    use pal_model::Cards;

    fn limits(window: u64, max_output: u64, settings: WindowSettings) -> Limits {
        let card = Card { window, max_output, ..Cards::shipped().find("claude-opus-4-5").card };
        Limits::new(&card, &settings)
    }

    #[test]
    fn the_worked_examples_of_the_specification() {
        assert_eq!(limits(200_000, 64_000, WindowSettings::STANDARD).auto_compact, Some(167_000));
        assert_eq!(limits(200_000, 8_000, WindowSettings::STANDARD).auto_compact, Some(179_000));
    }

    #[test]
    fn percent_never_passes_the_standard_threshold() {
        let at = |percent| {
            let settings =
                WindowSettings { threshold: Threshold::Percent(percent), ..WindowSettings::STANDARD };
            limits(200_000, 64_000, settings).auto_compact
        };
        assert_eq!((at(50.0), at(92.0), at(100.0)), (Some(90_000), Some(165_600), Some(167_000)));
    }

    #[test]
    fn states_follow_each_other() {
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
    fn a_user_may_lower_the_window_and_turn_it_off() {
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
