//! Folds, carried through: a model is asked for the summary of a stretch, or it is made without one.

use pal_context::{
    Budgets, FoldedStretch, How, LAYERS, Question, Reply, Stretch, What, extractive_fold, fold_decision,
    fold_directive, fold_question, read_summary,
};
use pal_model::{Block, Timestamp};
use pal_view::RenderOptions;

use crate::preparing::ACTS_MAX;
use crate::{Engine, EngineError, Errands, Session};

/// The layer that folds.
const FOLD: &str = "fold";

impl Session {
    /// Folds a stretch; whether anything was gained. A fold that the request waits for asks nobody.
    pub(crate) fn fold(
        &mut self,
        stretch: Stretch,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<bool, EngineError> {
        let budgets = Budgets::new(&engine.limits);
        let may_ask = !stretch.is_urgent && engine.ways.as_ref().is_none_or(|ways| ways.contains(&How::Fork));
        let asked = if may_ask { self.ask_fold(stretch, engine, now, errands)? } else { None };
        if errands.is_cancelled() {
            return Ok(false);
        }
        let summary = asked.unwrap_or_else(|| extractive_fold(&self.view, stretch));
        match fold_decision(&self.view, stretch, &summary, budgets, &engine.place) {
            Some(decision) => self.decide(&decision, now).map(|_| true),
            None => Ok(false),
        }
    }

    /// Folds whatever can be folded, without asking anybody, because the provider found the context too large: `have`
    /// tokens, where it said so.
    pub(crate) fn drain(
        &mut self,
        have: Option<u64>,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<(), EngineError> {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name() == FOLD) else { return Ok(()) };
        // The provider's count stands above our estimate; what a fold frees, it frees of both.
        let have = have.unwrap_or(engine.limits.effective);
        let beyond = have.saturating_sub(self.view.size().tokens);
        for _ in 0..ACTS_MAX {
            let size = self.view.size().tokens + beyond;
            let What::Fold(stretch) = engine.plan_at(*layer, &self.view, now, size).what else { break };
            if !self.fold(Stretch { is_urgent: true, ..stretch }, engine, now, errands)? {
                break;
            }
        }
        Ok(())
    }

    /// A model's summary of a stretch; none if there is none to be had.
    fn ask_fold(
        &mut self,
        stretch: Stretch,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Option<String>, EngineError> {
        let budgets = Budgets::new(&engine.limits);
        let Some(asked) = fold_question(&self.view, stretch, budgets) else { return Ok(None) };
        let directive = fold_directive(&FoldedStretch {
            begins: &asked.begins,
            ends: &asked.ends,
            tokens: asked.tokens_most,
        });
        let size = self.view.size().tokens;
        // Twice the room: some of it goes to a draft.
        let max_tokens = asked.tokens_most * 2;
        if size + max_tokens > engine.limits.window.min(self.view.lens().card.prompt_limit()) {
            return Ok(None);
        }
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: true };
        let standing = self.fork_standing(engine, now);
        let request = standing.fork(&self.view, options, &directive);
        let question = Question { how: How::Fork, request };
        Ok(match self.ask(&question, &standing, engine, now, errands)? {
            Reply::Said(blocks) => read_summary(&blocks).ok().or_else(|| words(&blocks)),
            Reply::TooLong { .. } | Reply::Failed(_) => None,
        })
    }
}

/// The words of an answer, if it has any.
fn words(blocks: &[Block]) -> Option<String> {
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.string("text")).collect();
    let words = texts.join("\n");
    (!words.trim().is_empty()).then_some(words)
}
