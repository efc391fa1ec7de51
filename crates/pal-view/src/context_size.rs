//! The size of the context (§2.1): the usage that the last response reported, plus an estimate of the content
//! after it.

use pal_model::{DecisionKind, EntryBody, LogEntry, ResponseId, Usage};

use crate::estimate::{CorrectionFactor, Estimator};
use crate::lens::Lens;
use crate::snapshot_update::file_read;
use crate::token_category::Category;
use crate::view::View;
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::WireBlockKind;
use rustc_hash::{FxHashMap, FxHashSet};

/// Size of the context in tokens, with the measurement it is based on.
#[derive(Clone, PartialEq, Debug)]
pub struct ContextSize {
    /// Total tokens.
    pub tokens: u64,
    /// Response whose reported usage the size is based on; `None` if everything is estimated.
    pub anchor: Option<UsageAnchor>,
    /// Estimated tokens beyond the anchor; everything if there is none.
    pub estimated: f64,
    /// Tokens that decisions since the anchor have freed.
    pub freed: u64,
}

/// A response whose usage is known.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageAnchor {
    /// Id of the response.
    pub response: ResponseId,
    /// Its prompt and output tokens.
    pub tokens: u64,
    /// Reported usage.
    pub usage: Usage,
    /// Position of its first record in the branch; of its `response` entry if it has none.
    first_record: u32,
    /// Position of its `response` entry.
    position: u32,
}

/// Estimated tokens of the context by category, and the wasted share.
#[derive(Clone, PartialEq, Debug)]
pub struct ContextBreakdown {
    /// Estimated tokens by category, prefix included.
    pub by_category: Vec<(Category, f64)>,
    /// Estimated tokens of reads of a file that an earlier read already showed.
    pub wasted_on_rereads: f64,
}

impl UsageAnchor {
    /// Returns true if the first record of the response stands at this position of the branch.
    pub fn begins_at(&self, position: usize) -> bool {
        self.first_record as usize == position
    }
}

impl View {
    /// Returns the estimator with the correction factor that the session has frozen for the model, or for its
    /// generation.
    pub fn estimator(&self) -> Estimator {
        let Lens { card, estimator, .. } = self.lens();
        let factors = &self.state().factors;
        match factors.get(&card.model).or_else(|| factors.get(card.generation.name())) {
            Some(factor) => estimator.corrected(CorrectionFactor::from(*factor)),
            None => *estimator,
        }
    }

    /// Factor by which the raw estimate of the measured content becomes the size that was reported of it; the factor in
    /// force if nothing comparable was measured since the boundary.
    pub fn measured_factor(&self) -> CorrectionFactor {
        /// Smaller estimates are mostly framing.
        const TOKENS_MIN: f64 = 1_000.0;
        let size = self.size();
        let unseen = self.derived().head.unseen_tokens;
        // The provider's report counts less than the view shows where it cleared content itself.
        if let Some(anchor) = size.anchor.filter(|_| !self.derived().requests.provider_clears) {
            let estimated = self.estimate() - size.estimated - unseen as f64;
            let reported = anchor.tokens.saturating_sub(size.freed + unseen);
            if estimated >= TOKENS_MIN {
                return CorrectionFactor::between(estimated, reported);
            }
        }
        let in_force = self.state().factors.get(self.lens().card.generation.name());
        in_force.map_or(CorrectionFactor::ONE, |factor| CorrectionFactor::from(*factor))
    }

    /// Returns the estimator with the factor that was measured on the current context; all of it counts alike then.
    pub fn measured_estimator(&self) -> Estimator {
        self.lens().estimator.corrected(self.measured_factor())
    }

    /// Size of the context if a request left now.
    pub fn size(&self) -> ContextSize {
        let estimator = self.estimator();
        let total = |raw| estimator.total(raw);
        // The freed content may already be missing from the provider's report. Then only the view itself is
        // known.
        let anchor = self.anchor().map(|anchor| (self.freed_since(&anchor), anchor));
        match anchor.filter(|(freed, _)| *freed == 0 || !self.derived().requests.provider_clears) {
            None => {
                let tokens = self.size_by(&estimator);
                ContextSize { tokens, anchor: None, estimated: self.estimate(), freed: 0 }
            }
            Some((freed, anchor)) => {
                let estimated = self.estimate_after(&anchor);
                let tokens = (anchor.tokens + total(estimated)).saturating_sub(freed);
                ContextSize { tokens, anchor: Some(anchor), estimated, freed }
            }
        }
    }

    /// Estimated size of the whole context by an estimator, as if no usage were known.
    pub fn size_by(&self, estimator: &Estimator) -> u64 {
        let unseen = self.derived().head.unseen_tokens;
        estimator.total(self.estimate() - unseen as f64) + unseen
    }

    /// Estimates the whole context, prefix included, as if no usage were known.
    pub fn estimate(&self) -> f64 {
        let rope = self.derived().current_rope(self.lens());
        self.derived().head.sums.total() + rope.extent().sums.total()
    }

    /// Breaks the context down by category.
    pub fn breakdown(&self) -> ContextBreakdown {
        let scale = self.estimator().scale();
        ContextBreakdown {
            by_category: self.by_category(),
            wasted_on_rereads: scale * self.wasted_on_rereads(),
        }
    }

    /// Estimated tokens by category, prefix included. Costs the open turn, not the session.
    pub fn by_category(&self) -> Vec<(Category, f64)> {
        let rope = self.derived().current_rope(self.lens());
        let (head, messages) = (&self.derived().head.sums, &rope.extent().sums);
        let scale = self.estimator().scale();
        let by_category = Category::ALL.map(|category| {
            // Reported tokens are no estimate and are not corrected.
            let scale = if category == Category::UnseenPrefix { 1.0 } else { scale };
            (category, scale * (head[category] + messages[category]))
        });
        by_category.to_vec()
    }

    /// Estimated tokens that every request begins with and no compaction removes: the prefix and the context
    /// that opens the messages.
    pub fn fixed_tokens(&self) -> f64 {
        self.fixed_tokens_by(&self.estimator())
    }

    /// Like [`View::fixed_tokens`], with another estimator.
    pub fn fixed_tokens_by(&self, estimator: &Estimator) -> f64 {
        let head = &self.derived().head;
        let unseen = head.unseen_tokens as f64;
        estimator.scale() * (head.sums.total() - unseen + self.derived().opening().1) + unseen
    }

    /// Newest response of the conversation behind the boundary with known usage.
    fn anchor(&self) -> Option<UsageAnchor> {
        let position = self.derived().requests.anchor? as usize;
        let EntryBody::Response(response) = &self.branch()[position].body else { return None };
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
        Some(UsageAnchor {
            response: response.response.clone(),
            tokens: response.usage.context_tokens(),
            usage: response.usage.clone(),
            first_record: first_record as u32,
            position: position as u32,
        })
    }

    /// Estimates the content behind the anchor's first record, less the response's own blocks.
    fn estimate_after(&self, anchor: &UsageAnchor) -> f64 {
        let derived = self.derived();
        let is_own = |node: &&ViewNode| matches!(&node.speaker, NodeSpeaker::Model(Some(id)) if *id == anchor.response);
        let cleaner = self.cleaner();
        self.nodes_behind(anchor.first_record)
            .filter(|node| !is_own(node))
            .flat_map(|node| derived.effects().apply(node, cleaner))
            .fold(0.0, |sum, clean| sum + clean.tokens)
    }

    fn nodes_behind(&self, position: u32) -> Box<dyn Iterator<Item = &ViewNode> + '_> {
        // A response without records has no item of its own: everything appended after it counts.
        let derived = self.derived();
        if derived.has_item(position) {
            Box::new(derived.nodes_after(position))
        } else {
            Box::new(derived.newest_nodes(position))
        }
    }

    /// Tokens of the measured context that decisions after the anchor freed. Spills do not count: they are
    /// made before their result is first sent.
    fn freed_since(&self, anchor: &UsageAnchor) -> u64 {
        let mut freed = 0u64;
        for (at, entry) in self.branch().iter().enumerate().skip(anchor.position as usize) {
            let EntryBody::Decision(decision) = &entry.body else { continue };
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
            if let EntryBody::Assistant(assistant) = &entry.body {
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
            if let WireBlockKind::Result(id) = &clean.part
                && let Some(path) = reads.get(id)
                && !shown.insert(path)
            {
                wasted += clean.tokens;
            }
        }
        wasted
    }
}

fn is_request(entry: &LogEntry) -> bool {
    matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation())
}

fn is_record_of(entry: &LogEntry, response: &ResponseId) -> bool {
    matches!(&entry.body, EntryBody::Assistant(assistant) if assistant.response.as_ref() == Some(response))
}
