//! The way through a recording: what was said is copied, what was asked is asked anew.

use std::path::Path;
use std::time::{Duration, Instant};

use pal_context::cache::Asked;
use pal_engine::{Engine, Seen, Session};
use pal_model::{
    Body, Boundary, CacheBreak, Card, Cards, Content, Decision, DecisionKind, Draft, Entry, EntryId,
    IdSource, Prefix, RequestSent, ResponseGot, ResponseId, Timestamp, Usage,
};
use pal_sim::{Answer, CacheStory, Exchange};
use pal_view::{RenderOptions, View};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use crate::ReplayError;
use crate::audit::Audit;
use crate::breaks::Break;
use crate::by_engine::engine;
use crate::desk::MARKED_MESSAGES;
use crate::lost::lost;
use crate::marks::as_client;
use crate::models::{Models, lens};
use crate::notes::Keeper;
use crate::notices::grouped_notices;
use crate::options::{Options, Policy};
use crate::place::Place;
use crate::provider::{Provider, Read, Replied};
use crate::recorded::{Called, Recorded};
use crate::report::{Compaction, EngineTimes, Rejection, Report};
use crate::unseen;

/// Most tokens that an answer may have: enough for what was recorded.
pub(crate) const MAX_TOKENS: u64 = 64_000;
/// Refusals that are told word for word.
const REJECTIONS_MOST: usize = 5;

/// One request of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Which request, counted from 1.
    pub number: u64,
    /// Which request of the recording it stands for, counted from 1.
    pub call: u64,
    /// The view that it shows.
    pub view: &'a View,
    /// When it started.
    pub started: Timestamp,
    /// How long after the one before it.
    pub since_previous: Option<Duration>,
    /// The model that was asked.
    pub model: &'a str,
    /// The body as it was sent.
    pub body: &'a str,
    /// What the recording's provider reported.
    pub recorded: Option<&'a Usage>,
    /// What the simulator reported.
    pub simulated: Option<&'a Usage>,
    /// What its cache did.
    pub cache: Option<CacheStory>,
    /// Reads that fell, and why, announced ones included.
    pub cache_break: Option<&'a CacheBreak>,
    /// Whether it is the conversation's own request that was answered, not one beside it or one that was refused.
    pub is_answer: bool,
    /// Whether the view began anew, or was shortened, since the request before.
    pub was_cut: bool,
}

/// Replays a recording.
pub fn replay(recorded: &Recorded, options: &Options) -> Result<Report, ReplayError> {
    replay_watched(recorded, options, &mut |_| {})
}

/// Replays a recording and shows every request.
pub fn replay_watched(
    recorded: &Recorded,
    options: &Options,
    watch: &mut dyn FnMut(&Step<'_>),
) -> Result<Report, ReplayError> {
    let place = Place::new(options.out.as_deref())?;
    let mut run = Run::new(recorded, options, &place.log())?;
    for (at, entry) in recorded.entries().iter().enumerate() {
        run.keep_warm(Some(recorded.call(at).map_or(entry.at, |called| called.started)))?;
        match &entry.body {
            Body::Request(request) if request.source.is_conversation() => {
                run = run.restarted()?;
                run.request(at, entry, request, watch)?;
            }
            Body::Response(got) if got.source.is_conversation() => run.response(entry, got)?,
            Body::Prefix(prefix) => run.prefix(entry, prefix)?,
            // Under a policy of our own the recording's decisions are not ours.
            Body::Boundary(_) | Body::Decision(_) if options.policy != Policy::None => {}
            Body::Boundary(boundary) => run.boundary(at, entry, boundary)?,
            Body::Decision(decision) => run.decision(entry, decision)?,
            // Requests of other threads are none of the conversation's; what was kept from elsewhere never leaves.
            Body::Request(_) | Body::Response(_) | Body::Internal | Body::Repair(_) | Body::Unknown => {}
            _ => run.copy(entry)?,
        }
    }
    run.keep_warm(None)?;
    let mut report = run.finish();
    report.lost = lost(recorded, &place.log())?;
    Ok(report)
}

/// A replay under way.
pub(crate) struct Run<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) options: &'a Options,
    pub(crate) cards: Cards,
    pub(crate) card: Card,
    pub(crate) session: Session,
    pub(crate) engine: Engine,
    pub(crate) provider: Provider,
    pub(crate) report: Report,
    /// Which request of the recording is at hand, counted from 1. More or fewer may have left.
    pub(crate) call: u64,
    /// Reads that fell, by the recorded response.
    pub(crate) fallen: FxHashMap<ResponseId, CacheBreak>,
    /// What stands before the messages of all sessions of the recording's client.
    pub(crate) shared: Option<Prefix>,
    /// When the request before this one started.
    pub(crate) previous: Option<Timestamp>,
    /// Whether the view was cut since.
    pub(crate) was_cut: bool,
    /// The size of the newest context.
    pub(crate) context_tokens: u64,
    /// Where the entries that the next summary stands for begin.
    pub(crate) unsummarised: usize,
    /// What came back, by the recorded response that it stands for.
    pub(crate) answered: FxHashMap<ResponseId, Exchange>,
    /// What the turn at hand took so far.
    pub(crate) turn: Duration,
    pub(crate) turns_us: Vec<u64>,
    /// Who keeps notes; none if nobody does.
    pub(crate) keeper: Option<Keeper>,
    /// Since when everything is answered that was asked, while keeping the cache warm is worth a thought.
    pub(crate) rests_since: Option<Timestamp>,
}

impl<'a> Run<'a> {
    fn new(recorded: &'a Recorded, options: &'a Options, log: &Path) -> Result<Run<'a>, ReplayError> {
        let Models { cards, first: card, notices } = Models::new(recorded, options)?;
        let report = Report {
            file: recorded.name().to_owned(),
            policy: options.policy.name(),
            notices,
            ..Report::default()
        };
        let engine = engine(options, &card, recorded.lifetime());
        let notes = options.notes.filter(|_| options.policy != Policy::None);
        Ok(Run {
            recorded,
            options,
            session: Session::create(log, lens(&card, options.policy), IdSource::seeded(0))?,
            keeper: notes.map(|taking| Keeper::new(taking, &engine)),
            engine,
            provider: Provider::new(cards.clone()),
            cards,
            card,
            report,
            call: 0,
            fallen: FxHashMap::default(),
            shared: None,
            previous: None,
            was_cut: false,
            context_tokens: 0,
            unsummarised: 0,
            answered: FxHashMap::default(),
            turn: Duration::ZERO,
            turns_us: Vec::new(),
            rests_since: None,
        })
    }

    /// Closes and opens the session before the next request, if its time has come.
    fn restarted(self) -> Result<Run<'a>, ReplayError> {
        if !self.options.restart.comes_before(self.report.requests + 1) {
            return Ok(self);
        }
        Ok(Run { session: self.session.reopen(IdSource::seeded(0))?, ..self })
    }

    /// Does something of which the engine's time is taken.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Run<'a>) -> T) -> T {
        let start = Instant::now();
        let done = work(self);
        self.turn += start.elapsed();
        done
    }

    fn copy(&mut self, entry: &Entry) -> Result<(), ReplayError> {
        self.timed(|run| run.session.append(Draft::copy_of(entry), entry.at))?;
        Ok(())
    }

    fn prefix(&mut self, entry: &Entry, prefix: &Prefix) -> Result<(), ReplayError> {
        // The log of a replay has been through this.
        if prefix.unseen_tokens == 0 || unseen::is_fitted(entry) {
            return self.copy(entry);
        }
        let fitted = unseen::fitted(prefix, self.recorded, self.session.view().lens(), &mut self.provider);
        let draft = Draft::prefix(&fitted).extra(unseen::FITTED, "true");
        self.append(draft, entry.id, entry.at)?;
        self.shared = Some(Prefix { context: Content::default(), ..fitted });
        Ok(())
    }

    fn decision(&mut self, entry: &Entry, decision: &Decision) -> Result<(), ReplayError> {
        self.copy(entry)?;
        if shortens(&decision.kind) {
            let layer = self.report.layers.entry(entry.kind().0.to_string()).or_default();
            layer.times += 1;
            layer.tokens_freed += decision.cost.tokens_freed;
            self.was_cut = true;
        }
        Ok(())
    }

    fn boundary(&mut self, at: usize, entry: &Entry, boundary: &Boundary) -> Result<(), ReplayError> {
        self.timed(|run| run.session.copy_boundary(entry.id, boundary, entry.at))?;
        if !boundary.stands() {
            return Ok(());
        }
        let kept = boundary.preserved.as_ref().map(|kept| kept.head);
        let stretch = self.recorded.entries().get(self.unsummarised..at).unwrap_or_default();
        let end = kept.and_then(|head| stretch.iter().position(|entry| entry.id == head));
        let stretch = stretch.get(..end.unwrap_or(stretch.len())).unwrap_or_default();
        self.report.compactions.push(Compaction {
            trigger: boundary.trigger.to_string(),
            how: boundary.how.to_string(),
            before: self.context_tokens,
            after: None,
            messages: boundary.messages_summarised.unwrap_or_else(|| messages(stretch)),
            audit: Audit::of(&boundary.summary, stretch),
        });
        // The summary is a source of the next one.
        self.unsummarised = at;
        self.was_cut = true;
        Ok(())
    }

    /// Keeps a fall for the entry of the response, and tells of it unless it was announced.
    pub(crate) fn note_break(&mut self, called: &Called, found: Option<CacheBreak>) {
        let Some(found) = found else { return };
        self.report.breaks.extend(Break::of(self.call, &found));
        if let Some(response) = &called.response {
            self.fallen.insert(response.clone(), found);
        }
    }

    /// Asks what was asked there.
    fn request(
        &mut self,
        at: usize,
        entry: &Entry,
        request: &RequestSent,
        watch: &mut dyn FnMut(&Step<'_>),
    ) -> Result<(), ReplayError> {
        let recorded = self.recorded;
        let Some(called) = recorded.call(at) else { return Ok(()) };
        self.call += 1;
        self.rests_since = None;
        if self.options.model.is_none() && !request.model.is_empty() && request.model != self.card.model {
            self.ask_another(&request.model);
        }
        if self.options.policy != Policy::None {
            return self.by_engine(at, called, request, watch);
        }
        let max_tokens = MAX_TOKENS.min(self.card.max_output);
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: true };
        let betas = self.engine.cache.betas.clone();
        let (rendered, call) = self.timed(|run| {
            let rendered = run.session.view().render(options);
            let rendered = as_client(rendered, &run.card, MARKED_MESSAGES, called.lifetime);
            let rendered = run.provider.asking_why(rendered, &run.card);
            let call = run.provider.call(&rendered, &betas, &run.card);
            (rendered, call)
        });
        let sent = RequestSent {
            fingerprint: Some(rendered.fingerprint()),
            lifetime: Some(SmolStr::new_static(called.lifetime.name())),
            ..RequestSent::plain(
                request.source.clone(),
                self.session.view().newest(),
                self.card.model.clone(),
            )
        };
        self.append(Draft::request(&sent), entry.id, called.started)?;
        self.warm(called);
        let body = call.body.joined();
        let (replied, read) =
            self.provider.ask_and_read(called.started, &call, &body, Some(called.answer.clone()));
        replied.exchange.iter().for_each(|exchange| self.provider.answered(exchange));
        let asked = Asked { request: rendered, betas };
        let found = self.watched(entry.id, called, request, asked, &replied, &read);
        self.turns_us.push(u64::try_from(std::mem::take(&mut self.turn).as_micros()).unwrap_or(u64::MAX));
        self.report.requests += 1;
        *self.report.models.entry(self.card.model.to_string()).or_default() += 1;
        let since_previous = self.since_previous(called.started);
        watch(&Step {
            number: self.report.requests,
            call: self.call,
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
            was_cut: self.was_cut,
        });
        self.note_break(called, found);
        self.count(called, request, replied);
        Ok(())
    }

    /// Compares a request that was answered with the one before it.
    fn watched(
        &mut self,
        entry: EntryId,
        called: &Called,
        request: &RequestSent,
        asked: Asked,
        replied: &Replied,
        read: &Read,
    ) -> Option<CacheBreak> {
        let exchange = replied.exchange.as_ref()?;
        self.session.watch(Seen {
            entry,
            source: &request.source,
            asked,
            lifetime: called.lifetime,
            started: called.started,
            response: &ResponseId::from(exchange.response.as_str()),
            usage: &exchange.usage,
            cleared_tokens: read.cleared_tokens,
            provider: read.cache_miss.as_ref(),
        })
    }

    /// Other sessions of the same client keep what they share in the cache: where the recording read although nothing
    /// of its own could be left, somebody else has just asked.
    pub(crate) fn warm(&mut self, called: &Called) {
        let is_cold = self.previous.is_none_or(|previous| {
            called.started.milliseconds() - previous.milliseconds() >= called.lifetime.milliseconds() as i64
        });
        let has_read = called.usage.as_ref().is_some_and(|usage| usage.cache_read_input_tokens > 0);
        let Some(prefix) = self.shared.as_ref().filter(|_| is_cold && has_read) else { return };
        let Some(view) = unseen::alone(prefix, self.session.view().lens()) else { return };
        let options = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: true };
        let request = as_client(view.render(options), &self.card, 0, called.lifetime);
        let betas = self.engine.cache.betas.clone();
        let call = self.provider.call(&request, &betas, &self.card);
        self.provider.ask(called.started, &call, &call.body.joined(), Some(Answer::default()));
    }

    pub(crate) fn since_previous(&mut self, started: Timestamp) -> Option<Duration> {
        self.previous.replace(started).map(|previous| {
            Duration::from_millis((started.milliseconds() - previous.milliseconds()).max(0) as u64)
        })
    }

    pub(crate) fn refuse(&mut self, status: u16, message: String) {
        self.report.rejected += 1;
        if self.report.rejections.len() < REJECTIONS_MOST {
            let request = self.call;
            self.report.rejections.push(Rejection { request, status, message });
        }
    }

    /// Takes an answer into the report.
    pub(crate) fn count(&mut self, called: &Called, request: &RequestSent, replied: Replied) {
        if let Some(usage) = &called.usage {
            let card = self.cards.find(&request.model).card;
            self.report.recorded.add(usage, card.cost(usage));
        }
        let Some(exchange) = replied.exchange else {
            return self.refuse(replied.status, replied.refusal.unwrap_or_default());
        };
        let usage = &exchange.usage;
        self.report.measured.add(usage, exchange.cost);
        self.was_cut = false;
        self.context_tokens = usage.context_tokens();
        if let Some(compaction) = self.report.compactions.last_mut() {
            compaction.after.get_or_insert(usage.prompt_tokens());
        }
        if let Some(response) = &called.response {
            self.answered.insert(response.clone(), exchange);
        }
    }

    /// A recorded answer may be longer than the window at hand leaves room for. It stands in the log whole, so its usage
    /// must say so: sizes rest on it.
    fn make_whole(&self, usage: &mut Usage, got: &ResponseGot) {
        let estimator = self.session.view().estimator();
        let blocks = self.recorded.blocks_of(&got.response);
        let tokens: f64 = blocks.map(|block| estimator.json(block.raw())).sum();
        usage.output_tokens = usage.output_tokens.max(estimator.total(tokens));
        usage.iterations = None;
    }

    /// The end of a recorded response, with what it took here.
    fn response(&mut self, entry: &Entry, got: &ResponseGot) -> Result<(), ReplayError> {
        let Some(mut exchange) = self.answered.remove(&got.response) else { return Ok(()) };
        if matches!(exchange.stop_reason.as_str(), "max_tokens" | "model_context_window_exceeded") {
            self.make_whole(&mut exchange.usage, got);
        }
        let response = ResponseGot {
            response: got.response.clone(),
            source: got.source.clone(),
            model: exchange.model.as_str().into(),
            usage: exchange.usage,
            stop_reason: Some(exchange.stop_reason.as_str().into()),
            cost: exchange.cost,
            cache_break: self.fallen.remove(&got.response),
        };
        let calls = self.keeper.as_ref().and_then(|keeper| keeper.calls(&got.response, &response.model));
        if let Some(calls) = calls {
            self.session.append(calls, entry.at)?;
        }
        self.append(Draft::response(&response), entry.id, entry.at)?;
        self.rests_since = Some(entry.at);
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

    fn append(&mut self, draft: Draft, id: EntryId, at: Timestamp) -> Result<(), ReplayError> {
        self.timed(|run| run.session.append(draft.with_id(id), at))?;
        Ok(())
    }

    /// From here on the recording asks another model.
    fn ask_another(&mut self, model: &str) {
        self.card = self.cards.find(model).card;
        let lens = lens(&self.card, self.options.policy);
        self.engine = engine(self.options, &self.card, self.recorded.lifetime());
        self.timed(|run| run.session.look_through(lens));
    }

    fn finish(self) -> Report {
        let mut report = self.report;
        report.notes = self.keeper.map(|keeper| keeper.finish(self.session.view().estimator()));
        report.window = self.card.window;
        report.engine_us = EngineTimes::of(self.turns_us);
        report.notices = grouped_notices(report.notices);
        report
    }
}

/// Whether a decision makes the context smaller, or larger again.
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

/// How many messages were said there.
fn messages(entries: &[Entry]) -> u64 {
    let said =
        |entry: &&Entry| matches!(entry.body, Body::User(_) | Body::Assistant(_) | Body::Attachment(_));
    entries.iter().filter(said).count() as u64
}
