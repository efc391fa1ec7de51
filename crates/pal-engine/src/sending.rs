//! A request leaves; and if the provider finds it too long, or its window is full before the answer ends, the context
//! is made smaller and it leaves again (§4.16).

use pal_context::{How, Standing, Trigger, cache};
use pal_model::{
    Body, CacheBreak, Cost, Decision, DecisionKind, Draft, Entry, EntryId, LayerReport, RequestSent,
    ResponseGot, Source, Timestamp, raw_list,
};
use pal_view::{Request, Spot};
use smol_str::SmolStr;

use crate::preparing::automatic;
use crate::watching::Seen;
use crate::{Answered, Compacted, Engine, EngineError, Errands, Outcome, Outgoing, Prepared, Session};

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The answer. Its blocks and its usage are not in the log yet.
    pub answered: Answered,
    /// The request as it was answered.
    pub prepared: Prepared,
    /// How often the provider found it too long before, or ran out of room for the answer.
    pub rejected: u64,
    /// Reads from the cache that fell, and why; for the entry of the response.
    pub cache_break: Option<CacheBreak>,
}

/// How often a context is made smaller for one request: with a model and without.
const SMALLER_MAX: u64 = 2;

/// The layer that asks the provider to clear.
const CLEARING: &str = "microcompact";

impl Session {
    /// Prepares and sends a request of the conversation.
    pub fn send(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Sent, EngineError> {
        let mut rejected = 0;
        let may_compact = engine.ways.as_ref().is_none_or(|ways| !ways.is_empty());
        let smaller_max = if may_compact { SMALLER_MAX } else { 0 };
        loop {
            let now = errands.now(now);
            let mut prepared = self.prepare(engine, now, errands)?;
            if errands.is_cancelled() {
                return Err(EngineError::Provider(String::from("interrupted before the request left")));
            }
            // What was prepared may have taken a while: a compaction asks a model.
            let now = errands.now(now);
            let media = self.unsent_media();
            let reports = prepared.reports.iter().filter(|report| report.acted).cloned().collect();
            let Prepared { request, betas, standing, .. } = &prepared;
            let entry = self.append_request(&Source::main(), request, standing, betas, reports, now)?;
            // The disk writes while the request travels. Nothing is done with an answer before both have arrived.
            let syncing = self.log.begin_sync()?;
            let previous = self.watched.as_ref().map(|watched| watched.response().clone());
            let outgoing = Outgoing { request, betas, previous: previous.as_ref(), now };
            let outcome = errands.send(&outgoing);
            self.log.finish_sync(syncing)?;
            match outcome {
                Outcome::Answered(answered) if is_cut(&answered) && rejected < smaller_max => {
                    // What was cut off was said, and was paid for.
                    self.append_answer(&answered, now)?;
                    self.append_response(&answered, None, now)?;
                    self.settle(now)?;
                    errands.void();
                    errands.notice(&notice(rejected, "the window was full before the answer ended"));
                    self.make_smaller(rejected, None, engine, now, errands)?;
                    rejected += 1;
                }
                Outcome::Answered(answered) => {
                    self.note_cleared(answered.cleared_tokens, &mut prepared, now)?;
                    let cache_break = self.watch_sent(entry, &prepared, &answered, engine, now);
                    return Ok(Sent { answered, prepared, rejected, cache_break });
                }
                Outcome::MediaRefused(message) if media.is_empty() => {
                    return Err(EngineError::Provider(message));
                }
                Outcome::MediaRefused(message) => {
                    errands.notice(&format!("left out, because the provider refused it: {message}"));
                    self.strip(&media, &message, now)?;
                }
                Outcome::Broke(broke) => return Err(EngineError::Broke(Box::new(broke))),
                Outcome::Failed(message) => return Err(EngineError::Provider(message)),
                Outcome::TooLong { message, .. } if rejected == smaller_max => {
                    return Err(EngineError::TooLong { message });
                }
                Outcome::TooLong { have, .. } => {
                    errands.notice(&notice(rejected, "the provider finds the request too long"));
                    self.make_smaller(rejected, have, engine, now, errands)?;
                    rejected += 1;
                }
            }
        }
    }

    /// What the provider cleared is logged when there is more of it than before: it clears the same again for every
    /// request. Nothing in the view changes, and the usage that it reports is that of the cleared context.
    fn note_cleared(
        &mut self,
        cleared_tokens: u64,
        prepared: &mut Prepared,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if cleared_tokens == 0 {
            return Ok(());
        }
        let behind_boundary =
            self.view.branch().iter().rev().take_while(|entry| !matches!(entry.body, Body::Boundary(_)));
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
                cost: Cost { tokens_freed: more, ..Cost::default() },
            },
            now,
        )?;
        if let Some(report) = prepared.reports.iter_mut().find(|report| report.layer == CLEARING) {
            report.acted = true;
            report.tokens_freed += more;
        }
        Ok(())
    }

    /// Appends what the model said, as a part of the conversation; none if it said nothing.
    pub fn append_answer(
        &mut self,
        answered: &Answered,
        now: Timestamp,
    ) -> Result<Option<Entry>, EngineError> {
        if answered.blocks.is_empty() {
            return Ok(None);
        }
        let content = raw_list(&answered.blocks);
        let said = Draft::assistant(Some(&answered.response), Some(&answered.model), &content);
        self.append(said, now).map(Some)
    }

    /// Appends what an answer of the conversation took.
    pub fn append_response(
        &mut self,
        answered: &Answered,
        cache_break: Option<CacheBreak>,
        now: Timestamp,
    ) -> Result<Entry, EngineError> {
        let got = ResponseGot {
            response: answered.response.clone(),
            source: Source::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: answered.cost,
            cache_break,
        };
        self.append(Draft::response(&got), now)
    }

    /// Compares an answered request with the one before it.
    fn watch_sent(
        &mut self,
        entry: EntryId,
        prepared: &Prepared,
        answered: &Answered,
        engine: &Engine,
        now: Timestamp,
    ) -> Option<CacheBreak> {
        if engine.cache.watch_off {
            self.watched = None;
            return None;
        }
        let source = Source::main();
        self.watch(Seen {
            entry,
            source: &source,
            asked: cache::Asked { request: prepared.request.clone(), betas: prepared.betas.clone() },
            lifetime: prepared.standing.lifetime,
            started: now,
            response: &answered.response,
            usage: &answered.usage,
            cleared_tokens: answered.cleared_tokens,
            provider: answered.cache_miss.as_ref(),
        })
    }

    /// Appends what a request was, before it leaves.
    pub(crate) fn append_request(
        &mut self,
        source: &Source,
        request: &Request,
        standing: &Standing,
        betas: &[SmolStr],
        layers: Vec<LayerReport>,
        now: Timestamp,
    ) -> Result<EntryId, EngineError> {
        let marked = request.marks().iter().filter_map(|mark| match mark.spot {
            Spot::Block(at) => Some(at as u64),
            Spot::Tool(_) | Spot::System(_) => None,
        });
        let is_standing = |name: &SmolStr| standing.members.iter().any(|(known, _)| known == name);
        let carried = request.members().iter().filter(|(name, _)| is_standing(name));
        let members = carried.map(|(name, value)| (name.clone(), value.to_string()));
        let sent = RequestSent {
            fingerprint: Some(request.fingerprint()),
            marks: marked.collect(),
            lifetime: Some(SmolStr::new_static(standing.lifetime.name())),
            betas: betas.to_vec(),
            members: members.collect(),
            layers,
            ..RequestSent::plain(source.clone(), self.view.newest(), self.view.lens().card.model.clone())
        };
        self.append(Draft::request(&sent), now).map(|entry| entry.id)
    }

    /// What can be folded is folded; then the conversation is compacted, first by a model, the second time without.
    fn make_smaller(
        &mut self,
        rejected: u64,
        have: Option<u64>,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<(), EngineError> {
        let mut order = automatic(Trigger::Reactive, engine);
        if rejected == 0 {
            self.drain(have, engine, now, errands)?;
        } else {
            order.only = Some(vec![How::Extractive]);
        }
        match self.compact(order, engine, now, errands)? {
            Compacted::Blocked(hook) => Err(EngineError::Full(format!(
                "the provider finds the request too long, and the hook `{hook}` forbids compaction: change the hook, \
                 or start anew"
            ))),
            Compacted::Done { .. } | Compacted::Refused(_) => Ok(()),
        }
    }
}

/// What the user is told before the context is made smaller.
fn notice(rejected: u64, why: &str) -> String {
    match rejected {
        0 => format!("{why}: compacting"),
        _ => format!("still, {why}: compacting without a model"),
    }
}

/// Whether the window was full before the answer ended.
fn is_cut(answered: &Answered) -> bool {
    answered.stop_reason.as_deref() == Some("model_context_window_exceeded")
}

#[cfg(test)]
mod tests;
