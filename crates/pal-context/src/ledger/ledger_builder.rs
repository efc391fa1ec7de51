//! Builds the ledger in one pass: entries become rows, decisions become savings, drops get their causes.

use pal_model::{
    Boundary, Decision, DecisionKind, EntryBody, EntryId, FormerPrices, LogEntry, ModelCard, ModelCatalog,
    PromptPrefix, RequestRecord, RequestSource, ResponseRecord, Timestamp,
};
use pal_view::{Estimator, Lens, RenderOptions, View, ViewScope};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use super::cache_lane::{BOUNDARY, CacheLane, LaneRequest};
use super::ledger_row::{find_cache_drop, paid};
use super::{CostLedger, CostTotals, DecisionSaving, LedgerCompaction, LedgerRow};
use crate::break_cost::prices;
use crate::cache;

/// State of the pass.
pub(super) struct LedgerBuilder<'a> {
    cards: &'a ModelCatalog,
    /// Cards of the models and their former prices, each looked up once.
    known_cards: FxHashMap<SmolStr, (ModelCard, Vec<FormerPrices>)>,
    view: View,
    /// Unanswered requests, by source.
    open: FxHashMap<RequestSource, OpenRequest>,
    lanes: FxHashMap<RequestSource, CacheLane>,
    prefix: Option<PromptPrefix>,
    /// Decisions since the last row.
    decisions: Vec<(SmolStr, u64)>,
    /// Freed tokens of each decision, for undoing it.
    freed_by: FxHashMap<EntryId, (SmolStr, u64)>,
    newest: Option<EntryId>,
    ledger: CostLedger,
}

/// An unanswered request.
struct OpenRequest {
    started: Timestamp,
    request: RequestRecord,
    asked: Option<cache::SentRequest>,
}

impl<'a> LedgerBuilder<'a> {
    pub(super) fn new(cards: &'a ModelCatalog) -> LedgerBuilder<'a> {
        LedgerBuilder {
            cards,
            known_cards: FxHashMap::default(),
            view: View::new(lens(cards.find("").card)),
            open: FxHashMap::default(),
            lanes: FxHashMap::default(),
            prefix: None,
            decisions: Vec::new(),
            freed_by: FxHashMap::default(),
            newest: None,
            ledger: CostLedger::default(),
        }
    }

    pub(super) fn finish(self) -> CostLedger {
        self.ledger
    }

    pub(super) fn take(&mut self, entry: &LogEntry) {
        let is_rewind = self.newest.is_some() && entry.parent != self.newest;
        if is_rewind {
            self.announce("rewind");
        }
        self.newest = Some(entry.id);
        match &entry.body {
            EntryBody::Request(request) => self.request(entry, request),
            EntryBody::Response(response) => self.response(response, entry.at),
            EntryBody::Prefix(prefix) => self.prefix(prefix),
            EntryBody::Decision(decision) => self.decision(entry, decision),
            EntryBody::Boundary(boundary) if boundary.has_summary() => return self.boundary(entry, boundary),
            _ => {}
        }
        self.view.push(entry.clone());
        if is_rewind {
            self.revert_abandoned_decisions();
        }
    }

    /// Reverts the savings of decisions on an abandoned branch.
    fn revert_abandoned_decisions(&mut self) {
        let branch: FxHashSet<EntryId> = self.view.branch().iter().map(|entry| entry.id).collect();
        let left: Vec<EntryId> = self.freed_by.keys().filter(|id| !branch.contains(id)).copied().collect();
        left.into_iter().for_each(|id| self.take_back(id));
    }

    fn take_back(&mut self, id: EntryId) {
        if let Some((kind, tokens)) = self.freed_by.remove(&id) {
            let saving = self.saving(&kind);
            saving.tokens_freed = saving.tokens_freed.saturating_sub(tokens);
        }
    }

    fn request(&mut self, entry: &LogEntry, request: &RequestRecord) {
        let is_conversation = request.source.is_conversation();
        if is_conversation && !request.model.is_empty() {
            self.look_through(&request.model);
        }
        let asked = is_conversation.then(|| self.asked(request));
        let open = OpenRequest { started: entry.at, request: request.clone(), asked };
        self.open.insert(request.source.clone(), open);
    }

    /// Renders a request of the conversation again; its entry holds the members besides the content.
    fn asked(&self, request: &RequestRecord) -> cache::SentRequest {
        const OPTIONS: RenderOptions = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: false };
        let rendered = self.view.render(OPTIONS);
        let rendered =
            request.members.iter().fold(rendered, |all, (name, value)| all.with_member(name, value));
        cache::SentRequest { request: rendered, betas: request.betas.clone() }
    }

    /// Switches the view to the requested model if it changed.
    fn look_through(&mut self, model: &SmolStr) {
        let card = self.card(model);
        let now = &self.view.lens().card;
        if now.name != card.name {
            self.view = self.view.with_lens(lens(card));
        }
    }

    fn card(&mut self, model: &SmolStr) -> ModelCard {
        self.known_card(model).0.clone()
    }

    /// Card with the prices of a time.
    fn card_at(&mut self, model: &SmolStr, at: Timestamp) -> ModelCard {
        let (card, former) = self.known_card(model);
        let mut card = card.clone();
        card.set_prices_at(former, at);
        card
    }

    fn known_card(&mut self, model: &SmolStr) -> &(ModelCard, Vec<FormerPrices>) {
        let cards = self.cards;
        let look_up = || (cards.find(model).card, cards.former_prices(model));
        self.known_cards.entry(model.clone()).or_insert_with(look_up)
    }

    fn response(&mut self, response: &ResponseRecord, at: Timestamp) {
        let open = self.open.remove(&response.source);
        let started = open.as_ref().map(|open| open.started);
        let (request, asked) = open.map_or((None, None), |open| (Some(open.request), open.asked));
        let asked_model = request.as_ref().map_or(SmolStr::default(), |request| request.model.clone());
        let model = if response.model.is_empty() { asked_model } else { response.model.clone() };
        let card = self.card_at(&model, started.unwrap_or(at));
        let usage = &response.usage;
        let is_beginning_unseen = self.is_beginning_unseen(request.as_ref());
        let lane = self.lanes.entry(lane_of(&response.source)).or_default();
        let idle_ms = lane.idle_ms(started);
        let asked =
            LaneRequest { source: &response.source, card: &card, started, asked, is_beginning_unseen };
        let judged = lane.judge(asked, usage);
        let is_conversation = response.source.is_conversation();
        let row = LedgerRow {
            number: self.ledger.rows.len() + 1,
            source: response.source.clone(),
            started,
            idle_ms,
            by_category: if is_conversation { self.view.by_category() } else { Vec::new() },
            layers: request.map_or(Vec::new(), |request| request.layers),
            decisions: std::mem::take(&mut self.decisions),
            drop: find_cache_drop(response, judged, &card),
            ..paid(response, model, &card)
        };
        if is_conversation {
            self.count_savings(&row, &card);
        }
        self.ledger.take(row);
    }

    /// Returns true if the log lacks all or part of the prefix of a request. The tools of a foreign request
    /// are reconstructed from its calls, so they count as unseen.
    fn is_beginning_unseen(&self, request: Option<&RequestRecord>) -> bool {
        let is_ours = request.is_some_and(|request| request.fingerprint.is_some());
        self.prefix
            .as_ref()
            .is_none_or(|prefix| prefix.unseen_tokens > 0 || (!is_ours && prefix.tools.trim() != "[]"))
    }

    fn prefix(&mut self, prefix: &PromptPrefix) {
        self.prefix = Some(prefix.clone());
    }

    fn decision(&mut self, entry: &LogEntry, decision: &Decision) {
        if let DecisionKind::Undo { target } = decision.kind {
            self.announce("undo");
            self.decisions.push((SmolStr::new_static("undo"), 0));
            return self.take_back(target);
        }
        if !changes_what_is_sent(&decision.kind) {
            return;
        }
        let kind = entry.kind().0;
        if self.changes_what_was_sent(&decision.kind) {
            self.announce(&kind);
        }
        self.free(entry.id, kind, decision.cost.tokens_freed);
    }

    fn boundary(&mut self, entry: &LogEntry, boundary: &Boundary) {
        // Not the boundary's own figures: other agents count only the messages, or only one of the two sizes.
        let before = self.view.size().tokens;
        self.view.push(entry.clone());
        let after = self.view.size().tokens;
        self.announce(BOUNDARY);
        self.free(entry.id, SmolStr::new_static(BOUNDARY), before.saturating_sub(after));
        self.ledger.compactions.push(LedgerCompaction {
            before_row: self.ledger.rows.len() + 1,
            at: entry.at,
            trigger: boundary.trigger.clone(),
            method: boundary.method.clone(),
            tokens_before: before,
            tokens_after: after,
        });
    }

    /// Announces a change of the context to all lanes of the conversation.
    fn announce(&mut self, what: &str) {
        for (source, lane) in &mut self.lanes {
            if source.is_conversation() {
                lane.announce(what);
            }
        }
    }

    fn free(&mut self, id: EntryId, kind: SmolStr, tokens: u64) {
        let saving = self.saving(&kind);
        saving.decisions += 1;
        saving.tokens_freed = saving.tokens_freed.saturating_add(tokens);
        self.freed_by.insert(id, (kind.clone(), tokens));
        self.decisions.push((kind, tokens));
    }

    fn saving(&mut self, kind: &SmolStr) -> &mut DecisionSaving {
        let savings = &mut self.ledger.savings;
        let at = savings.iter().position(|saving| saving.kind == *kind).unwrap_or_else(|| {
            let kind = kind.clone();
            savings.push(DecisionSaving {
                kind,
                decisions: 0,
                tokens_freed: 0,
                tokens_not_sent: 0,
                cost: 0.0,
            });
            savings.len() - 1
        });
        &mut savings[at]
    }

    /// Counts the savings again for this row, which did not send the freed tokens either.
    fn count_savings(&mut self, row: &LedgerRow, card: &ModelCard) {
        let Some(prompt) = row.prompt else { return };
        let read = prices(card, prompt.total()).map_or(0.0, |prices| prices.read / 1e6);
        for saving in &mut self.ledger.savings {
            saving.tokens_not_sent = saving.tokens_not_sent.saturating_add(saving.tokens_freed);
            saving.cost += saving.tokens_freed as f64 * read;
        }
    }

    /// Returns true if a decision changes sent content. A spill is usually made before its text is first
    /// sent.
    fn changes_what_was_sent(&self, kind: &DecisionKind) -> bool {
        match kind {
            DecisionKind::Spill { tool_use_id: Some(id), .. } => {
                self.view.result(id).is_some_and(|result| result.is_sent)
            }
            DecisionKind::Spill { entry: Some(spilled), .. } => {
                !self.view.unsent_entries().iter().any(|entry| entry.id == *spilled)
            }
            _ => true,
        }
    }
}

impl CostLedger {
    /// Adds a row to the totals.
    fn take(&mut self, row: LedgerRow) {
        self.all.add(&row);
        sums_of(&mut self.by_source, &row.source).add(&row);
        sums_of(&mut self.by_model, &row.model).add(&row);
        self.rows.push(row);
    }
}

fn sums_of<'a, Name: Clone + PartialEq>(
    sums: &'a mut Vec<(Name, CostTotals)>,
    name: &Name,
) -> &'a mut CostTotals {
    let at = sums.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        sums.push((name.clone(), CostTotals::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

/// Returns true if a decision shortens the sent content.
fn changes_what_is_sent(kind: &DecisionKind) -> bool {
    matches!(
        kind,
        DecisionKind::Spill { .. }
            | DecisionKind::Snip { .. }
            | DecisionKind::Clear { .. }
            | DecisionKind::Fold { .. }
            | DecisionKind::Strip { .. }
            | DecisionKind::CacheEdit { .. }
            | DecisionKind::ProviderClear { .. }
    )
}

/// Lane of a source: the requests whose cache it shares.
fn lane_of(source: &RequestSource) -> RequestSource {
    if source.as_str() == "compact" || *source == RequestSource::keepalive() {
        RequestSource::main()
    } else {
        source.clone()
    }
}

fn lens(card: ModelCard) -> Lens {
    Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current }
}
