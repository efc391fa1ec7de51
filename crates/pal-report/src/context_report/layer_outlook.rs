//! Forecast of the layers: what would leave the context next, when, and how many tokens that frees.

use std::time::Duration;

use pal_context::{ForecastCondition, LayerForecast};
use pal_engine::SessionConfig;
use pal_model::text::{count_noun, group_digits};
use pal_model::{EntryDraft, MessageOrigin, Timestamp, ToolUseId};
use pal_view::View;
use serde_json::{Value, json};

use crate::text_layout::clip_line;
use crate::units::format_duration;

/// Maximum number of results that are named.
const NAMED_RESULTS_MAX: usize = 4;
/// Maximum columns of a name.
const NAME_COLUMNS_MAX: usize = 40;

/// Forecast of what the layers would remove from the context next.
pub struct LayerOutlook {
    forecasts: Vec<LayerForecast>,
    /// Calls whose results would leave, with a short description of each.
    calls: Vec<(ToolUseId, String)>,
    /// Time since the last request.
    idle: Option<Duration>,
    tokens: u64,
    /// Layers that are switched off.
    off: Vec<&'static str>,
}

impl LayerOutlook {
    /// Asks the layers as of the next user message. `describe_input` turns the input of a tool call into a short description.
    pub fn new(
        view: &View,
        engine: &SessionConfig,
        now: Timestamp,
        describe_input: impl Fn(&str) -> String,
    ) -> LayerOutlook {
        // Sent content may change only where a user turn opens, so the layers are asked as in the next turn.
        let opened = after_user_message(view, now);
        let mut foreseen = engine.forecast(opened.as_ref().unwrap_or(view), now);
        foreseen.sort_by_key(|one| match one.condition {
            ForecastCondition::Idle(_) => (0, 0),
            ForecastCondition::Results(count) => (1, count as u64),
            ForecastCondition::Tokens(tokens) => (2, tokens),
        });
        let ids = foreseen.iter().flat_map(|one| &one.results);
        let calls =
            ids.filter_map(|id| Some((id.clone(), describe_call(view, id, &describe_input)?))).collect();
        let since = |last: Timestamp| now.milliseconds().saturating_sub(last.milliseconds());
        let idle =
            view.last_request_at().map(|last| Duration::from_millis(since(last).max(0).unsigned_abs()));
        let off = [("snip", engine.policy.snip), ("fold", engine.policy.fold)];
        LayerOutlook {
            forecasts: foreseen,
            calls,
            idle,
            tokens: view.size().tokens,
            off: off.into_iter().filter(|(_, is_on)| !is_on).map(|(name, _)| name).collect(),
        }
    }

    /// Returns one sentence for each forecast.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.forecasts.iter().map(|one| self.sentence(one)).collect();
        if !self.off.is_empty() {
            sentences.push(format!("switched off: {}", self.off.join(", ")));
        }
        sentences
    }

    fn sentence(&self, one: &LayerForecast) -> String {
        let when = self.when(one.condition);
        if one.results.is_empty() {
            return format!("{when}: {}: {}", one.layer, one.reason);
        }
        let count = count_noun(one.results.len(), "result");
        let names = one.results.iter().filter_map(|id| self.calls.iter().find(|(known, _)| known == id));
        let mut names: Vec<&str> = names.map(|(_, name)| name.as_str()).take(NAMED_RESULTS_MAX).collect();
        let more = format!("{} more", one.results.len().saturating_sub(names.len()));
        if one.results.len() > names.len() {
            names.push(&more);
        }
        let tokens = group_digits(one.tokens);
        format!("{when}: {}: {count}, about {tokens} tokens ({})", one.layer, names.join("; "))
    }

    fn when(&self, when: ForecastCondition) -> String {
        let spelled = |time: Duration| format_duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match when {
            ForecastCondition::Idle(pause) => match self.idle.map(|idle| pause.saturating_sub(idle)) {
                Some(Duration::ZERO) => String::from("with the next request"),
                // Seconds do not matter for long pauses.
                Some(left) if left >= Duration::from_secs(120) => {
                    format!("in {} without a request", spelled(Duration::from_secs(left.as_secs() / 60 * 60)))
                }
                Some(left) => format!("in {} without a request", spelled(left)),
                None => format!("after {} without a request", spelled(pause)),
            },
            ForecastCondition::Tokens(tokens) => match tokens.saturating_sub(self.tokens) {
                0 => format!("with the next request (past {} tokens)", group_digits(tokens)),
                left => format!("at {} tokens, in {}", group_digits(tokens), group_digits(left)),
            },
            ForecastCondition::Results(count) => format!("at {} in the cache", count_noun(count, "result")),
        }
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let one = |one: &LayerForecast| {
            let (tokens, idle, results) = match one.condition {
                ForecastCondition::Tokens(tokens) => (Some(tokens), None, None),
                ForecastCondition::Idle(pause) => (None, Some(pause.as_secs()), None),
                ForecastCondition::Results(count) => (None, None, Some(count)),
            };
            let ids: Vec<&str> = one.results.iter().map(ToolUseId::as_str).collect();
            json!({"layer": one.layer, "at_tokens": tokens, "at_idle_s": idle, "at_results": results,
                "results": ids, "tokens_freed": one.tokens, "reason": one.reason})
        };
        self.forecasts.iter().map(one).collect()
    }
}

/// Returns the view after another user message; none for an empty view.
fn after_user_message(view: &View, now: Timestamp) -> Option<View> {
    let last = view.branch().last()?;
    let id = pal_model::IdSource::seeded(0).next_id(now);
    let entry = EntryDraft::user(MessageOrigin::Person, "\"\"").into_entry(id, Some(last.id), now).ok()?;
    let mut branch = view.branch().to_vec();
    branch.push(entry);
    Some(View::from_branch(view.lens().clone(), branch))
}

/// Returns the name of a call and a short description of its input.
fn describe_call(view: &View, id: &ToolUseId, describe_input: impl Fn(&str) -> String) -> Option<String> {
    let block = view.call_block(id)?;
    let about = describe_input(block.field("input").unwrap_or("{}"));
    let name = block.string("name").unwrap_or_default();
    Some(clip_line(format!("{name} {about}").trim_end(), NAME_COLUMNS_MAX))
}
