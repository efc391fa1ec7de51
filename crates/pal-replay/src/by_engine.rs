//! The way through a recording under a policy of our own: the engine decides what is sent.

use std::time::{Duration, Instant};

use pal_context::What;
use pal_context::cache::Eligibility;
use pal_engine::{CacheSettings, Engine, EngineError};
use pal_model::{Body, Boundary, Card, DecisionKind, Entry, EntryId, RequestSent};
use pal_view::{CacheLifetime, Limits, WindowSettings};
use smol_str::SmolStr;

use crate::ReplayError;
use crate::audit::Audit;
use crate::desk::Desk;
use crate::options::{Before, Options};
use crate::provider::Replied;
use crate::recorded::Called;
use crate::report::Compaction;
use crate::run::{MAX_TOKENS, Run, Step};

impl Run<'_> {
    /// Lets the engine decide what is sent.
    pub(crate) fn by_engine(
        &mut self,
        at: usize,
        called: &Called,
        request: &RequestSent,
        watch: &mut dyn FnMut(&Step<'_>),
    ) -> Result<(), ReplayError> {
        let newest = self.session.view().newest();
        self.warm(called);
        let mut with_notes = None;
        if let Some(keeper) = &mut self.keeper {
            let with_notes = with_notes.insert(called.clone());
            keeper.asking(&mut self.session, &mut with_notes.answer, called.started)?;
        }
        let called = with_notes.as_ref().unwrap_or(called);
        let mut desk = Desk {
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
        if let Some(Before(layer)) = self.options.before {
            let act = self.session.plan(layer, &self.engine, called.started);
            if let What::Decide(proposals) = act.what {
                let layer = self.report.layers.entry(layer.name().to_owned()).or_default();
                for proposal in proposals.iter().filter(|proposal| proposal.file.is_none()) {
                    self.session.decide(&proposal.decision, called.started)?;
                    layer.times += 1;
                    layer.tokens_freed += proposal.decision.cost.tokens_freed;
                }
                self.was_cut = true;
            }
        }
        let sent = self.session.send(&self.engine, called.started, &mut desk);
        self.turn += start.elapsed().saturating_sub(desk.waited);
        let (exchanges, full) = (std::mem::take(&mut desk.exchanges), std::mem::take(&mut desk.full));
        let number = self.call;
        self.report.notices.extend(desk.notices.iter().map(|notice| format!("request {number}: {notice}")));
        self.turns_us.push(u64::try_from(std::mem::take(&mut self.turn).as_micros()).unwrap_or(u64::MAX));
        self.note_boundaries(at, newest, full.last());
        self.note_cleared(newest);
        for (exchange, is_last) in last_flagged(&exchanges) {
            self.report.requests += 1;
            *self.report.models.entry(self.card.model.to_string()).or_default() += 1;
            let is_answer = is_last && sent.is_ok();
            let since_previous = is_answer.then(|| self.since_previous(called.started)).flatten();
            watch(&Step {
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
                was_cut: self.was_cut,
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
    fn note_boundaries(&mut self, at: usize, since: Option<EntryId>, full: Option<&Boundary>) {
        let branch = self.session.view().branch();
        let from = branch.iter().rposition(|entry| Some(entry.id) == since).map_or(0, |at| at + 1);
        let boundaries: Vec<Boundary> = branch[from..]
            .iter()
            .filter_map(|entry| match &entry.body {
                Body::Boundary(boundary) => Some((**boundary).clone()),
                _ => None,
            })
            .collect();
        for boundary in boundaries {
            self.was_cut = true;
            if let Some(keeper) = &mut self.keeper {
                keeper.compacted(&boundary, full, self.session.view());
            }
            let said = self.recorded.entries().get(..at).unwrap_or_default();
            let audit = Audit::of_view(self.session.view(), said, &boundary);
            self.report.compactions.push(Compaction {
                trigger: boundary.trigger.to_string(),
                how: boundary.how.to_string(),
                before: boundary.tokens_before.unwrap_or_default(),
                after: None,
                messages: boundary.messages_summarised.unwrap_or_default(),
                audit,
            });
        }
    }

    /// What the provider cleared since an entry changes what it reads from its cache.
    fn note_cleared(&mut self, since: Option<EntryId>) {
        let newest = self.session.view().branch().iter().rev().take_while(|entry| Some(entry.id) != since);
        let is_clear = |entry: &Entry| matches!(entry.decision(), Some(DecisionKind::ProviderClear { .. }));
        if newest.into_iter().any(is_clear) {
            self.was_cut = true;
        }
    }

    /// Takes a request beside the conversation into the report.
    fn count_beside(&mut self, replied: &Replied) {
        match &replied.exchange {
            Some(exchange) => self.report.measured.add(&exchange.usage, exchange.cost),
            None => self.refuse(replied.status, replied.refusal.clone().unwrap_or_default()),
        }
    }
}

/// What a session of this model runs by.
pub(crate) fn engine(options: &Options, card: &Card, lifetime: CacheLifetime) -> Engine {
    let limits = Limits::new(
        card,
        &WindowSettings {
            auto_compact: options.auto_compact && options.may_compact,
            threshold: options.threshold,
            ..WindowSettings::STANDARD
        },
    );
    Engine {
        policy: options.layers.clone(),
        limits: Limits {
            warning: options.warning.map_or(limits.warning, |at| at.min(limits.warning)),
            ..limits
        },
        // Names that are the same wherever the replay keeps its files.
        place: pal_context::Place {
            directory: String::from("session"),
            transcript: String::from("session/log.jsonl"),
        },
        is_attended: true,
        ways: (!options.may_compact).then(Vec::new),
        max_tokens: MAX_TOKENS,
        cache: CacheSettings {
            eligibility: Eligibility { is_wanted: lifetime == CacheLifetime::Hour1, is_in_overage: false },
            effort: None,
            betas: pal_wire::betas(card).into_iter().map(SmolStr::new_static).collect(),
            ..CacheSettings::default()
        },
        inputs: pal_engine::Inputs::default(),
    }
}

/// Items with whether each is the last.
fn last_flagged<T>(items: &[T]) -> impl Iterator<Item = (&T, bool)> {
    items.iter().enumerate().map(move |(at, item)| (item, at + 1 == items.len()))
}

#[cfg(test)]
mod tests;
