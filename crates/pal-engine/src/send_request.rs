//! Sends requests. If the provider rejects one as too long, or the window fills up before the answer ends, the
//! context is reduced and sent again (§4.16).

use pal_context::{RequestParams, cache};
use pal_model::text::group_digits;
use pal_model::{
    CacheBreak, ContextOverflow, Decision, DecisionCost, DecisionKind, EntryBody, EntryDraft, EntryId,
    LayerReport, LogEntry, RequestRecord, RequestSource, ResponseRecord, Timestamp, blocks_to_json, unescape,
};
use pal_view::{BreakpointPosition, Request};
use smol_str::SmolStr;

use crate::cache_watch::AnsweredRequest;
use crate::length_refusal::{ContextReduction, RefusalFindings, StatedWindow, fitting_answer};
use crate::{
    EngineError, ModelResponse, OutgoingRequest, PreparedRequest, RequestOutcome, Session, SessionConfig,
    SessionHost,
};

/// A request and its response.
#[derive(Clone, Debug)]
pub struct RequestResult {
    /// The response; not in the log yet.
    pub answered: ModelResponse,
    /// The request as sent.
    pub prepared: PreparedRequest,
    /// Number of rejections as too long before this one.
    pub rejected: u64,
    /// Detected cache-read drop, for the response entry.
    pub cache_break: Option<CacheBreak>,
}

/// Maximum reductions of the context after answers that the full window cut off: each of them was paid for.
const CUT_ANSWERS_MAX: u64 = 2;

/// Name of the layer that asks the provider to clear.
const CLEARING: &str = "microcompact";

impl Session {
    /// Prepares and sends a request of the conversation.
    ///
    /// If the provider accepts it only after refusals, the window that they stated, or that the refused and accepted
    /// sizes suggest, limits the session from then on.
    pub fn send(
        &mut self,
        config: &mut SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<RequestResult, EngineError> {
        let (limits, max_tokens) = (config.limits, config.max_tokens);
        let mut findings = RefusalFindings::default();
        let result = self.send_until_accepted(config, &mut findings, now, host);
        (config.limits, config.max_tokens) = (limits, max_tokens);
        if result.is_ok() {
            self.keep_findings(&findings, config, host);
        }
        result
    }

    fn send_until_accepted(
        &mut self,
        config: &mut SessionConfig,
        findings: &mut RefusalFindings,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<RequestResult, EngineError> {
        let limits = config.limits;
        let mut rejected = 0;
        let mut reduction = ContextReduction::default();
        let mut refusal = None;
        let may_compact = config.summary_methods.as_ref().is_none_or(|ways| !ways.is_empty());
        loop {
            let now = host.now(now);
            let mut prepared = self.prepare(config, now, host);
            if let (Err(EngineError::Full(_)), Some(window)) =
                (&prepared, findings.window_for_attempt(self.view.size().tokens))
            {
                config.limits = limits.lowered_to(window);
                prepared = self.prepare(config, now, host);
            }
            let mut prepared = match (prepared, refusal.take()) {
                // The window is the one that the provider stated, so its own words say more.
                (Err(EngineError::Full(_)), Some(message)) => return Err(self.too_long(message)),
                (prepared, _) => prepared?,
            };
            if host.is_cancelled() {
                return Err(EngineError::Provider(String::from("interrupted before the request left")));
            }
            // Preparing may take a while: a compaction asks a model.
            let now = host.now(now);
            let unsent = self.unsent_entries();
            let size = self.view.size();
            let reports = prepared.reports.iter().filter(|report| report.acted).cloned().collect();
            let PreparedRequest { request, betas, params, .. } = &prepared;
            let entry = self.append_request(&RequestSource::main(), request, params, betas, reports, now)?;
            // The disk syncs while the request travels. The response is not used before both are done.
            let syncing = self.log.begin_sync()?;
            let previous = self.watched.as_ref().map(|watched| watched.response().clone());
            let outgoing = OutgoingRequest { request, betas, previous: previous.as_ref(), now };
            let outcome = host.send(&outgoing);
            self.log.finish_sync(syncing)?;
            match outcome {
                RequestOutcome::Answered(answered)
                    if may_compact && is_cut(&answered) && rejected < CUT_ANSWERS_MAX =>
                {
                    // A truncated answer is part of the conversation and was paid for.
                    self.append_answer(&answered, now)?;
                    self.append_response(&answered, None, now)?;
                    self.answer_interrupted_calls(now)?;
                    host.discard_answer();
                    host.notice(&reduction.notice("the window was full before the answer ended"));
                    self.reduce(&mut reduction, &ContextOverflow::UNKNOWN, config, now, host)?;
                    rejected += 1;
                }
                RequestOutcome::Answered(answered) => {
                    self.note_cleared(answered.cleared_tokens, &mut prepared, now)?;
                    self.accepted_tokens = self.accepted_tokens.max(size.tokens);
                    self.observe_usage(&size, &answered, now, host)?;
                    if let Some(window) = self.silent_window(&size, &answered) {
                        host.notice(&format!(
                            "the server leaves out part of the prompt without an error: it reports {} tokens however much is \
                             sent. Start it with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH)",
                            group_digits(window)
                        ));
                        findings.stated = Some(StatedWindow { window, provider_tokens: window });
                    }
                    let cache_break = self.watch_sent(entry, &prepared, &answered, config, now);
                    return Ok(RequestResult { answered, prepared, rejected, cache_break });
                }
                RequestOutcome::MediaRefused { media, message } => {
                    if !self.strip_refused(&media, &unsent, &message, now, host)? {
                        return Err(EngineError::Provider(message));
                    }
                }
                RequestOutcome::Broke(broke) => return Err(EngineError::Broke(Box::new(broke))),
                RequestOutcome::Failed(message) => return Err(EngineError::Provider(message)),
                RequestOutcome::TooLong {
                    overflow: ContextOverflow { output_limit: Some(limit), .. },
                    ..
                } if limit > 0 && limit < prepared.request.max_tokens() => {
                    self.limit_answers(limit);
                    host.learn_output_limit(limit);
                }
                RequestOutcome::TooLong { message, .. } | RequestOutcome::TooLarge(message)
                    if !may_compact =>
                {
                    return Err(self.too_long(message));
                }
                RequestOutcome::TooLarge(message) => {
                    rejected += 1;
                    let earlier_limits = config.limits;
                    self.lower_limits(&ContextOverflow::UNKNOWN, config, &mut RefusalFindings::default());
                    host.notice(&reduction.notice("the provider finds the request too large"));
                    // The window is still the card's.
                    let window = Some(self.view.lens().card.window);
                    let overflow = ContextOverflow { window, ..ContextOverflow::UNKNOWN };
                    if self.reduce(&mut reduction, &overflow, config, now, host)? {
                        refusal = Some(message);
                    } else if rejected == 1 {
                        // It may be a mistake of the server: tried once more.
                        config.limits = earlier_limits;
                    } else {
                        return Err(self.too_long(message));
                    }
                }
                RequestOutcome::TooLong { overflow, message } => {
                    rejected += 1;
                    let earlier_limits = config.limits;
                    self.lower_limits(&overflow, config, findings);
                    if let Some(answer) = fitting_answer(&overflow).filter(|room| *room < config.max_tokens) {
                        config.max_tokens = answer;
                        continue;
                    }
                    host.notice(&reduction.notice("the provider finds the request too long"));
                    let is_smaller = self.reduce(&mut reduction, &overflow, config, now, host)?
                        || self.shrink_prefix(findings, config, now, host)?;
                    // Figures that make no sense for what cannot be smaller may be a mistake of the server: it is tried
                    // once more.
                    if is_smaller {
                        refusal = Some(message);
                    } else if rejected == 1 && overflow != ContextOverflow::UNKNOWN {
                        (config.limits, *findings) = (earlier_limits, RefusalFindings::default());
                    } else {
                        return Err(self.too_long(message));
                    }
                }
            }
        }
    }

    /// Logs provider-side clearing when it grows: the provider clears the same again in every request. The view
    /// does not change, and the usage is that of the cleared context.
    fn note_cleared(
        &mut self,
        cleared_tokens: u64,
        prepared: &mut PreparedRequest,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if cleared_tokens == 0 {
            return Ok(());
        }
        let behind_boundary =
            self.view.branch().iter().rev().take_while(|entry| !matches!(entry.body, EntryBody::Boundary(_)));
        let known = behind_boundary.filter_map(|entry| match entry.decision() {
            Some(DecisionKind::ProviderClear { cleared_tokens }) => Some(*cleared_tokens),
            _ => None,
        });
        let more = cleared_tokens.saturating_sub(known.max().unwrap_or(0));
        if more == 0 {
            return Ok(());
        }
        self.decide(
            &Decision {
                kind: DecisionKind::ProviderClear { cleared_tokens },
                reason: format!("the provider left out {cleared_tokens} tokens, {more} more than before"),
                cost: DecisionCost { tokens_freed: more, ..DecisionCost::default() },
            },
            now,
        )?;
        if let Some(report) = prepared.reports.iter_mut().find(|report| report.layer == CLEARING) {
            report.acted = true;
            report.tokens_freed += more;
        }
        Ok(())
    }

    /// Appends a response to the conversation; none if it is empty.
    pub fn append_answer(
        &mut self,
        answered: &ModelResponse,
        now: Timestamp,
    ) -> Result<Option<LogEntry>, EngineError> {
        if answered.blocks.is_empty() {
            return Ok(None);
        }
        let content = blocks_to_json(&answered.blocks);
        let said = EntryDraft::assistant(Some(&answered.response), Some(&answered.model), &content);
        self.append(said, now).map(Some)
    }

    /// Appends the usage of a response.
    pub fn append_response(
        &mut self,
        answered: &ModelResponse,
        cache_break: Option<CacheBreak>,
        now: Timestamp,
    ) -> Result<LogEntry, EngineError> {
        let got = ResponseRecord {
            response: answered.response.clone(),
            source: RequestSource::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: answered.cost,
            cache_break,
        };
        self.append(EntryDraft::response(&got), now)
    }

    /// Compares an answered request with the one before it.
    fn watch_sent(
        &mut self,
        entry: EntryId,
        prepared: &PreparedRequest,
        answered: &ModelResponse,
        config: &SessionConfig,
        now: Timestamp,
    ) -> Option<CacheBreak> {
        if config.cache.watch_off {
            self.watched = None;
            return None;
        }
        let source = RequestSource::main();
        self.watch(AnsweredRequest {
            entry,
            source: &source,
            asked: cache::SentRequest { request: prepared.request.clone(), betas: prepared.betas.clone() },
            ttl: prepared.params.ttl,
            started: now,
            response: &answered.response,
            usage: &answered.usage,
            cleared_tokens: answered.cleared_tokens,
            provider: answered.cache_miss.as_ref(),
        })
    }

    /// Appends the request record before sending.
    pub(crate) fn append_request(
        &mut self,
        source: &RequestSource,
        request: &Request,
        params: &RequestParams,
        betas: &[SmolStr],
        layers: Vec<LayerReport>,
        now: Timestamp,
    ) -> Result<EntryId, EngineError> {
        let marked = request.breakpoints().iter().filter_map(|mark| match mark.position {
            BreakpointPosition::Block(at) => Some(at as u64),
            BreakpointPosition::Tool(_) | BreakpointPosition::System(_) => None,
        });
        let is_standing = |name: &SmolStr| params.members.iter().any(|(known, _)| known == name);
        let carried = request.members().iter().filter(|(name, _)| is_standing(name));
        let members = carried.map(|(name, value)| (name.clone(), value.to_string()));
        let model = request.members().iter().find(|(name, _)| name == "model");
        let model = model.and_then(|(_, value)| unescape(value)).map(SmolStr::new);
        // The name of the card keeps the suffix that chose its window; a small model may have been asked instead.
        let card = &self.view.lens().card;
        let model = model.filter(|model| *model != card.model).unwrap_or_else(|| card.name.clone());
        let sent = RequestRecord {
            fingerprint: Some(request.fingerprint()),
            breakpoints: marked.collect(),
            cache_ttl: Some(SmolStr::new_static(params.ttl.name())),
            betas: betas.to_vec(),
            members: members.collect(),
            layers,
            ..RequestRecord::new(source.clone(), self.view.newest_id(), model)
        };
        self.append(EntryDraft::request(&sent), now).map(|entry| entry.id)
    }
}

/// Returns whether the window filled up before the answer ended.
fn is_cut(answered: &ModelResponse) -> bool {
    answered.stop_reason.as_deref() == Some("model_context_window_exceeded")
}

#[cfg(test)]
mod tests;
