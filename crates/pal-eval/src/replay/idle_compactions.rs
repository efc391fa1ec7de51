//! Compactions in the pauses of a replay (§10.5): judged as the agent would judge, charged, and appended to the log.
//!
//! A pause is replayed without knowing when it ends. After the last answer the session counts as left open, so a compaction there
//! costs money and saves nothing.

use std::time::Duration;

use pal_context::cost_aware::idle_compaction_due;
use pal_engine::CompactionResult;
use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, Timestamp};
use pal_view::View;

use crate::replay::ReplayError;
use crate::replay::replay_host::ReplayHost;
use crate::replay::replay_options::ReplayPolicy;
use crate::replay::replay_state::ReplayRun;
use crate::replay::replay_step::ReplayStep;

impl ReplayRun<'_> {
    /// Compacts in the pause before the entry at a position, if the pause lasts long enough and that is worth it.
    pub(crate) fn compact_if_idle(
        &mut self,
        at: usize,
        until: Option<Timestamp>,
        watch: &mut dyn FnMut(&ReplayStep<'_>),
    ) -> Result<(), ReplayError> {
        if self.options.policy == ReplayPolicy::None || !self.engine.policy.idle_compaction {
            return Ok(());
        }
        let recorded = self.recorded;
        let (Some(since), Some(called)) = (self.progress.rests_since, recorded.last_call_before(at)) else {
            return Ok(());
        };
        let Some(due) = idle_compaction_due(self.session.view()).map(|due| due.max(since)) else {
            return Ok(());
        };
        if until.is_some_and(|until| until <= due) || has_open_calls(self.session.view()) {
            return Ok(());
        }
        // It is judged once in a pause.
        self.progress.rests_since = None;
        let verdict = self.engine.idle_compaction(self.session.view(), due);
        if !verdict.is_worth_it {
            return Ok(());
        }
        let newest = self.session.view().newest_id();
        let mut host = ReplayHost {
            provider: &mut self.provider,
            card: &self.card,
            recorded,
            at,
            called,
            compact_with: self.options.compact_with,
            engine: &self.engine,
            keeper: self.keeper.as_mut(),
            now: due,
            full: Vec::new(),
            exchanges: Vec::new(),
            notices: Vec::new(),
            waited: Duration::ZERO,
        };
        let done = self.session.compact_idle(verdict.reason, &self.engine, due, &mut host)?;
        let (exchanges, full) = (std::mem::take(&mut host.exchanges), std::mem::take(&mut host.full));
        for exchange in &exchanges {
            self.report.requests += 1;
            *self.report.models.entry(self.card.model.to_string()).or_default() += 1;
            watch(&ReplayStep {
                number: self.report.requests,
                call: self.progress.call,
                view: self.session.view(),
                started: due,
                since_previous: None,
                model: &self.card.model,
                body: &exchange.body,
                recorded: None,
                simulated: exchange.replied.exchange.as_ref().map(|exchange| &exchange.usage),
                cache: exchange.replied.exchange.as_ref().map(|exchange| exchange.cache),
                cache_break: None,
                is_answer: false,
                was_cut: self.progress.was_cut,
            });
            self.count_beside(&exchange.replied);
        }
        if matches!(done, CompactionResult::Done { .. }) {
            self.note_boundaries(at, newest, full.last());
        }
        Ok(())
    }
}

/// True if the newest response made calls that have no result yet: the agent works, it does not wait for a person.
fn has_open_calls(view: &View) -> bool {
    let is_request = |entry: &&LogEntry| matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation());
    let newest = view.branch().iter().rev().take_while(|entry| !is_request(entry));
    newest.into_iter().any(|entry| match &entry.body {
        EntryBody::Assistant(assistant) => {
            let is_open = |block: &ContentBlock| {
                block.kind() == BlockType::ToolUse
                    && block.tool_use_id().is_some_and(|id| view.result(id).is_none())
            };
            assistant.content.blocks().iter().any(is_open)
        }
        _ => false,
    })
}
