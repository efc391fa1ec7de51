//! The size of the context (§2.1): what the last response reported, plus an estimate of what came after it.

use pal_model::{Body, DecisionKind, Entry, ResponseId, Usage};

use crate::clean::Part;
use crate::estimate::{Estimator, Factor};
use crate::ledger::Category;
use crate::lens::Lens;
use crate::node::{Node, Speaker};
use crate::state::file_read;
use crate::view::View;
use rustc_hash::{FxHashMap, FxHashSet};

/// How large the context is, and how that is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Size {
    /// Tokens in all.
    pub tokens: u64,
    /// The response whose usage the size rests on; none if everything is estimated.
    pub anchor: Option<Anchor>,
    /// Estimated tokens beyond the anchor; everything if there is none.
    pub estimated: f64,
    /// Tokens that decisions since the anchor have freed.
    pub freed: u64,
}

/// A response whose usage is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Anchor {
    /// Which response.
    pub response: ResponseId,
    /// Its prompt and output tokens.
    pub tokens: u64,
    /// Its usage.
    pub usage: Usage,
    /// Where its first record stands in the branch; its `response` entry if it has none.
    first_record: u32,
    /// Where its `response` entry stands.
    position: u32,
}

/// What fills the context, by category, and what of it is waste.
#[derive(Clone, PartialEq, Debug)]
pub struct Ledger {
    /// Estimated tokens by category, prefix included.
    pub by_category: Vec<(Category, f64)>,
    /// Estimated tokens of reads of a file that an earlier read already showed.
    pub wasted_on_rereads: f64,
}

impl View {
    /// The estimator with the factor that the session has frozen for the model's generation.
    pub fn estimator(&self) -> Estimator {
        let Lens { card, estimator, .. } = self.lens();
        match self.state().factors.get(card.generation.name()) {
            Some(factor) => estimator.corrected(Factor::from(*factor)),
            None => *estimator,
        }
    }

    /// The size of the context if a request left now.
    pub fn size(&self) -> Size {
        let estimator = self.estimator();
        let total = |raw| estimator.total(raw);
        // What a decision freed may be what the provider had left out of its report already: then nothing is known but
        // what we show.
        let anchor = self.anchor().map(|anchor| (self.freed_since(&anchor), anchor));
        match anchor.filter(|(freed, _)| *freed == 0 || !self.derived().provider_clears) {
            None => {
                let estimated = self.estimate();
                let unseen = self.derived().head.unseen_tokens;
                let tokens = total(estimated - unseen as f64) + unseen;
                Size { tokens, anchor: None, estimated, freed: 0 }
            }
            Some((freed, anchor)) => {
                let estimated = self.estimate_after(&anchor);
                let tokens = (anchor.tokens + total(estimated)).saturating_sub(freed);
                Size { tokens, anchor: Some(anchor), estimated, freed }
            }
        }
    }

    /// The whole context, prefix included, estimated as if no usage were known.
    pub fn estimate(&self) -> f64 {
        let rope = self.derived().rope_now(self.lens());
        self.derived().head.sums.total() + rope.extent().sums.total()
    }

    /// What fills the context.
    pub fn ledger(&self) -> Ledger {
        let scale = self.estimator().scale();
        Ledger { by_category: self.by_category(), wasted_on_rereads: scale * self.wasted_on_rereads() }
    }

    /// Estimated tokens by category, prefix included. Costs the open turn, not the session.
    pub fn by_category(&self) -> Vec<(Category, f64)> {
        let rope = self.derived().rope_now(self.lens());
        let (head, messages) = (&self.derived().head.sums, &rope.extent().sums);
        let scale = self.estimator().scale();
        let by_category = Category::ALL.map(|category| {
            // What was reported is no estimate and is not corrected.
            let scale = if category == Category::UnseenPrefix { 1.0 } else { scale };
            (category, scale * (head[category] + messages[category]))
        });
        by_category.to_vec()
    }

    /// Estimated tokens of what stands before the messages, the part included that the log does not hold.
    pub fn tokens_before_messages(&self) -> f64 {
        let head = &self.derived().head;
        let unseen = head.unseen_tokens as f64;
        self.estimator().scale() * (head.sums.total() - unseen) + unseen
    }

    /// Estimated tokens of what every request begins with, whatever is compacted: what stands before the messages, and the
    /// context that opens them.
    pub fn tokens_that_stay(&self) -> f64 {
        self.tokens_before_messages() + self.estimator().scale() * self.derived().opening().1
    }

    /// The newest response of the conversation behind the boundary whose usage is known.
    fn anchor(&self) -> Option<Anchor> {
        let position = self.derived().anchor? as usize;
        let Body::Response(response) = &self.branch()[position].body else { return None };
        let from = self.derived().boundary.map_or(0, |boundary| boundary as usize + 1);
        // The records of a response stand close before its `response` entry, after the request.
        let first_record = self.branch()[from..position]
            .iter()
            .enumerate()
            .rev()
            .take_while(|(_, entry)| !is_request(entry))
            .filter(|(_, entry)| is_record_of(entry, &response.response))
            .last()
            .map_or(position, |(at, _)| from + at);
        Some(Anchor {
            response: response.response.clone(),
            tokens: response.usage.context_tokens(),
            usage: response.usage.clone(),
            first_record: first_record as u32,
            position: position as u32,
        })
    }

    /// An estimate of what follows the anchor's first record, less the response's own blocks.
    fn estimate_after(&self, anchor: &Anchor) -> f64 {
        let derived = self.derived();
        let is_own =
            |node: &&Node| matches!(&node.speaker, Speaker::Model(Some(id)) if *id == anchor.response);
        let cleaner = self.cleaner();
        self.nodes_behind(anchor.first_record)
            .filter(|node| !is_own(node))
            .flat_map(|node| derived.effects().apply(node, cleaner))
            .fold(0.0, |sum, clean| sum + clean.tokens)
    }

    fn nodes_behind(&self, position: u32) -> Box<dyn Iterator<Item = &Node> + '_> {
        // A response without records has no item of its own: everything appended after it counts.
        let derived = self.derived();
        if derived.has_item(position) {
            Box::new(derived.nodes_after(position))
        } else {
            Box::new(derived.newest_nodes(position))
        }
    }

    /// What decisions made after the anchor freed of the context that it measured. A spill is not among them: it
    /// is made before its result is first sent.
    fn freed_since(&self, anchor: &Anchor) -> u64 {
        let mut freed = 0u64;
        for (at, entry) in self.branch().iter().enumerate().skip(anchor.position as usize) {
            let Body::Decision(decision) = &entry.body else { continue };
            let first = self.derived().first_changed(entry, at as u32, self.positions());
            if first.is_some_and(|first| first < anchor.first_record)
                && !matches!(decision.kind, DecisionKind::Spill { .. })
            {
                freed = freed.saturating_add(decision.cost.tokens_freed);
            }
        }
        freed
    }

    /// Tokens of results that show a file which an earlier result of the view already showed.
    fn wasted_on_rereads(&self) -> f64 {
        let mut reads: FxHashMap<pal_model::ToolUseId, String> = FxHashMap::default();
        for entry in self.branch() {
            if let Body::Assistant(assistant) = &entry.body {
                for block in assistant.content.blocks() {
                    if let (Some((path, _)), Some(id)) = (file_read(block), block.tool_use_id()) {
                        reads.insert(id.clone(), path);
                    }
                }
            }
        }
        let mut shown: FxHashSet<&str> = FxHashSet::default();
        let mut wasted = 0.0;
        for clean in self.derived().nodes().flat_map(|node| &node.clean) {
            if let Part::Result(id) = &clean.part
                && let Some(path) = reads.get(id)
                && !shown.insert(path)
            {
                wasted += clean.tokens;
            }
        }
        wasted
    }
}

fn is_request(entry: &Entry) -> bool {
    matches!(&entry.body, Body::Request(request) if request.source.is_conversation())
}

fn is_record_of(entry: &Entry, response: &ResponseId) -> bool {
    matches!(&entry.body, Body::Assistant(assistant) if assistant.response.as_ref() == Some(response))
}
