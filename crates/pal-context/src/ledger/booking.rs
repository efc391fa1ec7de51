//! The one pass: entries become rows, decisions become savings, falls get their causes.

use pal_model::{
    Body, Boundary, Card, Cards, Decision, DecisionKind, Entry, EntryId, Prefix, RequestSent, ResponseGot,
    Source, Timestamp,
};
use pal_view::{Estimator, Lens, RenderOptions, Scope, View};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use super::fall::{Asked, BOUNDARY, Lane};
use super::row::{fall, paid};
use super::{Compacting, Ledger, LedgerRow, Saving, Totals};
use crate::cache;
use crate::price::prices;

/// The pass over a log, as far as it has come.
pub(super) struct Booking<'a> {
    cards: &'a Cards,
    /// The cards of the models that were asked, each looked up once.
    known_cards: FxHashMap<SmolStr, Card>,
    view: View,
    /// Requests without an answer yet, by who asked.
    open: FxHashMap<Source, Open>,
    lanes: FxHashMap<Source, Lane>,
    prefix: Option<Prefix>,
    /// Decisions since the last row.
    decisions: Vec<(SmolStr, u64)>,
    /// What each decision freed, for when it is taken back.
    freed_by: FxHashMap<EntryId, (SmolStr, u64)>,
    newest: Option<EntryId>,
    ledger: Ledger,
}

/// A request that left.
struct Open {
    started: Timestamp,
    request: RequestSent,
    asked: Option<cache::Asked>,
}

impl<'a> Booking<'a> {
    pub(super) fn new(cards: &'a Cards) -> Booking<'a> {
        Booking {
            cards,
            known_cards: FxHashMap::default(),
            view: View::new(lens(cards.find("").card)),
            open: FxHashMap::default(),
            lanes: FxHashMap::default(),
            prefix: None,
            decisions: Vec::new(),
            freed_by: FxHashMap::default(),
            newest: None,
            ledger: Ledger::default(),
        }
    }

    pub(super) fn finish(self) -> Ledger {
        self.ledger
    }

    pub(super) fn take(&mut self, entry: &Entry) {
        let is_rewind = self.newest.is_some() && entry.parent != self.newest;
        if is_rewind {
            self.announce("rewind");
        }
        self.newest = Some(entry.id);
        match &entry.body {
            Body::Request(request) => self.request(entry, request),
            Body::Response(response) => self.response(response),
            Body::Prefix(prefix) => self.prefix(prefix),
            Body::Decision(decision) => self.decision(entry, decision),
            Body::Boundary(boundary) if boundary.stands() => return self.boundary(entry, boundary),
            _ => {}
        }
        self.view.push(entry.clone());
        if is_rewind {
            self.forget_what_was_left();
        }
    }

    /// Decisions of a branch that was left free nothing any more.
    fn forget_what_was_left(&mut self) {
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

    fn request(&mut self, entry: &Entry, request: &RequestSent) {
        let is_conversation = request.source.is_conversation();
        if is_conversation && !request.model.is_empty() {
            self.look_through(&request.model);
        }
        let asked = is_conversation.then(|| self.asked(request));
        let open = Open { started: entry.at, request: request.clone(), asked };
        self.open.insert(request.source.clone(), open);
    }

    /// A request of the conversation as it would be rendered: what it carried besides its content is in its entry.
    fn asked(&self, request: &RequestSent) -> cache::Asked {
        const OPTIONS: RenderOptions = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: false };
        let rendered = self.view.render(OPTIONS);
        let rendered =
            request.members.iter().fold(rendered, |all, (name, value)| all.with_member(name, value));
        cache::Asked { request: rendered, betas: request.betas.clone() }
    }

    /// Looks at the conversation with the eyes of the model that is asked, if those are others.
    fn look_through(&mut self, model: &SmolStr) {
        let card = self.card(model);
        let now = &self.view.lens().card;
        if now.model != card.model {
            self.view = self.view.through(lens(card));
        }
    }

    fn card(&mut self, model: &SmolStr) -> Card {
        let card = self.known_cards.entry(model.clone()).or_insert_with(|| self.cards.find(model).card);
        card.clone()
    }

    fn response(&mut self, response: &ResponseGot) {
        let open = self.open.remove(&response.source);
        let started = open.as_ref().map(|open| open.started);
        let (request, asked) = open.map_or((None, None), |open| (Some(open.request), open.asked));
        let asked_model = request.as_ref().map_or(SmolStr::default(), |request| request.model.clone());
        let model = if response.model.is_empty() { asked_model } else { response.model.clone() };
        let card = self.card(&model);
        let usage = &response.usage;
        let is_beginning_unseen = self.is_beginning_unseen(request.as_ref());
        let lane = self.lanes.entry(lane_of(&response.source)).or_default();
        let idle_ms = lane.idle_ms(started);
        let asked = Asked { source: &response.source, card: &card, started, asked, is_beginning_unseen };
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
            fall: fall(response, judged, &card),
            ..paid(response, model, &card)
        };
        if is_conversation {
            self.count_savings(&row, &card);
        }
        self.ledger.take(row);
    }

    /// Whether the log lacks what stands before the messages of a request, or a part of it. Tools of a request that we did
    /// not render are those that were called, with descriptions that nobody sent.
    fn is_beginning_unseen(&self, request: Option<&RequestSent>) -> bool {
        let is_ours = request.is_some_and(|request| request.fingerprint.is_some());
        self.prefix
            .as_ref()
            .is_none_or(|prefix| prefix.unseen_tokens > 0 || (!is_ours && prefix.tools.trim() != "[]"))
    }

    fn prefix(&mut self, prefix: &Prefix) {
        self.prefix = Some(prefix.clone());
    }

    fn decision(&mut self, entry: &Entry, decision: &Decision) {
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

    fn boundary(&mut self, entry: &Entry, boundary: &Boundary) {
        // Not what the boundary says: other agents count only the messages, and one of the two sizes.
        let before = self.view.size().tokens;
        self.view.push(entry.clone());
        let after = self.view.size().tokens;
        self.announce(BOUNDARY);
        self.free(entry.id, SmolStr::new_static(BOUNDARY), before.saturating_sub(after));
        self.ledger.compactions.push(Compacting {
            before_row: self.ledger.rows.len() + 1,
            at: entry.at,
            trigger: boundary.trigger.clone(),
            how: boundary.how.clone(),
            tokens_before: before,
            tokens_after: after,
        });
    }

    /// What is in sight changes for everybody who asks about the conversation.
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

    fn saving(&mut self, kind: &SmolStr) -> &mut Saving {
        let savings = &mut self.ledger.savings;
        let at = savings.iter().position(|saving| saving.kind == *kind).unwrap_or_else(|| {
            let kind = kind.clone();
            savings.push(Saving { kind, decisions: 0, tokens_freed: 0, tokens_not_sent: 0, cost: 0.0 });
            savings.len() - 1
        });
        &mut savings[at]
    }

    /// What is out of sight was not sent with this row either.
    fn count_savings(&mut self, row: &LedgerRow, card: &Card) {
        let Some(prompt) = row.prompt else { return };
        let read = prices(card, prompt.total()).map_or(0.0, |prices| prices.read / 1e6);
        for saving in &mut self.ledger.savings {
            saving.tokens_not_sent = saving.tokens_not_sent.saturating_add(saving.tokens_freed);
            saving.cost += saving.tokens_freed as f64 * read;
        }
    }

    /// A spill is made before its text is first sent, as a rule; only otherwise does it change what was sent.
    fn changes_what_was_sent(&self, kind: &DecisionKind) -> bool {
        match kind {
            DecisionKind::Spill { tool_use_id: Some(id), .. } => {
                self.view.result(id).is_some_and(|result| result.is_sent)
            }
            DecisionKind::Spill { entry: Some(spilled), .. } => {
                !self.view.unsent().iter().any(|entry| entry.id == *spilled)
            }
            _ => true,
        }
    }
}

impl Ledger {
    /// Takes a row into the sums.
    fn take(&mut self, row: LedgerRow) {
        self.all.add(&row);
        sums_of(&mut self.by_source, &row.source).add(&row);
        sums_of(&mut self.by_model, &row.model).add(&row);
        self.rows.push(row);
    }
}

fn sums_of<'a, Name: Clone + PartialEq>(sums: &'a mut Vec<(Name, Totals)>, name: &Name) -> &'a mut Totals {
    let at = sums.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        sums.push((name.clone(), Totals::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

/// Whether a decision makes what is sent shorter.
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

/// Whose cache a source shares.
fn lane_of(source: &Source) -> Source {
    if source.as_str() == "compact" || *source == Source::ping() { Source::main() } else { source.clone() }
}

fn lens(card: Card) -> Lens {
    Lens { estimator: Estimator::shipped(card.generation), card, scope: Scope::Current }
}
