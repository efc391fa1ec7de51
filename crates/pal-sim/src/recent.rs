//! Why the cache was missed: what recent requests consisted of, and where a new one first differs.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use pal_model::TokenGeneration;

use crate::Difference;
use crate::prompt::{Layer, Levels, Prompt};

/// Requests that are remembered.
const MOST_REQUESTS: usize = 512;
/// Blocks of all remembered requests together.
const MOST_BLOCKS: usize = 1 << 20;

/// What recent requests consisted of, by the id of their response and who asked.
#[derive(Default)]
pub(crate) struct Recent {
    prints: FxHashMap<(u64, String), Print>,
    order: VecDeque<(u64, String)>,
    n_blocks: usize,
}

/// What a request consisted of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Print {
    model: u128,
    parameters: u128,
    levels: Levels,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    layer: Layer,
    /// The message that it stands in, and its place there; its place in the layer outside of messages.
    message: u32,
    index: u32,
    identity: u64,
    tokens: u32,
}

impl Print {
    /// Of a prompt as it is rendered. `model` is a hash of the model and the speed, `parameters` one of what else
    /// makes requests incomparable. A message that lasts for one turn is left out: no mark can stand on it or behind
    /// it, so nothing is missed when it goes.
    pub(crate) fn of(
        prompt: &Prompt<'_>,
        model: u128,
        parameters: u128,
        generation: TokenGeneration,
    ) -> Print {
        let block = |piece: &crate::prompt::Piece<'_>| Block {
            layer: piece.layer,
            message: u32::try_from(piece.message).unwrap_or(u32::MAX),
            index: u32::try_from(piece.index).unwrap_or(u32::MAX),
            identity: piece.facts.cache as u64,
            tokens: u32::try_from(piece.facts.tokens(generation)).unwrap_or(u32::MAX),
        };
        let lasting = prompt.rendered().filter(|piece| !piece.is_turn_scoped);
        Print { model, parameters, levels: prompt.levels, blocks: lasting.map(block).collect() }
    }

    fn layer(&self, layer: Layer) -> impl Iterator<Item = u64> {
        self.blocks.iter().filter(move |block| block.layer == layer).map(|block| block.identity)
    }

    /// Tokens of this request behind what it has in common with a later one.
    fn missed(&self, later: &Print) -> u64 {
        let same = self.blocks.iter().zip(&later.blocks);
        let n_same =
            same.take_while(|(one, other)| one.layer == other.layer && one.identity == other.identity);
        self.blocks.iter().skip(n_same.count()).map(|block| u64::from(block.tokens)).sum()
    }

    /// Tokens of this request from a layer on.
    fn tokens_from(&self, layer: Layer) -> u64 {
        let blocks = self.blocks.iter().filter(|block| block.layer >= layer);
        blocks.map(|block| u64::from(block.tokens)).sum()
    }

    /// The reason why a later request could not read what this one wrote; none if it could.
    fn reason(&self, later: &Print) -> Option<Value> {
        let differs = |layer| !self.layer(layer).eq(later.layer(layer));
        let with_tokens =
            |kind: &str, tokens: u64| Some(json!({"type": kind, "cache_missed_input_tokens": tokens}));
        if self.model != later.model {
            return with_tokens("model_changed", self.tokens_from(Layer::Tools));
        }
        if differs(Layer::Tools) {
            return with_tokens("tools_changed", self.missed(later));
        }
        if self.levels.system != later.levels.system {
            return with_tokens("system_changed", self.tokens_from(Layer::System));
        }
        if differs(Layer::System) {
            return with_tokens("system_changed", self.missed(later));
        }
        if self.parameters != later.parameters {
            return Some(json!({"type": "unavailable"}));
        }
        let mut messages = later.layer(Layer::Messages);
        let is_prefix = self.layer(Layer::Messages).all(|identity| messages.next() == Some(identity));
        if is_prefix { None } else { with_tokens("messages_changed", self.missed(later)) }
    }
}

impl Print {
    /// Where a later request first differs from this one; none if it begins with it.
    fn first_difference(&self, later: &Print) -> Option<Difference> {
        if self.model != later.model {
            return Some(Difference::Model);
        }
        let blocks = |print: &'_ Print, layer| -> Vec<Block> {
            print.blocks.iter().filter(|block| block.layer == layer).copied().collect()
        };
        for layer in [Layer::Tools, Layer::System, Layer::Messages] {
            let (old, new) = (blocks(self, layer), blocks(later, layer));
            let same = old.iter().zip(&new).take_while(|(one, other)| one.identity == other.identity).count();
            // Messages may go on; tools and system may not.
            let goes_on = same == old.len() && (layer == Layer::Messages || new.len() == old.len());
            if goes_on && !(layer == Layer::System && self.levels.system != later.levels.system) {
                continue;
            }
            let place = old.get(same).or(new.get(same)).map_or((0, 0), |block| (block.message, block.index));
            return Some(match layer {
                Layer::Tools => Difference::Tools { tool: same as u32 },
                Layer::System => Difference::System { block: same as u32 },
                Layer::Messages => Difference::Messages { message: place.0, block: place.1 },
            });
        }
        (self.parameters != later.parameters).then_some(Difference::Parameters)
    }
}

impl Recent {
    /// Where a request first differs from the one that it names.
    pub(crate) fn differs(&self, scope: u64, previous: &str, print: &Print) -> Option<Difference> {
        self.prints.get(&(scope, previous.to_owned()))?.first_difference(print)
    }

    /// The `diagnostics` of a response, for a request that names the one before it.
    pub(crate) fn diagnose(&self, scope: u64, previous: &str, print: &Print) -> Value {
        let reason = match self.prints.get(&(scope, previous.to_owned())) {
            None => Some(json!({"type": "previous_message_not_found"})),
            Some(earlier) => earlier.reason(print),
        };
        reason.map_or(Value::Null, |reason| json!({"cache_miss_reason": reason}))
    }

    /// Remembers a request by its response.
    pub(crate) fn remember(&mut self, scope: u64, response: &str, print: Print) {
        self.n_blocks += print.blocks.len();
        let key = (scope, response.to_owned());
        self.order.push_back(key.clone());
        self.prints.insert(key, print);
        while self.order.len() > 1 && (self.order.len() > MOST_REQUESTS || self.n_blocks > MOST_BLOCKS) {
            let oldest = self.order.pop_front().and_then(|key| self.prints.remove(&key));
            self.n_blocks -= oldest.map_or(0, |print| print.blocks.len());
        }
    }
}
