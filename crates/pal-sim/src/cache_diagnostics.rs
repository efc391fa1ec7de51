//! Cache diagnostics: fingerprints of recent prompts, and where a new one first differs.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use pal_model::TokenGeneration;

use crate::PromptDifference;
use crate::parsed_prompt::{LayerHashes, ParsedPrompt, PromptLayer};

/// Maximum number of remembered requests.
const REQUESTS_MAX: usize = 512;
/// Maximum number of blocks over all remembered requests.
const BLOCKS_MAX: usize = 1 << 20;

/// Recent prompt fingerprints by client and response id.
#[derive(Default)]
pub(crate) struct RecentPrompts {
    prints: FxHashMap<(u64, String), PromptFingerprint>,
    order: VecDeque<(u64, String)>,
    n_blocks: usize,
}

/// Hashes of a prompt's model, parameters and blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptFingerprint {
    model: u128,
    parameters: u128,
    levels: LayerHashes,
    blocks: Vec<FingerprintBlock>,
}

#[derive(Clone, Copy, Debug)]
struct FingerprintBlock {
    layer: PromptLayer,
    /// Message number; outside messages, index in the layer.
    message: u32,
    index: u32,
    identity: u64,
    tokens: u32,
}

impl PromptFingerprint {
    /// Fingerprint of a rendered prompt. `model` hashes model and speed, `parameters` everything else that
    /// makes requests incomparable. Turn-scoped messages are left out: no breakpoint can be on or after them,
    /// so removing them misses nothing.
    pub(crate) fn of(
        prompt: &ParsedPrompt<'_>,
        model: u128,
        parameters: u128,
        generation: TokenGeneration,
    ) -> PromptFingerprint {
        let block = |piece: &crate::parsed_prompt::PromptBlock<'_>| FingerprintBlock {
            layer: piece.layer,
            message: u32::try_from(piece.message).unwrap_or(u32::MAX),
            index: u32::try_from(piece.index).unwrap_or(u32::MAX),
            identity: piece.facts.cache as u64,
            tokens: u32::try_from(piece.facts.tokens(generation)).unwrap_or(u32::MAX),
        };
        let lasting = prompt.rendered_blocks().filter(|piece| !piece.is_turn_scoped);
        PromptFingerprint { model, parameters, levels: prompt.levels, blocks: lasting.map(block).collect() }
    }

    fn layer(&self, layer: PromptLayer) -> impl Iterator<Item = u64> {
        self.blocks.iter().filter(move |block| block.layer == layer).map(|block| block.identity)
    }

    /// Tokens of this request after the prefix it shares with a later one.
    fn missed_tokens(&self, later: &PromptFingerprint) -> u64 {
        let same = self.blocks.iter().zip(&later.blocks);
        let n_same =
            same.take_while(|(one, other)| one.layer == other.layer && one.identity == other.identity);
        self.blocks.iter().skip(n_same.count()).map(|block| u64::from(block.tokens)).sum()
    }

    /// Tokens of this request from a layer onwards.
    fn tokens_from(&self, layer: PromptLayer) -> u64 {
        let blocks = self.blocks.iter().filter(|block| block.layer >= layer);
        blocks.map(|block| u64::from(block.tokens)).sum()
    }

    /// Reason why a later request could not read what this one wrote; `None` if it could.
    fn reason(&self, later: &PromptFingerprint) -> Option<Value> {
        let differs = |layer| !self.layer(layer).eq(later.layer(layer));
        let with_tokens =
            |kind: &str, tokens: u64| Some(json!({"type": kind, "cache_missed_input_tokens": tokens}));
        if self.model != later.model {
            return with_tokens("model_changed", self.tokens_from(PromptLayer::Tools));
        }
        if differs(PromptLayer::Tools) {
            return with_tokens("tools_changed", self.missed_tokens(later));
        }
        if self.levels.system != later.levels.system {
            return with_tokens("system_changed", self.tokens_from(PromptLayer::System));
        }
        if differs(PromptLayer::System) {
            return with_tokens("system_changed", self.missed_tokens(later));
        }
        if self.parameters != later.parameters {
            return Some(json!({"type": "unavailable"}));
        }
        let mut messages = later.layer(PromptLayer::Messages);
        let is_prefix = self.layer(PromptLayer::Messages).all(|identity| messages.next() == Some(identity));
        if is_prefix { None } else { with_tokens("messages_changed", self.missed_tokens(later)) }
    }
}

impl PromptFingerprint {
    /// First difference of a later request; `None` if it extends this one.
    fn first_difference(&self, later: &PromptFingerprint) -> Option<PromptDifference> {
        if self.model != later.model {
            return Some(PromptDifference::Model);
        }
        let blocks = |print: &'_ PromptFingerprint, layer| -> Vec<FingerprintBlock> {
            print.blocks.iter().filter(|block| block.layer == layer).copied().collect()
        };
        for layer in [PromptLayer::Tools, PromptLayer::System, PromptLayer::Messages] {
            let (old, new) = (blocks(self, layer), blocks(later, layer));
            let same = old.iter().zip(&new).take_while(|(one, other)| one.identity == other.identity).count();
            // Messages may be appended; tools and system blocks may not.
            let goes_on = same == old.len() && (layer == PromptLayer::Messages || new.len() == old.len());
            if goes_on && !(layer == PromptLayer::System && self.levels.system != later.levels.system) {
                continue;
            }
            let place = old.get(same).or(new.get(same)).map_or((0, 0), |block| (block.message, block.index));
            return Some(match layer {
                PromptLayer::Tools => PromptDifference::Tools { tool: same as u32 },
                PromptLayer::System => PromptDifference::System { block: same as u32 },
                PromptLayer::Messages => PromptDifference::Messages { message: place.0, block: place.1 },
            });
        }
        (self.parameters != later.parameters).then_some(PromptDifference::Parameters)
    }
}

impl RecentPrompts {
    /// First difference from the request with this response id.
    pub(crate) fn first_difference_from(
        &self,
        scope: u64,
        previous: &str,
        print: &PromptFingerprint,
    ) -> Option<PromptDifference> {
        self.prints.get(&(scope, previous.to_owned()))?.first_difference(print)
    }

    /// `diagnostics` for a request that names its predecessor.
    pub(crate) fn diagnose(&self, scope: u64, previous: &str, print: &PromptFingerprint) -> Value {
        let reason = match self.prints.get(&(scope, previous.to_owned())) {
            None => Some(json!({"type": "previous_message_not_found"})),
            Some(earlier) => earlier.reason(print),
        };
        reason.map_or(Value::Null, |reason| json!({"cache_miss_reason": reason}))
    }

    /// Remembers a prompt under its response id.
    pub(crate) fn remember(&mut self, scope: u64, response: &str, print: PromptFingerprint) {
        self.n_blocks += print.blocks.len();
        let key = (scope, response.to_owned());
        self.order.push_back(key.clone());
        self.prints.insert(key, print);
        while self.order.len() > 1 && (self.order.len() > REQUESTS_MAX || self.n_blocks > BLOCKS_MAX) {
            let oldest = self.order.pop_front().and_then(|key| self.prints.remove(&key));
            self.n_blocks -= oldest.map_or(0, |print| print.blocks.len());
        }
    }
}
