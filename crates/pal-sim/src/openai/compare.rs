//! Why a prompt was not found in the cache, by comparison with an earlier response.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::cache::{Rendered, Served};
use super::turn::{Parameters, Place, Turn};

/// Responses that are remembered.
const REMEMBERED_MOST: usize = 64;

/// What is known of earlier responses.
#[derive(Default)]
pub(crate) struct Responses {
    latest: VecDeque<Remembered>,
}

/// A response.
struct Remembered {
    id: String,
    model: String,
    key: String,
    tools: Vec<String>,
    parameters: Parameters,
    /// The places of its prompt: hashes and tokens.
    spots: Vec<(u128, u64)>,
}

impl Responses {
    /// Remembers a response.
    pub(crate) fn push(&mut self, id: &str, turn: &Turn, rendered: &Rendered) {
        if self.latest.len() >= REMEMBERED_MOST {
            self.latest.pop_front();
        }
        self.latest.push_back(Remembered {
            id: id.to_owned(),
            model: turn.model.clone(),
            key: turn.wish.key.clone(),
            tools: tools(turn),
            parameters: turn.parameters.clone(),
            spots: rendered.spots.iter().map(|spot| (spot.chain, spot.tokens)).collect(),
        });
    }

    /// What is to be said about a prompt compared with that of a response.
    pub(crate) fn compare(&self, id: &str, turn: &Turn, rendered: &Rendered, served: &Served) -> Value {
        let Some(old) = self.latest.iter().find(|old| old.id == id) else {
            return json!({"type": "comparison_response_not_found"});
        };
        let (new, was) = (&turn.parameters, &old.parameters);
        let changed = [
            (old.model != turn.model, "model_changed"),
            (old.key != turn.wish.key, "prompt_cache_key_changed"),
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
            // Nothing changed, and nothing was there: it was too small, or it has expired.
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

fn tools(turn: &Turn) -> Vec<String> {
    turn.pieces.iter().filter(|piece| piece.place == Place::Tool).map(|piece| piece.raw.clone()).collect()
}
