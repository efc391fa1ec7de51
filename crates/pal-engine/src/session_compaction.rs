//! Executes compactions, and undoes them.

use pal_context::{
    Compaction, CompactionRange, CompactionRequest, CompactionStep, CompactionTrigger, RequestParams,
    RestoreSources, SummaryMethod, SummaryQuestion, SummaryReply, cache,
};
use pal_model::{
    Boundary, Decision, DecisionKind, EntryBody, EntryDraft, EntryId, LogEntry, PromptPrefix, RequestSource,
    ResponseRecord, Timestamp,
};
use pal_view::View;

use crate::cache_watch::AnsweredRequest;
use crate::{CompactionFollowUp, EngineError, Session, SessionConfig, SessionHost};

/// Result of a compaction.
#[derive(Clone, Debug)]
pub enum CompactionResult {
    /// The conversation was compacted.
    Done {
        /// The boundary as appended or, for a preview, as it would be.
        boundary: Box<Boundary>,
        /// Summary methods that failed before.
        attempts: Vec<String>,
    },
    /// Nothing changed; the reason.
    Refused(String),
    /// Nothing changed: the named hook blocks compaction.
    Blocked(String),
}

/// Logs sizes and methods only: reasons may quote the conversation.
fn log(compacted: &CompactionResult) {
    match compacted {
        CompactionResult::Done { boundary, attempts } => tracing::info!(
            how = boundary.method.as_str(),
            tokens_before = boundary.tokens_before,
            tokens_after = boundary.tokens_after,
            attempts_failed = attempts.len(),
            "compacted"
        ),
        CompactionResult::Refused(_) | CompactionResult::Blocked(_) => tracing::info!("not compacted"),
    }
}

impl Session {
    /// Compacts on request of the model, with its optional note on the summary.
    pub fn compact_for_model(
        &mut self,
        instructions: Option<String>,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        let order = CompactionRequest { instructions, ..config.compaction_request(CompactionTrigger::Model) };
        self.compact(order, config, now, host)
    }

    /// Compacts a range on request of the user, with optional instructions for the summary.
    pub fn compact_manually(
        &mut self,
        range: CompactionRange,
        instructions: Option<String>,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        let order =
            CompactionRequest { range, instructions, ..config.compaction_request(CompactionTrigger::Manual) };
        self.compact(order, config, now, host)
    }

    /// Compacts in a pause, for this reason. Only from notes or by a summary that reads the warm cache: where
    /// neither is possible, the conversation stays as it is.
    pub fn compact_idle(
        &mut self,
        reason: String,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        let cheap = [SummaryMethod::Notes, SummaryMethod::Fork, SummaryMethod::Provider];
        let allowed = |method: &SummaryMethod| {
            config.summary_methods.as_ref().is_none_or(|methods| methods.contains(method))
        };
        let order = CompactionRequest {
            reason: Some(reason),
            methods: Some(cheap.into_iter().filter(allowed).collect()),
            ..config.compaction_request(CompactionTrigger::Idle)
        };
        self.compact(order, config, now, host)
    }

    /// Previews a manual compaction of a range without a model; writes nothing.
    pub fn preview(
        &mut self,
        range: CompactionRange,
        sources: RestoreSources,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        let order = CompactionRequest {
            range,
            sources,
            methods: Some(vec![SummaryMethod::Extractive]),
            ..config.compaction_request(CompactionTrigger::Manual)
        };
        self.compaction(order, config, now, host)
    }

    /// Compacts the conversation.
    pub fn compact(
        &mut self,
        order: CompactionRequest,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        let before = host.before_compaction(&order, &self.view);
        if let Some(hook) = before.blocked_by {
            host.notice(&format!("not compacted: the hook `{hook}` forbids it"));
            return Ok(CompactionResult::Blocked(hook));
        }
        let order = CompactionRequest {
            hook_instructions: before.instructions.or(order.hook_instructions),
            sources: before.sources,
            notes: before.notes.or(order.notes),
            ..order
        };
        let span = tracing::info_span!("compact", trigger = order.trigger.name());
        let within = span.entered();
        // By hand and in a pause, taking it back brings every byte back, so nothing is spilled for it.
        let is_undone_whole = matches!(order.trigger, CompactionTrigger::Manual | CompactionTrigger::Idle);
        if !config.compaction.compaction_off && !is_undone_whole {
            self.shorten_waiting(config, now, host)?;
        }
        let compacted = self.compaction(order, config, now, host)?;
        log(&compacted);
        drop(within);
        if let CompactionResult::Done { boundary, attempts } = &compacted {
            let now = host.now(now);
            self.append_boundary(boundary, now)?;
            let after = host.after_compaction(boundary, &self.view);
            self.append_after(&after, now)?;
            for attempt in attempts {
                host.notice(&format!("compaction: {attempt}"));
            }
        }
        Ok(compacted)
    }

    fn append_after(&mut self, after: &CompactionFollowUp, now: Timestamp) -> Result<(), EngineError> {
        if let Some(prefix) = &after.prefix {
            self.append(EntryDraft::prefix(prefix), now)?;
        }
        for (what, text) in &after.notes {
            self.attach(what, text, now)?;
        }
        if let Some(announced) = &after.announcement {
            self.announce(announced, now)?;
        }
        Ok(())
    }

    /// Appends a boundary that was computed, previewed or edited.
    pub fn append_boundary(&mut self, boundary: &Boundary, now: Timestamp) -> Result<EntryId, EngineError> {
        let draft = self.placed(boundary);
        let entry = self.append(draft, now)?;
        self.sync()?;
        Ok(entry.id)
    }

    /// Appends a boundary of another log, with the offsets and totals of this one.
    pub fn copy_boundary(
        &mut self,
        id: EntryId,
        boundary: &Boundary,
        at: Timestamp,
    ) -> Result<(), EngineError> {
        let boundary = Boundary { snapshot: self.view.state().clone(), ..boundary.clone() };
        let draft = self.placed(&boundary).with_id(id);
        self.append(draft, at).map(|_| ())
    }

    /// Fills in the offsets of the entries in this log.
    fn placed(&self, boundary: &Boundary) -> EntryDraft {
        let mut boundary = boundary.clone();
        if let Some(preserved) = &mut boundary.preserved {
            preserved.offset = self.log.offset(preserved.head);
        }
        if let Some(prefix) = &mut boundary.snapshot.prefix {
            prefix.offset = self.log.offset(prefix.id).or(prefix.offset);
        }
        EntryDraft::boundary(&boundary)
    }

    /// Computes a compaction without appending its boundary. Usage of summary requests is recorded in any case.
    pub fn compaction(
        &mut self,
        order: CompactionRequest,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<CompactionResult, EngineError> {
        if config.compaction.compaction_off {
            let message = String::from("compaction is switched off");
            host.notice(&format!("not compacted: {message}"));
            return Ok(CompactionResult::Refused(message));
        }
        // Summary requests go into the log; the conversation they summarize is unchanged.
        let view = self.view.clone();
        let params = self.fork_params(config, now);
        let order = CompactionRequest { params: params.clone(), ..order };
        let lens = config.compaction.reactive_lens.as_ref();
        let lens = lens.filter(|_| order.trigger == CompactionTrigger::Reactive).cloned();
        let mut compaction = Compaction::new(&view, order, &config.limits, &config.policy, &config.paths)
            .with_plain_lens(lens)
            .with_summary_lens(config.compaction.lens.clone());
        loop {
            match compaction.next(&view) {
                CompactionStep::Ask(question) => {
                    let reply = self.ask(&question, &params, config, now, host)?;
                    // After an interrupt, no further summary method is tried.
                    if host.is_cancelled() {
                        return Ok(CompactionResult::Refused(String::from("interrupted")));
                    }
                    compaction.receive_reply(&view, reply);
                }
                CompactionStep::ReadFiles(wanted) => {
                    let read = wanted.iter().map(|wanted| host.read_file(wanted)).collect();
                    compaction.receive_files(read);
                }
                CompactionStep::Done(mut done) => {
                    // The summary requests count for the session, too.
                    done.boundary.snapshot.totals = self.view.state().totals;
                    return Ok(CompactionResult::Done {
                        boundary: Box::new(done.boundary),
                        attempts: done.attempts,
                    });
                }
                CompactionStep::Failed { message, counts_as_failure } => {
                    if counts_as_failure {
                        self.append_failure("compaction", &message, now)?;
                    }
                    host.notice(&format!("not compacted: {message}"));
                    return Ok(CompactionResult::Refused(message));
                }
            }
        }
    }

    /// Asks a model for a summary and records its usage.
    pub(crate) fn ask(
        &mut self,
        question: &SummaryQuestion,
        params: &RequestParams,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<SummaryReply, EngineError> {
        let source = RequestSource::from_name("compact");
        // Latches are set only by requests that are sent.
        self.latch(config, now)?;
        // The beta headers are those of the session's model.
        let betas = if question.card.is_none() { self.betas(config) } else { Vec::new() };
        let entry = self.append_request(&source, &question.request, params, &betas, Vec::new(), now)?;
        let asked = host.ask(question, &betas, now);
        if let Some((response, usage, cost)) = asked.answered {
            // Only requests that repeat the conversation can be compared with it.
            let cache_break = if matches!(question.method, SummaryMethod::Fork | SummaryMethod::Provider) {
                let asked = cache::SentRequest { request: question.request.clone(), betas };
                self.watch(AnsweredRequest {
                    entry,
                    source: &source,
                    asked,
                    ttl: params.ttl,
                    started: now,
                    response: &response,
                    usage: &usage,
                    cleared_tokens: 0,
                    provider: None,
                })
            } else {
                None
            };
            let card = question.card.as_deref().unwrap_or(&self.view.lens().card);
            let model = card.model.clone();
            let got = ResponseRecord { response, source, model, usage, stop_reason: None, cost, cache_break };
            self.append(EntryDraft::response(&got), now)?;
        }
        if let SummaryReply::Failed(message) = &asked.reply {
            host.notice(&format!("no summary by {}: {message}", question.method.name()));
        }
        Ok(asked.reply)
    }

    /// Undoes the last compaction if what it hid fits the window together with what came after it (§4.18).
    pub fn uncompact(
        &mut self,
        config: &SessionConfig,
        whole: &View,
        now: Timestamp,
    ) -> Result<EntryId, EngineError> {
        let Some(boundary) = self.view.boundary() else {
            return Err(EngineError::NotPossible(String::from(
                "this session has no compaction in force: there is nothing to take back",
            )));
        };
        let target = boundary.id;
        let was_said = |entry: &LogEntry| matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_));
        if !whole.branch().iter().take_while(|entry| entry.id != target).any(was_said) {
            return Err(EngineError::NotPossible(String::from(
                "what was said before the compaction is not in this log: there is nothing to go back to",
            )));
        }
        let decision = Decision {
            kind: DecisionKind::Undo { target },
            reason: String::from("the compaction was taken back"),
            cost: Default::default(),
        };
        let size = whole.with_decision(&decision).size().tokens;
        if config.limits.fill(size).blocking {
            return Err(EngineError::NotPossible(format!(
                "without the compaction the context would have about {size} tokens, and the window of {} leaves room \
                 for {}: choose a model with a larger window, or compact a part with --from or --up-to",
                config.limits.window, config.limits.blocking
            )));
        }
        // Restore the earlier prompt prefix if the compaction replaced it.
        if let Some(prefix) = prefix_before(whole.branch(), target) {
            self.append(EntryDraft::prefix(prefix), now)?;
        }
        let undo = self.decide(&decision, now)?;
        self.sync()?;
        // A resumed session has not read what the boundary hid.
        self.read_back_from(undo.id)?;
        Ok(target)
    }
}

/// Prefix in force before an entry, if a newer one follows it.
fn prefix_before(branch: &[LogEntry], target: EntryId) -> Option<&PromptPrefix> {
    let at = branch.iter().position(|entry| entry.id == target)?;
    let newest = |entries: &'_ [LogEntry]| -> Option<usize> {
        entries.iter().rposition(|entry| matches!(entry.body, EntryBody::Prefix(_)))
    };
    newest(&branch[at..])?;
    match &branch[newest(&branch[..at])?].body {
        EntryBody::Prefix(prefix) => Some(prefix),
        _ => None,
    }
}
