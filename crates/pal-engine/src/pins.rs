//! Pins (§10.1): texts that every compaction preserves word for word, within a common budget.

use pal_context::WindowBudgets;
use pal_model::{Decision, DecisionKind, EntryId, Timestamp};
use pal_view::View;

use crate::{EngineError, Session, SessionConfig};

impl SessionConfig {
    /// Token budget of all pins together.
    pub fn pin_budget(&self) -> u64 {
        WindowBudgets::new(&self.limits).pins()
    }
}

/// Tokens of each pin, in the order of pinning.
pub fn pin_tokens(view: &View) -> Vec<(EntryId, u64)> {
    view.state().pins.iter().map(|(id, text)| (*id, tokens(view, text))).collect()
}

fn tokens(view: &View, text: &str) -> u64 {
    let estimator = view.estimator();
    estimator.total(estimator.text(text))
}

impl Session {
    /// Pins a text. Fails if it is empty, already pinned, or over the budget.
    pub fn pin(
        &mut self,
        text: &str,
        config: &SessionConfig,
        now: Timestamp,
    ) -> Result<EntryId, EngineError> {
        let not = |why: String| Err(EngineError::NotPossible(why));
        if text.trim().is_empty() {
            return not(String::from("there is nothing to pin: the text is empty"));
        }
        if let Some(at) = self.view.state().pins.values().position(|known| known == text) {
            return not(format!("this text is pinned already, as number {}", at + 1));
        }
        let taken: u64 = pin_tokens(&self.view).iter().map(|(_, tokens)| tokens).sum();
        let wanted = tokens(&self.view, text);
        let budget = config.pin_budget();
        if taken + wanted > budget {
            return not(format!(
                "the text has about {wanted} tokens and the pins have {taken} already: together more than the \
                 {budget} that pins may have on a window of {}",
                config.limits.window
            ));
        }
        let kind = DecisionKind::Pin { text: text.to_owned() };
        let reason = String::from("pinned by the user");
        let entry = self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        self.sync()?;
        Ok(entry.id)
    }

    /// Removes a pin. A summary that contains it keeps it until the next compaction.
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
