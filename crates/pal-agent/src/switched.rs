//! Kill switches (§8.8), as they bear on the layers: looked at before every request.

use pal_context::Policy;
use pal_engine::Engine;
use pal_settings::{Switch, Switches};

/// What may be switched off while a session runs.
pub(crate) struct Switched {
    switches: Switches,
    /// What the layers do when nothing is switched off.
    policy: Policy,
    auto_compact: Option<u64>,
}

/// Sets what the layers of an engine do to what the switches leave on.
pub fn apply_switches(switches: &Switches, engine: &mut Engine) {
    Switched::new(switches, engine).apply(engine);
}

impl Switched {
    pub(crate) fn new(switches: &Switches, engine: &Engine) -> Switched {
        let switches = switches.for_session();
        Switched { switches, policy: engine.policy.clone(), auto_compact: engine.limits.auto_compact }
    }

    pub(crate) fn is_off(&self, switch: Switch) -> bool {
        self.switches.is_off(switch)
    }

    /// What is wrong with the flags file, since it was asked last.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.switches.take_notices()
    }

    /// Sets what the layers do now.
    pub(crate) fn apply(&self, engine: &mut Engine) {
        let on = |switch| !self.switches.is_off(switch);
        engine.policy.spill = self.policy.spill && on(Switch::Spill);
        engine.policy.condense = self.policy.condense && on(Switch::Condense);
        engine.policy.snip = self.policy.snip && on(Switch::Snip);
        engine.policy.fold = self.policy.fold && on(Switch::Fold);
        let clears = on(Switch::Microcompact);
        engine.policy.cold_clear = self.policy.cold_clear && clears;
        engine.policy.warm_clear = self.policy.warm_clear && clears;
        engine.policy.pressure = self.policy.pressure && clears;
        engine.cache.marks_off = !on(Switch::CacheMarks);
        engine.cache.watch_off = !on(Switch::BreakDetector);
        engine.inputs.compaction_off = !on(Switch::Compact);
        let is_auto = on(Switch::AutoCompact) && on(Switch::Compact);
        engine.limits.auto_compact = self.auto_compact.filter(|_| is_auto);
    }
}
