//! Capabilities of root: a sandboxed command keeps only those over files.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Capabilities that builds and tests use as root in containers: files of other users, and switching users.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Drops all other capabilities for good: the thread can gain no privileges any more.
pub(crate) fn drop_capabilities() -> Result<(), String> {
    let now = capabilities(None).map_err(|error| format!("capabilities: {error}"))?;
    let less = CapabilitySets {
        effective: now.effective & KEPT_CAPABILITIES,
        permitted: now.permitted & KEPT_CAPABILITIES,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, less).map_err(|error| format!("capabilities: {error}"))
}
