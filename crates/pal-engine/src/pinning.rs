//! Pins (§10.1): texts that every later compaction carries word for word, within one budget for all of them.

use pal_context::Budgets;
use pal_model::{Decision, DecisionKind, EntryId, Timestamp};
use pal_view::View;

use crate::{Engine, EngineError, Session};

impl Engine {
    /// Tokens that all pins may have together.
    pub fn pin_budget(&self) -> u64 {
        Budgets::new(&self.limits).pins()
    }
}

/// Tokens of the pins of a view, in the order in which they were pinned.
pub fn pin_tokens(view: &View) -> Vec<(EntryId, u64)> {
    view.state().pins.iter().map(|(id, text)| (*id, tokens(view, text))).collect()
}

fn tokens(view: &View, text: &str) -> u64 {
    let estimator = view.estimator();
    estimator.total(estimator.text(text))
}

impl Session {
    /// Pins a text. Refused if it says nothing, stands there already, or does not fit beside the others.
    pub fn pin(&mut self, text: &str, engine: &Engine, now: Timestamp) -> Result<EntryId, EngineError> {
        let not = |why: String| Err(EngineError::NotPossible(why));
        if text.trim().is_empty() {
            return not(String::from("there is nothing to pin: the text is empty"));
        }
        if let Some(at) = self.view.state().pins.values().position(|known| known == text) {
            return not(format!("this text is pinned already, as number {}", at + 1));
        }
        let taken: u64 = pin_tokens(&self.view).iter().map(|(_, tokens)| tokens).sum();
        let wanted = tokens(&self.view, text);
        let budget = engine.pin_budget();
        if taken + wanted > budget {
            return not(format!(
                "the text has about {wanted} tokens and the pins have {taken} already: together more than the \
                 {budget} that pins may have on a window of {}",
                engine.limits.window
            ));
        }
        let kind = DecisionKind::Pin { text: text.to_owned() };
        let reason = String::from("pinned by the user");
        let entry = self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        self.sync()?;
        Ok(entry.id)
    }

    /// Takes a pin back. What a summary already carries of it stays there until the next compaction.
    pub fn unpin(&mut self, pin: EntryId, now: Timestamp) -> Result<(), EngineError> {
        if !self.view.state().pins.contains_key(&pin) {
            return Err(EngineError::NotPossible(format!("{pin} is no pin of this session")));
        }
        let kind = DecisionKind::Undo { target: pin };
        let reason = String::from("the pin was removed by the user");
        self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        self.sync()
    }
}
