//! Replays a recording: copies its messages into a new log and sends its requests again.

use pal_context::cache::SentRequest;
use pal_engine::AnsweredRequest;
use pal_model::{
    Boundary, CacheBreak, Content, Decision, DecisionKind, EntryBody, EntryDraft, EntryId, IdSource,
    LogEntry, PromptPrefix, RequestRecord, ResponseId, ResponseRecord, Usage,
};
use pal_view::RenderOptions;
use smol_str::SmolStr;

use crate::replay::ReplayError;
use crate::replay::audit_totals::AuditTotals;
use crate::replay::breakpoint_positions::mark_as_client;
use crate::replay::lost_content::find_lost_content;
use crate::replay::notice_groups::group_notices;
use crate::replay::recorded_session::{RecordedCall, RecordedSession};
use crate::replay::replay_dir::ReplayDir;
use crate::replay::replay_host::MARKED_MESSAGES;
use crate::replay::replay_models::lens;
use crate::replay::replay_options::{ReplayOptions, ReplayPolicy};
use crate::replay::replay_provider::{CacheReading, ReplayResponse};
use crate::replay::replay_report::{EngineTimes, ReplayReport, ReplayedCompaction};
use crate::replay::replay_state::ReplayRun;
use crate::replay::replay_step::ReplayStep;
use crate::replay::session_setup::{TOKENS_MAX, session_config};
use crate::replay::unseen_prefix;

/// Replays a recording.
pub fn replay(recorded: &RecordedSession, options: &ReplayOptions) -> Result<ReplayReport, ReplayError> {
    replay_watched(recorded, options, &mut |_| {})
}

/// Replays a recording and shows every request.
pub fn replay_watched(
    recorded: &RecordedSession,
    options: &ReplayOptions,
    watch: &mut dyn FnMut(&ReplayStep<'_>),
) -> Result<ReplayReport, ReplayError> {
    let place = ReplayDir::new(options.out.as_deref())?;
    let mut run = ReplayRun::new(recorded, options, &place.log())?;
    for (at, entry) in recorded.entries().iter().enumerate() {
        let until = recorded.call(at).map_or(entry.at, |called| called.started);
        run.keep_warm(Some(until))?;
        run.compact_if_idle(at, Some(until), watch)?;
        match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => {
                run = run.restarted()?;
                run.request(at, entry, request, watch)?;
            }
            EntryBody::Response(got) if got.source.is_conversation() => run.response(entry, got)?,
            EntryBody::Prefix(prefix) => run.prefix(entry, prefix)?,
            // Under a policy of our own the recording's decisions are not ours.
            EntryBody::Boundary(_) | EntryBody::Decision(_) if options.policy != ReplayPolicy::None => {}
            EntryBody::Boundary(boundary) => run.boundary(at, entry, boundary)?,
            EntryBody::Decision(decision) => run.decision(entry, decision)?,
            // Requests of other threads are none of the conversation's; what was kept from elsewhere never leaves.
            EntryBody::Request(_)
            | EntryBody::Response(_)
            | EntryBody::Internal
            | EntryBody::Repair(_)
            | EntryBody::Unknown => {}
            _ => run.copy(entry)?,
        }
    }
    run.keep_warm(None)?;
    run.compact_if_idle(recorded.entries().len(), None, watch)?;
    let mut report = run.finish();
    report.lost = find_lost_content(recorded, &place.log())?;
    Ok(report)
}

impl<'a> ReplayRun<'a> {
    /// Closes and opens the session before the next request, if its time has come.
    fn restarted(self) -> Result<ReplayRun<'a>, ReplayError> {
        if !self.options.restart.comes_before(self.report.requests + 1) {
            return Ok(self);
        }
        Ok(ReplayRun { session: self.session.reopen(IdSource::seeded(0))?, ..self })
    }

    fn copy(&mut self, entry: &LogEntry) -> Result<(), ReplayError> {
        self.timed(|run| run.session.append(EntryDraft::copy_of(entry), entry.at))?;
        Ok(())
    }

    fn prefix(&mut self, entry: &LogEntry, prefix: &PromptPrefix) -> Result<(), ReplayError> {
        // The log of a replay has been through this.
        if prefix.unseen_tokens == 0 || prefix.notes.fills_unseen {
            return self.copy(entry);
        }
        let fitted =
            unseen_prefix::fitted(prefix, self.recorded, self.session.view().lens(), &mut self.provider);
        self.append(EntryDraft::prefix(&fitted), entry.id, entry.at)?;
        self.shared = Some(PromptPrefix { context: Content::default(), ..fitted });
        Ok(())
    }

    fn decision(&mut self, entry: &LogEntry, decision: &Decision) -> Result<(), ReplayError> {
        self.copy(entry)?;
        if shortens(&decision.kind) {
            let layer = self.report.layers.entry(entry.kind().0.to_string()).or_default();
            layer.times += 1;
            layer.tokens_freed += decision.cost.tokens_freed;
            self.progress.was_cut = true;
        }
        Ok(())
    }

    fn boundary(&mut self, at: usize, entry: &LogEntry, boundary: &Boundary) -> Result<(), ReplayError> {
        self.timed(|run| run.session.copy_boundary(entry.id, boundary, entry.at))?;
        if !boundary.has_summary() {
            return Ok(());
        }
        let kept = boundary.preserved.as_ref().map(|kept| kept.head);
        let stretch = self.recorded.entries().get(self.progress.unsummarized..at).unwrap_or_default();
        let end = kept.and_then(|head| stretch.iter().position(|entry| entry.id == head));
        let stretch = stretch.get(..end.unwrap_or(stretch.len())).unwrap_or_default();
        self.report.compactions.push(ReplayedCompaction {
            trigger: boundary.trigger.to_string(),
            how: boundary.method.to_string(),
            before: self.progress.context_tokens,
            after: None,
            messages: boundary.messages_summarised.unwrap_or_else(|| messages(stretch)),
            audit: AuditTotals::of(&boundary.summary, stretch),
        });
        // The summary is a source of the next one.
        self.progress.unsummarized = at;
        self.progress.was_cut = true;
        Ok(())
    }

    /// Sends the request recorded at a position.
    fn request(
        &mut self,
        at: usize,
        entry: &LogEntry,
        request: &RequestRecord,
        watch: &mut dyn FnMut(&ReplayStep<'_>),
    ) -> Result<(), ReplayError> {
        let recorded = self.recorded;
        let Some(called) = recorded.call(at) else { return Ok(()) };
        self.progress.call += 1;
        self.progress.rests_since = None;
        if self.options.model.is_none() && !request.model.is_empty() && request.model != self.card.name {
            self.ask_another(&request.model);
        }
        if self.options.policy != ReplayPolicy::None {
            return self.send_by_engine(at, called, request, watch);
        }
        let max_tokens = TOKENS_MAX.min(self.card.max_output);
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: true };
        let betas = self.engine.cache.betas.clone();
        let (rendered, call) = self.timed(|run| {
            let rendered = run.session.view().render(options);
            let rendered = mark_as_client(rendered, &run.card, MARKED_MESSAGES, called.lifetime);
            let rendered = run.provider.asking_why(rendered, &run.card);
            let call = run.provider.call(&rendered, &betas, &run.card);
            (rendered, call)
        });
        let sent = RequestRecord {
            fingerprint: Some(rendered.fingerprint()),
            cache_ttl: Some(SmolStr::new_static(called.lifetime.name())),
            ..RequestRecord::new(
                request.source.clone(),
                self.session.view().newest_id(),
                self.card.name.clone(),
            )
        };
        self.append(EntryDraft::request(&sent), entry.id, called.started)?;
        self.warm(called);
        let body = call.body.to_joined_string();
        let (replied, read) =
            self.provider.ask_and_read(called.started, &call, &body, Some(called.answer.clone()));
        replied.exchange.iter().for_each(|exchange| self.provider.answered(exchange));
        let asked = SentRequest { request: rendered, betas };
        let found = self.watched(entry.id, called, request, asked, &replied, &read);
        self.clock.finish_turn();
        self.report.requests += 1;
        *self.report.models.entry(self.card.model.to_string()).or_default() += 1;
        let since_previous = self.since_previous(called.started);
        watch(&ReplayStep {
            number: self.report.requests,
            call: self.progress.call,
            view: self.session.view(),
            started: called.started,
            since_previous,
            model: &self.card.model,
            body: &body,
            recorded: called.usage.as_ref(),
            simulated: replied.exchange.as_ref().map(|exchange| &exchange.usage),
            cache: replied.exchange.as_ref().map(|exchange| exchange.cache),
            cache_break: found.as_ref(),
            is_answer: replied.exchange.is_some(),
            was_cut: self.progress.was_cut,
        });
        self.note_break(called, found);
        self.count(called, request, replied);
        Ok(())
    }

    /// Compares a request that was answered with the one before it.
    fn watched(
        &mut self,
        entry: EntryId,
        called: &RecordedCall,
        request: &RequestRecord,
        asked: SentRequest,
        replied: &ReplayResponse,
        read: &CacheReading,
    ) -> Option<CacheBreak> {
        let exchange = replied.exchange.as_ref()?;
        self.session.watch(AnsweredRequest {
            entry,
            source: &request.source,
            asked,
            ttl: called.lifetime,
            started: called.started,
            response: &ResponseId::from(exchange.response.as_str()),
            usage: &exchange.usage,
            cleared_tokens: read.cleared_tokens,
            provider: read.cache_miss.as_ref(),
        })
    }

    /// A recorded answer may be longer than the window at hand leaves room for. It stands in the log whole, so its usage
    /// must say so: sizes rest on it.
    fn make_whole(&self, usage: &mut Usage, got: &ResponseRecord) {
        let estimator = self.session.view().estimator();
        let blocks = self.recorded.blocks_of(&got.response);
        let tokens: f64 = blocks.map(|block| estimator.json(block.raw())).sum();
        usage.output_tokens = usage.output_tokens.max(estimator.total(tokens));
        usage.iterations = None;
    }

    /// End of a recorded response, with the usage of this replay.
    fn response(&mut self, entry: &LogEntry, got: &ResponseRecord) -> Result<(), ReplayError> {
        let Some(mut exchange) = self.pending.answered.remove(&got.response) else { return Ok(()) };
        if matches!(exchange.stop_reason.as_str(), "max_tokens" | "model_context_window_exceeded") {
            self.make_whole(&mut exchange.usage, got);
        }
        let response = ResponseRecord {
            response: got.response.clone(),
            source: got.source.clone(),
            model: exchange.model.as_str().into(),
            usage: exchange.usage,
            stop_reason: Some(exchange.stop_reason.as_str().into()),
            cost: exchange.cost,
            cache_break: self.pending.fallen.remove(&got.response),
        };
        let calls = self.keeper.as_ref().and_then(|keeper| keeper.calls(&got.response, &response.model));
        if let Some(calls) = calls {
            self.session.append(calls, entry.at)?;
        }
        self.append(EntryDraft::response(&response), entry.id, entry.at)?;
        self.progress.rests_since = Some(entry.at);
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        if let Some(results) = keeper.results() {
            self.session.append(results, entry.at)?;
        }
        let fork = keeper.answered(&self.session, &self.engine, &self.card, &mut self.provider, entry.at);
        if let Some(fork) = fork {
            self.report.requests += 1;
            self.report.measured.absorb(&fork);
        }
        Ok(())
    }

    /// From here on the recording asks another model.
    fn ask_another(&mut self, model: &str) {
        self.card = self.cards.find(model).card;
        let lens = lens(&self.card, self.options.policy);
        self.engine = session_config(self.options, &self.card, self.recorded.lifetime());
        self.timed(|run| run.session.switch_model(lens));
    }

    fn finish(self) -> ReplayReport {
        let mut report = self.report;
        report.notes = self.keeper.map(|keeper| keeper.finish(self.session.view().estimator()));
        report.window = self.card.window;
        report.engine_us = EngineTimes::of(self.clock.turns_us);
        report.notices = group_notices(report.notices);
        report
    }
}

/// True if a decision makes the context smaller, or larger again.
fn shortens(kind: &DecisionKind) -> bool {
    !matches!(
        kind,
        DecisionKind::Keep { .. }
            | DecisionKind::Pin { .. }
            | DecisionKind::Latch { .. }
            | DecisionKind::Announce { .. }
            | DecisionKind::Model { .. }
            | DecisionKind::Title { .. }
            | DecisionKind::Factors { .. }
    )
}

/// Number of messages among entries.
fn messages(entries: &[LogEntry]) -> u64 {
    let said = |entry: &&LogEntry| {
        matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_) | EntryBody::Attachment(_))
    };
    entries.iter().filter(said).count() as u64
}
