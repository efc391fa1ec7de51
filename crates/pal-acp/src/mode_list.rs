//! Permission modes with names and descriptions for clients.

use agent_client_protocol::v1::schema::{SessionMode, SessionModeState};
use pal_permissions::PermissionMode;

/// All modes, with the current one selected.
pub(crate) fn state(current: PermissionMode) -> SessionModeState {
    let mode = |mode: PermissionMode| {
        let (name, about) = words(mode);
        SessionMode::new(mode.name(), name).description(about.to_owned())
    };
    SessionModeState::new(current.name(), PermissionMode::ALL.into_iter().map(mode).collect())
}

fn words(mode: PermissionMode) -> (&'static str, &'static str) {
    match mode {
        PermissionMode::Default => ("Default", "Reads freely; asks before it changes or runs anything"),
        PermissionMode::AcceptEdits => {
            ("Accept edits", "Edits project files freely; asks before it runs anything")
        }
        PermissionMode::Plan => ("Plan", "Reads freely, changes nothing, and ends with a plan"),
        PermissionMode::Bypass => ("Bypass", "Never asks; commands run in the sandbox unless it is off"),
    }
}
