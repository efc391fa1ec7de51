//! Permission mode that the user selects at the terminal.

use pal_permissions::PermissionMode;

/// The selected mode, and whether bypass can be selected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ModeChoice {
    /// Selected mode; applies to sessions that are opened later, too.
    chosen: Option<PermissionMode>,
    /// Bypass can be selected only if the program started in it, so that no key press enables it by accident.
    may_bypass: bool,
}

impl ModeChoice {
    /// Notes the mode in which a session started.
    pub(crate) fn start_session(&mut self, mode: &str) {
        self.may_bypass |= mode.parse() == Ok(PermissionMode::Bypass);
    }

    /// Forgets the selection: the agent entered or left plan mode.
    pub(crate) fn changed(&mut self) {
        self.chosen = None;
    }

    /// Mode to apply to a newly opened session.
    pub(crate) fn chosen(&self) -> Option<PermissionMode> {
        self.chosen
    }

    /// Selects the mode after `now`.
    pub(crate) fn next(&mut self, now: &str) -> PermissionMode {
        let next = match now.parse().unwrap_or_default() {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            PermissionMode::Plan if self.may_bypass => PermissionMode::Bypass,
            PermissionMode::Plan | PermissionMode::Bypass => PermissionMode::Default,
        };
        self.chosen = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bypass_is_reached_only_if_the_program_started_in_it() {
        let round = |modes: &mut ModeChoice| {
            let mut seen = vec![PermissionMode::Default];
            for _ in 0..4 {
                seen.push(modes.next(seen[seen.len() - 1].name()));
            }
            seen
        };
        let mut modes = ModeChoice::default();
        modes.start_session("default");
        let three = [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
        ];
        assert_eq!(round(&mut modes), three);
        modes.start_session("bypass");
        let four = [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::Bypass,
            PermissionMode::Default,
        ];
        assert_eq!(round(&mut modes), four);
    }
}
