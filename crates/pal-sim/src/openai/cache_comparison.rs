//! Cache miss diagnostics: comparison of a request with an earlier response.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::openai_cache::{OpenAiCacheLookup, RenderedRequest};
use super::openai_request::{BlockPlacement, CacheParameters, OpenAiRequest};

/// Maximum number of remembered responses.
const REMEMBERED_MAX: usize = 64;

/// Requests of recent responses.
#[derive(Default)]
pub(crate) struct RememberedResponses {
    latest: VecDeque<RememberedResponse>,
}

/// Request data of one response.
struct RememberedResponse {
    id: String,
    model: String,
    key: String,
    tools: Vec<String>,
    parameters: CacheParameters,
    /// Prefix hashes of its prompt with their tokens.
    spots: Vec<(u128, u64)>,
}

impl RememberedResponses {
    /// Remembers the request of a response.
    pub(crate) fn push(&mut self, id: &str, turn: &OpenAiRequest, rendered: &RenderedRequest) {
        if self.latest.len() >= REMEMBERED_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(RememberedResponse {
            id: id.to_owned(),
            model: turn.model.clone(),
            key: turn.caching.key.clone(),
            tools: tools(turn),
            parameters: turn.parameters.clone(),
            spots: rendered.spots.iter().map(|spot| (spot.chain, spot.tokens)).collect(),
        });
    }

    /// Compares a request with that of an earlier response; returns the diagnostics object.
    pub(crate) fn compare(
        &self,
        id: &str,
        turn: &OpenAiRequest,
        rendered: &RenderedRequest,
        served: &OpenAiCacheLookup,
    ) -> Value {
        let Some(old) = self.latest.iter().find(|old| old.id == id) else {
            return json!({"type": "comparison_response_not_found"});
        };
        let (new, was) = (&turn.parameters, &old.parameters);
        let changed = [
            (old.model != turn.model, "model_changed"),
            (old.key != turn.caching.key, "prompt_cache_key_changed"),
            (old.tools != tools(turn), "tools_changed"),
            (was.format != new.format, "text_format_changed"),
            (was.effort != new.effort, "reasoning_effort_changed"),
            (was.verbosity != new.verbosity, "verbosity_changed"),
            (was.tier != new.tier, "service_tier_changed"),
        ];
        let reason = changed.into_iter().find(|(is_changed, _)| *is_changed).map(|(_, reason)| reason);
        let common =
            old.spots.iter().zip(&rendered.spots).take_while(|((chain, _), spot)| *chain == spot.chain);
        let common = common.collect::<Vec<_>>();
        let reusable = common.last().map_or(0, |(_, spot)| spot.tokens);
        let reason = match reason {
            Some(reason) => reason,
            None if common.len() < old.spots.len() => "input_changed",
            None if served.read > 0 => return json!({"type": "cache_hit"}),
            // Nothing changed and nothing was read: the prompt was too small, or the entry has expired.
            None => return json!({"type": "unavailable"}),
        };
        json!({
            "type": "cache_miss",
            "reason": reason,
            "cache_missed_tokens": rendered.tokens.saturating_sub(reusable),
            "comparison_reusable_tokens": reusable,
        })
    }
}

fn tools(turn: &OpenAiRequest) -> Vec<String> {
    turn.pieces
        .iter()
        .filter(|piece| piece.place == BlockPlacement::Tool)
        .map(|piece| piece.raw.clone())
        .collect()
}
