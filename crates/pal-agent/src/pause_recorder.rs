//! Pauses of a person over all sessions: counted after each prompt, and expected by the cost-aware policy (§10.5).

use std::path::Path;

use pal_background::{LearnedPauses, PauseTable};
use pal_context::cost_aware::CostAwareSettings;
use pal_engine::SessionConfig;
use pal_model::{ActivityStats, Timestamp};
use pal_settings::KillSwitch;

use crate::options::AgentOptions;
use crate::session_switches::SessionSwitches;

/// Counts the pauses of a session, and blends those of earlier ones into what the session expects.
pub(crate) struct PauseRecorder {
    pauses: LearnedPauses,
    /// Slug of the project.
    project: String,
    /// Pauses counted before the session was opened; its own are in its log.
    earlier: PauseTable,
    /// Settings of the policy without earlier pauses; none for other policies.
    unblended: Option<CostAwareSettings>,
    local_hour: fn(Timestamp) -> u8,
}

impl PauseRecorder {
    /// Opens the counts for a session of a person; none for other sessions.
    pub(crate) fn open(
        options: &AgentOptions,
        project: &Path,
        config: &SessionConfig,
    ) -> Option<PauseRecorder> {
        options.is_paused_by_person().then(|| {
            let pauses = LearnedPauses::in_home(&options.home);
            let earlier = pauses.read();
            PauseRecorder {
                pauses,
                project: pal_store::slug(project),
                earlier,
                unblended: config.policy.cost_aware,
                local_hour: options.background.pauses.local_hour,
            }
        })
    }

    /// Lets future decisions expect the earlier pauses of this time of day. What is decided stays: it is in the log.
    pub(crate) fn expect(&self, config: &mut SessionConfig, switches: &SessionSwitches, now: Timestamp) {
        let Some(unblended) = self.unblended else { return };
        let settings = match switches.is_off(KillSwitch::PauseHistory) {
            true => unblended,
            false => {
                unblended.with_pause_history(&self.earlier.history(&self.project, (self.local_hour)(now)))
            }
        };
        config.policy.cost_aware = Some(settings);
    }

    /// Counts the pauses by which the activity of a session has grown since `before`. A failure is logged only: the
    /// session works without it.
    pub(crate) fn record(
        &self,
        before: &ActivityStats,
        after: &ActivityStats,
        switches: &SessionSwitches,
        now: Timestamp,
    ) {
        let new: [u64; 4] =
            std::array::from_fn(|class| after.turn_pauses[class].saturating_sub(before.turn_pauses[class]));
        if new == [0; 4] || switches.is_off(KillSwitch::PauseHistory) {
            return;
        }
        let hour = (self.local_hour)(before.last_request.unwrap_or(now));
        if let Err(error) = self.pauses.record(&self.project, hour, new) {
            tracing::warn!(%error, "a pause is not counted");
        }
    }
}
