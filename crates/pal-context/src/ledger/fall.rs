//! Falls of the reads, judged from what a log holds: for sessions whose requests were not watched as they left.

use pal_model::{BreakCause, Caching, Card, Change, Source, Timestamp, Usage};
use pal_view::{FirstChanged, Moment};
use smol_str::SmolStr;

use crate::cache::reads_fell;

const MINUTE_MS: u64 = 60_000;
/// How a compaction is called among decisions.
pub(super) const BOUNDARY: &str = "boundary";
/// The source whose requests share the conversation's cache.
const COMPACT: &str = "compact";

/// Requests that find each other's prompts in the cache.
#[derive(Default)]
pub(super) struct Lane {
    /// The newest request of which it is known what it read.
    previous: Option<Previous>,
    /// When the newest request that was answered left.
    last_started: Option<Timestamp>,
    /// The messages of the newest request that carried the conversation.
    moment: Option<Moment>,
    /// For how long what was written last is kept, where responses say so.
    reported_ms: Option<u64>,
    /// What was announced since the previous request.
    expected: Option<SmolStr>,
    /// What changed before the messages since the previous request.
    prefix_changed: Option<&'static str>,
}

struct Previous {
    read: u64,
    model: SmolStr,
}

/// A request that was answered, as it is compared with those before.
pub(super) struct Asked<'a> {
    pub(super) source: &'a Source,
    pub(super) model: &'a SmolStr,
    pub(super) card: &'a Card,
    pub(super) started: Option<Timestamp>,
    /// Its messages; none for requests beside the conversation.
    pub(super) moment: Option<Moment>,
    /// What stands before the messages is not, or not all, in the transcript.
    pub(super) is_beginning_unseen: bool,
}

impl Lane {
    /// A decision changes what will be sent. A compaction counts more than what else was decided with it.
    pub(super) fn announce(&mut self, what: &str) {
        if what == BOUNDARY || self.expected.is_none() {
            self.expected = Some(SmolStr::new(what));
        }
    }

    /// What stands before the messages is another from here on.
    pub(super) fn change_prefix(&mut self, member: &'static str) {
        self.prefix_changed.get_or_insert(member);
    }

    /// Milliseconds from the newest request that was answered to one that left at this time.
    pub(super) fn idle_ms(&self, started: Option<Timestamp>) -> Option<u64> {
        let idle = started?.milliseconds().saturating_sub(self.last_started?.milliseconds());
        Some(u64::try_from(idle).unwrap_or(0))
    }

    /// By how many tokens the reads fell with a response, and why. The next one is compared with this one.
    pub(super) fn judge(&mut self, asked: Asked<'_>, usage: &Usage) -> Option<(u64, BreakCause)> {
        if !usage.has_prompt() {
            self.last_started = asked.started.or(self.last_started);
            return None;
        }
        let read = usage.cache_read_input_tokens;
        let fell = self.previous.as_ref().and_then(|previous| reads_fell(previous.read, read));
        let verdict = fell.map(|tokens| (tokens, self.cause(&asked)));
        self.previous = Some(Previous { read, model: asked.model.clone() });
        self.last_started = asked.started.or(self.last_started);
        self.moment = asked.moment.or(self.moment.take());
        self.reported_ms = lifetime_of(usage).or(self.reported_ms);
        self.expected = None;
        self.prefix_changed = None;
        verdict
    }

    /// The first that explains a fall: what we announced, what we changed, the time that passed, somebody else.
    fn cause(&self, asked: &Asked<'_>) -> BreakCause {
        if let Some(what) = &self.expected {
            return BreakCause::Expected { what: what.clone() };
        }
        if let Some(previous) = &self.previous
            && previous.model != *asked.model
        {
            return BreakCause::Model { from: previous.model.clone(), to: asked.model.clone() };
        }
        if let Some(name) = self.prefix_changed {
            return BreakCause::Member { name: name.into() };
        }
        if let Some((before, now)) = self.moment.as_ref().zip(asked.moment.as_ref())
            && let Some(changed) = before.first_changed(now)
        {
            let FirstChanged { message, block, is_gone, characters } = changed;
            let change = if is_gone { Change::Removed } else { Change::Changed };
            return BreakCause::Message { message, block, change, characters };
        }
        let lifetime_ms = self.reported_ms.unwrap_or_else(|| usual_lifetime(asked.card));
        if let Some(idle_ms) = self.idle_ms(asked.started)
            && idle_ms >= lifetime_ms
        {
            return BreakCause::Expired { idle_ms, lifetime_ms };
        }
        if asked.source.as_str() == COMPACT {
            // A summary may be asked for by a request of its own, which shares nothing.
            BreakCause::Expected { what: COMPACT.into() }
        } else if asked.is_beginning_unseen {
            BreakCause::Unseen
        } else {
            BreakCause::Provider
        }
    }
}

/// For how long the tokens are kept that a response wrote, if it says so.
fn lifetime_of(usage: &Usage) -> Option<u64> {
    let written = usage.cache_creation?;
    match (written.ephemeral_1h_input_tokens, written.ephemeral_5m_input_tokens) {
        (0, 0) => None,
        (0, _) => Some(5 * MINUTE_MS),
        _ => Some(60 * MINUTE_MS),
    }
}

/// For how long prompts are kept when nobody says otherwise.
fn usual_lifetime(card: &Card) -> u64 {
    match card.caching {
        Caching::Marks => 5 * MINUTE_MS,
        Caching::Automatic => 10 * MINUTE_MS,
        Caching::Breakpoints => 30 * MINUTE_MS,
    }
}

/// The name of a cause, as the log spells it.
pub fn cause_name(cause: &BreakCause) -> &'static str {
    match cause {
        BreakCause::Expected { .. } => "expected",
        BreakCause::Model { .. } => "model",
        BreakCause::Tool { .. } => "tool",
        BreakCause::Speed => "speed",
        BreakCause::Section { .. } => "section",
        BreakCause::Scopes => "scopes",
        BreakCause::Betas { .. } => "betas",
        BreakCause::Thinking => "thinking",
        BreakCause::Effort => "effort",
        BreakCause::ToolChoice => "tool_choice",
        BreakCause::Edits => "edits",
        BreakCause::Member { .. } => "member",
        BreakCause::Message { .. } => "message",
        BreakCause::Lifetimes => "lifetimes",
        BreakCause::LookBack { .. } => "look_back",
        BreakCause::Unmarked => "unmarked",
        BreakCause::Expired { .. } => "expired",
        BreakCause::Unseen => "unseen",
        BreakCause::Provider => "provider",
    }
}
