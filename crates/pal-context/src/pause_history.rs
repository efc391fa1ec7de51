//! Pauses of earlier sessions, and the expectation of pauses that they give together with the shipped figures.

use pal_model::text::count_noun;

/// Weight of what is expected before a group of pauses is seen, in pauses: the number that moves the expectation halfway. It is high,
/// because the pauses of a few days say little about a session.
const GROUP_WEIGHT: f64 = 20.0;

/// Maximum share of earlier pauses in an expectation; the rest is the shipped figures', so that no pause is impossible.
const HISTORY_SHARE_MAX: f64 = 0.9;

/// Numbers of pauses before a person's messages in earlier sessions, by class: up to 5 minutes, up to 15, up to an hour, longer. Each
/// pause counts in one group. Old pauses count for less than one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PauseHistory {
    /// Pauses in other projects.
    pub elsewhere: [f64; 4],
    /// Pauses in this project that began at another time of day.
    pub project: [f64; 4],
    /// Pauses in this project that began at about this time of day.
    pub this_hour: [f64; 4],
}

impl PauseHistory {
    /// History without pauses.
    pub const EMPTY: PauseHistory =
        PauseHistory { elsewhere: [0.0; 4], project: [0.0; 4], this_hour: [0.0; 4] };

    /// Expected shares of the pauses to come, where `shipped` are the shares without history. Each group moves the expectation of the
    /// wider ones towards its own shares, by its number of pauses over that number plus a constant weight.
    pub fn expected_shares(&self, shipped: [f64; 4]) -> [f64; 4] {
        let observed =
            [self.elsewhere, self.project, self.this_hour].into_iter().fold(shipped, moved_towards);
        std::array::from_fn(|class| shipped[class] + HISTORY_SHARE_MAX * (observed[class] - shipped[class]))
    }

    /// Origin of the expectation for the user, such as `23 pauses in this project`; none without history.
    pub fn origin(&self) -> Option<String> {
        let whole = |counts: [f64; 4]| total(counts).round() as usize;
        let others = whole(self.elsewhere);
        match whole(std::array::from_fn(|class| self.project[class] + self.this_hour[class])) {
            0 if others == 0 => None,
            0 => Some(format!("{} in other projects", count_noun(others, "pause"))),
            here if others == 0 => Some(format!("{} in this project", count_noun(here, "pause"))),
            here => Some(format!("{} in this project, {others} in others", count_noun(here, "pause"))),
        }
    }
}

/// Moves expected shares towards the shares of a group.
fn moved_towards(expected: [f64; 4], counts: [f64; 4]) -> [f64; 4] {
    let pauses = total(counts);
    if pauses <= 0.0 {
        return expected;
    }
    let step = pauses / (pauses + GROUP_WEIGHT);
    std::array::from_fn(|class| expected[class] + step * (counts[class] / pauses - expected[class]))
}

fn total(counts: [f64; 4]) -> f64 {
    counts.iter().sum()
}
