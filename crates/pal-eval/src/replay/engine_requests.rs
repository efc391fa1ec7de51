//! Replays a recording under one of this project's policies: the engine decides what each request contains.

use std::time::{Duration, Instant};

use pal_context::ActionKind;
use pal_engine::EngineError;
use pal_model::{Boundary, DecisionKind, EntryBody, EntryId, LogEntry, RequestRecord};

use crate::replay::ReplayError;
use crate::replay::audit_totals::AuditTotals;
use crate::replay::recorded_session::RecordedCall;
use crate::replay::replay_host::ReplayHost;
use crate::replay::replay_options::ExtraLayer;
use crate::replay::replay_provider::ReplayResponse;
use crate::replay::replay_report::ReplayedCompaction;
use crate::replay::replay_state::ReplayRun;
use crate::replay::replay_step::ReplayStep;

impl ReplayRun<'_> {
    /// Sends the request that the engine prepares.
    pub(crate) fn send_by_engine(
        &mut self,
        at: usize,
        called: &RecordedCall,
        request: &RequestRecord,
        watch: &mut dyn FnMut(&ReplayStep<'_>),
    ) -> Result<(), ReplayError> {
        let newest = self.session.view().newest_id();
        self.warm(called);
        let mut with_notes = None;
        if let Some(keeper) = &mut self.keeper {
            let with_notes = with_notes.insert(called.clone());
            keeper.answer_request(&mut self.session, &mut with_notes.answer, called.started)?;
        }
        let called = with_notes.as_ref().unwrap_or(called);
        let mut host = ReplayHost {
            provider: &mut self.provider,
            card: &self.card,
            recorded: self.recorded,
            at,
            called,
            compact_with: self.options.compact_with,
            engine: &self.engine,
            keeper: self.keeper.as_mut(),
            now: called.started,
            full: Vec::new(),
            exchanges: Vec::new(),
            notices: Vec::new(),
            waited: Duration::ZERO,
        };
        let start = Instant::now();
        if let Some(ExtraLayer(layer)) = self.options.before {
            let act = self.session.plan(layer, &self.engine, called.started);
            if let ActionKind::Decide(proposals) = act.kind {
                let layer = self.report.layers.entry(layer.name().to_owned()).or_default();
                for proposal in proposals.iter().filter(|proposal| proposal.file.is_none()) {
                    self.session.decide(&proposal.decision, called.started)?;
                    layer.times += 1;
                    layer.tokens_freed += proposal.decision.cost.tokens_freed;
                }
                self.progress.was_cut = true;
            }
        }
        let mut config = self.engine.clone();
        let sent = self.session.send(&mut config, called.started, &mut host);
        self.clock.turn += start.elapsed().saturating_sub(host.waited);
        let (exchanges, full) = (std::mem::take(&mut host.exchanges), std::mem::take(&mut host.full));
        let number = self.progress.call;
        self.report.notices.extend(host.notices.iter().map(|notice| format!("request {number}: {notice}")));
        // A window that the provider stated holds from now on.
        self.engine.limits = config.limits;
        self.clock.finish_turn();
        self.note_boundaries(at, newest, full.last());
        self.note_cleared(newest);
        for (exchange, is_last) in last_flagged(&exchanges) {
            self.report.requests += 1;
            *self.report.models.entry(self.card.model.to_string()).or_default() += 1;
            let is_answer = is_last && sent.is_ok();
            let since_previous = is_answer.then(|| self.since_previous(called.started)).flatten();
            watch(&ReplayStep {
                number: self.report.requests,
                call: number,
                view: self.session.view(),
                started: called.started,
                since_previous,
                model: &self.card.model,
                body: &exchange.body,
                recorded: called.usage.as_ref().filter(|_| is_answer),
                simulated: exchange.replied.exchange.as_ref().map(|exchange| &exchange.usage),
                cache: exchange.replied.exchange.as_ref().map(|exchange| exchange.cache),
                cache_break: sent
                    .as_ref()
                    .ok()
                    .filter(|_| is_answer)
                    .and_then(|sent| sent.cache_break.as_ref()),
                is_answer,
                was_cut: self.progress.was_cut,
            });
            if is_answer {
                self.count(called, request, exchange.replied.clone());
            } else {
                self.count_beside(&exchange.replied);
            }
        }
        match sent {
            Ok(sent) => {
                self.note_break(called, sent.cache_break);
                for report in sent.prepared.reports.iter().filter(|report| report.acted) {
                    let layer = self.report.layers.entry(report.layer.to_string()).or_default();
                    layer.times += 1;
                    layer.tokens_freed += report.tokens_freed;
                }
                Ok(())
            }
            Err(error @ (EngineError::Full(_) | EngineError::TooLong { .. } | EngineError::Provider(_))) => {
                self.refuse(0, error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the boundaries that the engine made since an entry into the report.
    pub(crate) fn note_boundaries(&mut self, at: usize, since: Option<EntryId>, full: Option<&Boundary>) {
        let branch = self.session.view().branch();
        let from = branch.iter().rposition(|entry| Some(entry.id) == since).map_or(0, |at| at + 1);
        let boundaries: Vec<Boundary> = branch[from..]
            .iter()
            .filter_map(|entry| match &entry.body {
                EntryBody::Boundary(boundary) => Some((**boundary).clone()),
                _ => None,
            })
            .collect();
        for boundary in boundaries {
            self.progress.was_cut = true;
            if let Some(keeper) = &mut self.keeper {
                keeper.compacted(&boundary, full, self.session.view());
            }
            let said = self.recorded.entries().get(..at).unwrap_or_default();
            let audit = AuditTotals::of_view(self.session.view(), said, &boundary);
            self.report.compactions.push(ReplayedCompaction {
                trigger: boundary.trigger.to_string(),
                how: boundary.method.to_string(),
                before: boundary.tokens_before.unwrap_or_default(),
                after: None,
                messages: boundary.messages_summarised.unwrap_or_default(),
                audit,
            });
        }
    }

    /// Cache changes caused by provider-side clears since an entry.
    fn note_cleared(&mut self, since: Option<EntryId>) {
        let newest = self.session.view().branch().iter().rev().take_while(|entry| Some(entry.id) != since);
        let is_clear =
            |entry: &LogEntry| matches!(entry.decision(), Some(DecisionKind::ProviderClear { .. }));
        if newest.into_iter().any(is_clear) {
            self.progress.was_cut = true;
        }
    }

    /// Takes a request beside the conversation into the report.
    pub(crate) fn count_beside(&mut self, replied: &ReplayResponse) {
        match &replied.exchange {
            Some(exchange) => self.report.measured.add(&exchange.usage, exchange.cost),
            None => self.refuse(replied.status, replied.refusal.clone().unwrap_or_default()),
        }
    }
}

/// Items with whether each is the last.
fn last_flagged<T>(items: &[T]) -> impl Iterator<Item = (&T, bool)> {
    items.iter().enumerate().map(move |(at, item)| (item, at + 1 == items.len()))
}

#[cfg(test)]
mod tests;
