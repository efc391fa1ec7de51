//! Permission modes, as clients know them.

use agent_client_protocol::v1::schema::{SessionMode, SessionModeState};
use pal_permissions::Mode;

/// All modes and the one at hand.
pub(crate) fn state(current: Mode) -> SessionModeState {
    let mode = |mode: Mode| {
        let (name, about) = words(mode);
        SessionMode::new(mode.name(), name).description(about.to_owned())
    };
    SessionModeState::new(current.name(), Mode::ALL.into_iter().map(mode).collect())
}

fn words(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Default => ("Default", "Looks around freely; asks before it changes or runs anything"),
        Mode::AcceptEdits => {
            ("Accept edits", "Changes files of the project freely; asks before it runs anything")
        }
        Mode::Plan => ("Plan", "Looks around and changes nothing; ends with a plan"),
        Mode::Bypass => ("Bypass", "Asks nothing; commands run in the sandbox unless that is switched off"),
    }
}
