//! Powers of root: a fenced command keeps those over its own files alone.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What builds and tests do as root in containers: files of other users in the workspace, and becoming such a user.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Gives up all others. No program that is started later gets them back: the thread gains no privileges any more.
pub(crate) fn give_up() -> Result<(), String> {
    let now = capabilities(None).map_err(|error| format!("capabilities: {error}"))?;
    let less = CapabilitySets {
        effective: now.effective & KEPT,
        permitted: now.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, less).map_err(|error| format!("capabilities: {error}"))
}
