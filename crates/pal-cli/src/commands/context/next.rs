//! What would leave the context next, when, and what it would free: the layers are asked as they will be.

use std::time::Duration;

use pal_agent::telling;
use pal_context::{Foreseen, When};
use pal_engine::Engine;
use pal_model::{Draft, Origin, Timestamp, ToolUseId};
use pal_view::View;
use serde_json::{Value, json};

use crate::colour::clipped;
use crate::table::{counted, duration, thousands};

/// Results that are named.
const NAMED_MOST: usize = 4;
/// Columns of a name.
const NAME_MOST: usize = 40;

/// What would leave next.
pub(super) struct Next {
    foreseen: Vec<Foreseen>,
    /// Calls whose results would leave, by their ids: what each was about.
    calls: Vec<(ToolUseId, String)>,
    /// Since when no request has left.
    idle: Option<Duration>,
    tokens: u64,
    /// The layers that never act.
    off: Vec<&'static str>,
}

impl Next {
    /// What the layers of an engine would do with a session when its user has said something more.
    pub(super) fn of(view: &View, engine: &Engine, now: Timestamp) -> Next {
        // What was sent may be changed where a turn of the user opens: so they are asked as in the next one.
        let opened = prompted(view, now);
        let mut foreseen = engine.foresee(opened.as_ref().unwrap_or(view), now);
        foreseen.sort_by_key(|one| match one.when {
            When::Idle(_) => (0, 0),
            When::Results(count) => (1, count as u64),
            When::Tokens(tokens) => (2, tokens),
        });
        let ids = foreseen.iter().flat_map(|one| &one.results);
        let calls = ids.filter_map(|id| Some((id.clone(), named(view, id)?))).collect();
        let since = |last: Timestamp| now.milliseconds().saturating_sub(last.milliseconds());
        let idle =
            view.last_request_at().map(|last| Duration::from_millis(since(last).max(0).unsigned_abs()));
        let off = [("snip", engine.policy.snip), ("fold", engine.policy.fold)];
        Next {
            foreseen,
            calls,
            idle,
            tokens: view.size().tokens,
            off: off.into_iter().filter(|(_, is_on)| !is_on).map(|(name, _)| name).collect(),
        }
    }

    /// One sentence for each moment.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.foreseen.iter().map(|one| self.sentence(one)).collect();
        if !self.off.is_empty() {
            sentences.push(format!("switched off: {}", self.off.join(", ")));
        }
        sentences
    }

    fn sentence(&self, one: &Foreseen) -> String {
        let when = self.when(one.when);
        if one.results.is_empty() {
            return format!("{when}: {}: {}", one.layer, one.reason);
        }
        let count = counted(one.results.len(), "result");
        let names = one.results.iter().filter_map(|id| self.calls.iter().find(|(known, _)| known == id));
        let mut names: Vec<&str> = names.map(|(_, name)| name.as_str()).take(NAMED_MOST).collect();
        let more = format!("{} more", one.results.len().saturating_sub(names.len()));
        if one.results.len() > names.len() {
            names.push(&more);
        }
        let tokens = thousands(one.tokens);
        format!("{when}: {}: {count}, about {tokens} tokens ({})", one.layer, names.join("; "))
    }

    fn when(&self, when: When) -> String {
        let spelled = |time: Duration| duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match when {
            When::Idle(pause) => match self.idle.map(|idle| pause.saturating_sub(idle)) {
                Some(Duration::ZERO) => String::from("with the next request"),
                // Seconds would only be another number that nobody reads.
                Some(left) if left >= Duration::from_secs(120) => {
                    format!("in {} without a request", spelled(Duration::from_secs(left.as_secs() / 60 * 60)))
                }
                Some(left) => format!("in {} without a request", spelled(left)),
                None => format!("after {} without a request", spelled(pause)),
            },
            When::Tokens(tokens) => match tokens.saturating_sub(self.tokens) {
                0 => format!("with the next request (past {} tokens)", thousands(tokens)),
                left => format!("at {} tokens, in {}", thousands(tokens), thousands(left)),
            },
            When::Results(count) => format!("at {} in the cache", counted(count, "result")),
        }
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let one = |one: &Foreseen| {
            let (tokens, idle, results) = match one.when {
                When::Tokens(tokens) => (Some(tokens), None, None),
                When::Idle(pause) => (None, Some(pause.as_secs()), None),
                When::Results(count) => (None, None, Some(count)),
            };
            let ids: Vec<&str> = one.results.iter().map(ToolUseId::as_str).collect();
            json!({"layer": one.layer, "at_tokens": tokens, "at_idle_s": idle, "at_results": results,
                "results": ids, "tokens_freed": one.tokens, "reason": one.reason})
        };
        self.foreseen.iter().map(one).collect()
    }
}

/// The view when its user has said something more; none where that cannot be told.
fn prompted(view: &View, now: Timestamp) -> Option<View> {
    let last = view.branch().last()?;
    let id = pal_model::IdSource::seeded(0).next_id(now);
    let entry = Draft::user(Origin::Person, "\"\"").into_entry(id, Some(last.id), now).ok()?;
    let mut branch = view.branch().to_vec();
    branch.push(entry);
    Some(View::of(view.lens().clone(), branch))
}

/// What a call was about.
fn named(view: &View, id: &ToolUseId) -> Option<String> {
    let block = view.call(id)?;
    let about = telling(block.field("input").unwrap_or("{}"));
    let name = block.string("name").unwrap_or_default();
    Some(clipped(format!("{name} {about}").trim_end(), NAME_MOST))
}
