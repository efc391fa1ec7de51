//! State of a replay, and the account of its requests.

use std::path::Path;
use std::time::{Duration, Instant};

use pal_engine::{Session, SessionConfig};
use pal_model::{
    CacheBreak, EntryDraft, EntryId, IdSource, ModelCard, ModelCatalog, PromptPrefix, RequestRecord,
    ResponseId, Timestamp,
};
use pal_sim::{ModelExchange, ModelOutput};
use pal_view::RenderOptions;
use rustc_hash::FxHashMap;

use crate::replay::ReplayError;
use crate::replay::breakpoint_positions::mark_as_client;
use crate::replay::note_keeper::ReplayNoteKeeper;
use crate::replay::recorded_session::{RecordedCall, RecordedSession};
use crate::replay::replay_breaks::ReplayBreak;
use crate::replay::replay_models::{ReplayModels, lens};
use crate::replay::replay_options::{ReplayOptions, ReplayPolicy};
use crate::replay::replay_provider::{ReplayProvider, ReplayResponse};
use crate::replay::replay_report::{Rejection, ReplayReport};
use crate::replay::session_setup::session_config;
use crate::replay::unseen_prefix;

/// Maximum refusals that are reported verbatim.
const REJECTIONS_MAX: usize = 5;

/// A replay in progress.
pub(crate) struct ReplayRun<'a> {
    pub(crate) recorded: &'a RecordedSession,
    pub(crate) options: &'a ReplayOptions,
    pub(crate) cards: ModelCatalog,
    pub(crate) card: ModelCard,
    pub(crate) session: Session,
    pub(crate) engine: SessionConfig,
    pub(crate) provider: ReplayProvider,
    pub(crate) report: ReplayReport,
    pub(crate) progress: ReplayProgress,
    pub(crate) pending: PendingResponses,
    pub(crate) clock: TurnClock,
    /// Shared prefix of all sessions of the recording's client.
    pub(crate) shared: Option<PromptPrefix>,
    /// Note keeper; none if there are no notes.
    pub(crate) keeper: Option<ReplayNoteKeeper>,
}

/// Position of a replay in its recording.
#[derive(Default)]
pub(crate) struct ReplayProgress {
    /// Current request of the recording, counted from 1. More or fewer may have left.
    pub(crate) call: u64,
    /// When the request before this one started.
    pub(crate) previous: Option<Timestamp>,
    /// True if the view was cut since.
    pub(crate) was_cut: bool,
    /// The size of the newest context.
    pub(crate) context_tokens: u64,
    /// Start of the entries that the next summary replaces.
    pub(crate) unsummarized: usize,
    /// Since when every request is answered, while keeping the cache warm may pay.
    pub(crate) rests_since: Option<Timestamp>,
}

/// Results of requests whose recorded response is not yet copied.
#[derive(Default)]
pub(crate) struct PendingResponses {
    /// Cache-read drops by recorded response.
    pub(crate) fallen: FxHashMap<ResponseId, CacheBreak>,
    /// Responses by recorded response.
    pub(crate) answered: FxHashMap<ResponseId, ModelExchange>,
}

/// Engine time of turns.
#[derive(Default)]
pub(crate) struct TurnClock {
    /// Time of the current turn so far.
    pub(crate) turn: Duration,
    /// Times of the finished turns in microseconds.
    pub(crate) turns_us: Vec<u64>,
}

impl TurnClock {
    /// Ends the current turn.
    pub(crate) fn finish_turn(&mut self) {
        self.turns_us.push(u64::try_from(std::mem::take(&mut self.turn).as_micros()).unwrap_or(u64::MAX));
    }
}

impl<'a> ReplayRun<'a> {
    pub(crate) fn new(
        recorded: &'a RecordedSession,
        options: &'a ReplayOptions,
        log: &Path,
    ) -> Result<ReplayRun<'a>, ReplayError> {
        let ReplayModels { cards, first: card, notices } = ReplayModels::new(recorded, options)?;
        let report = ReplayReport {
            file: recorded.name().to_owned(),
            policy: options.policy.name(),
            notices,
            ..ReplayReport::default()
        };
        let engine = session_config(options, &card, recorded.lifetime());
        let notes = options.notes.filter(|_| options.policy != ReplayPolicy::None);
        Ok(ReplayRun {
            recorded,
            options,
            session: Session::create(log, lens(&card, options.policy), IdSource::seeded(0))?,
            keeper: notes.map(|taking| ReplayNoteKeeper::new(taking, &engine)),
            engine,
            provider: ReplayProvider::new(cards.clone()),
            cards,
            card,
            report,
            shared: None,
            progress: ReplayProgress::default(),
            pending: PendingResponses::default(),
            clock: TurnClock::default(),
        })
    }

    /// Does something of which the engine's time is taken.
    pub(crate) fn timed<T>(&mut self, work: impl FnOnce(&mut ReplayRun<'a>) -> T) -> T {
        let start = Instant::now();
        let done = work(self);
        self.clock.turn += start.elapsed();
        done
    }

    pub(crate) fn append(
        &mut self,
        draft: EntryDraft,
        id: EntryId,
        at: Timestamp,
    ) -> Result<(), ReplayError> {
        self.timed(|run| run.session.append(draft.with_id(id), at))?;
        Ok(())
    }

    /// Stores a cache-read drop for the entry of the response, and reports it unless it was announced.
    pub(crate) fn note_break(&mut self, called: &RecordedCall, found: Option<CacheBreak>) {
        let Some(found) = found else { return };
        self.report.breaks.extend(ReplayBreak::of(self.progress.call, &found));
        if let Some(response) = &called.response {
            self.pending.fallen.insert(response.clone(), found);
        }
    }

    /// Other sessions of the same client keep what they share in the cache: where the recording read although nothing
    /// of its own could be left, another session has just asked.
    pub(crate) fn warm(&mut self, called: &RecordedCall) {
        let is_cold = self.progress.previous.is_none_or(|previous| {
            called.started.milliseconds() - previous.milliseconds() >= called.lifetime.milliseconds() as i64
        });
        let has_read = called.usage.as_ref().is_some_and(|usage| usage.cache_read_input_tokens > 0);
        let Some(prefix) = self.shared.as_ref().filter(|_| is_cold && has_read) else { return };
        let Some(view) = unseen_prefix::prefix_view(prefix, self.session.view().lens()) else { return };
        let options = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: true };
        let request = mark_as_client(view.render(options), &self.card, 0, called.lifetime);
        let betas = self.engine.cache.betas.clone();
        let call = self.provider.call(&request, &betas, &self.card);
        self.provider.ask(called.started, &call, &call.body.to_joined_string(), Some(ModelOutput::default()));
    }

    pub(crate) fn since_previous(&mut self, started: Timestamp) -> Option<Duration> {
        self.progress.previous.replace(started).map(|previous| {
            Duration::from_millis((started.milliseconds() - previous.milliseconds()).max(0) as u64)
        })
    }

    pub(crate) fn refuse(&mut self, status: u16, message: String) {
        self.report.rejected += 1;
        if self.report.rejections.len() < REJECTIONS_MAX {
            let request = self.progress.call;
            self.report.rejections.push(Rejection { request, status, message });
        }
    }

    /// Takes an answer into the report.
    pub(crate) fn count(&mut self, called: &RecordedCall, request: &RequestRecord, replied: ReplayResponse) {
        if let Some(usage) = &called.usage {
            let card = self.cards.find(&request.model).card;
            self.report.recorded.add(usage, card.cost(usage));
        }
        let Some(exchange) = replied.exchange else {
            return self.refuse(replied.status, replied.refusal.unwrap_or_default());
        };
        let usage = &exchange.usage;
        self.report.measured.add(usage, exchange.cost);
        self.progress.was_cut = false;
        self.progress.context_tokens = usage.context_tokens();
        if let Some(compaction) = self.report.compactions.last_mut() {
            compaction.after.get_or_insert(usage.prompt_tokens());
        }
        if let Some(response) = &called.response {
            self.pending.answered.insert(response.clone(), exchange);
        }
    }
}
