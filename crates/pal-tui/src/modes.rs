//! How much the session does without asking, as the person at the terminal chooses it.

use pal_permissions::Mode;

/// What was chosen, and what may be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Modes {
    /// What was chosen here; it holds for sessions that are opened later, too.
    chosen: Option<Mode>,
    /// Whether the program was begun in the mode that asks nothing: nobody comes to it by a slip of the hand.
    may_bypass: bool,
}

impl Modes {
    /// A session began in a mode.
    pub(crate) fn began(&mut self, mode: &str) {
        self.may_bypass |= mode.parse() == Ok(Mode::Bypass);
    }

    /// The agent itself began or ended planning.
    pub(crate) fn changed(&mut self) {
        self.chosen = None;
    }

    /// What was chosen here and holds for a session that is opened.
    pub(crate) fn chosen(&self) -> Option<Mode> {
        self.chosen
    }

    /// The mode behind this one.
    pub(crate) fn next(&mut self, now: &str) -> Mode {
        let next = match now.parse().unwrap_or_default() {
            Mode::Default => Mode::AcceptEdits,
            Mode::AcceptEdits => Mode::Plan,
            Mode::Plan if self.may_bypass => Mode::Bypass,
            Mode::Plan | Mode::Bypass => Mode::Default,
        };
        self.chosen = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_that_asks_nothing_is_reached_only_by_who_began_in_it() {
        let round = |modes: &mut Modes| {
            let mut seen = vec![Mode::Default];
            for _ in 0..4 {
                seen.push(modes.next(seen[seen.len() - 1].name()));
            }
            seen
        };
        let mut modes = Modes::default();
        modes.began("default");
        let three = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::Default, Mode::AcceptEdits];
        assert_eq!(round(&mut modes), three);
        modes.began("bypass");
        let four = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::Bypass, Mode::Default];
        assert_eq!(round(&mut modes), four);
    }
}
