//! Kill switches (§8.8), applied to the layers before every request.

use pal_context::ContextPolicy;
use pal_engine::SessionConfig;
use pal_settings::{KillSwitch, KillSwitches};
use pal_view::WindowLimits;

/// Switches of a session.
pub(crate) struct SessionSwitches {
    switches: KillSwitches,
    /// Policy without switches.
    policy: ContextPolicy,
    /// Limits without switches, before the session learned of a smaller window.
    limits: WindowLimits,
}

/// Applies switches to a session's configuration.
pub fn apply_switches(switches: &KillSwitches, engine: &mut SessionConfig) {
    SessionSwitches::new(switches, engine).apply(engine);
}

impl SessionSwitches {
    pub(crate) fn new(switches: &KillSwitches, engine: &SessionConfig) -> SessionSwitches {
        let switches = switches.for_session();
        SessionSwitches { switches, policy: engine.policy.clone(), limits: engine.limits }
    }

    pub(crate) fn is_off(&self, switch: KillSwitch) -> bool {
        self.switches.is_off(switch)
    }

    /// Takes problems of the flags file.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.switches.take_notices()
    }

    /// Takes over the limits of another model.
    pub(crate) fn set_limits(&mut self, limits: &WindowLimits) {
        self.limits = *limits;
    }

    /// Applies the switches as they are now.
    pub(crate) fn apply(&self, engine: &mut SessionConfig) {
        let on = |switch| !self.switches.is_off(switch);
        engine.policy.spill = self.policy.spill && on(KillSwitch::Spill);
        engine.policy.condense = self.policy.condense && on(KillSwitch::Condense);
        engine.policy.snip = self.policy.snip && on(KillSwitch::Snip);
        engine.policy.fold = self.policy.fold && on(KillSwitch::Fold);
        let clears = on(KillSwitch::Microcompact);
        engine.policy.cold_clear = self.policy.cold_clear && clears;
        engine.policy.warm_clear = self.policy.warm_clear && clears;
        engine.policy.pressure = self.policy.pressure && clears;
        let restores = on(KillSwitch::Restoration);
        engine.policy.restored_line_tokens = if restores { self.policy.restored_line_tokens } else { 0 };
        engine.cache.breakpoints_off = !on(KillSwitch::CacheBreakpoints);
        engine.cache.watch_off = !on(KillSwitch::BreakDetector);
        engine.compaction.compaction_off = !on(KillSwitch::Compact);
        let is_auto = on(KillSwitch::AutoCompact) && on(KillSwitch::Compact);
        let limits = self.limits.lowered_to(engine.limits.window);
        engine.limits.auto_compact = limits.auto_compact.filter(|_| is_auto);
    }
}
