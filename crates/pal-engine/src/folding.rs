//! Folds, carried through: a model is asked for the summary of a stretch, or it is made without one.

use pal_context::{
    Budgets, FoldedStretch, How, Question, Reply, Stretch, extractive_fold, fold_decision, fold_directive,
    fold_question, read_summary,
};
use pal_model::{Block, Timestamp};
use pal_view::RenderOptions;

use crate::{Engine, EngineError, Errands, Session};

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
        let summary = asked.unwrap_or_else(|| extractive_fold(&self.view, stretch));
        match fold_decision(&self.view, stretch, &summary, budgets) {
            Some(decision) => self.decide(&decision, now).map(|_| true),
            None => Ok(false),
        }
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
            head: stretch.head,
            tail: stretch.tail,
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
        let options = RenderOptions { max_tokens, stream: false, marks: true, spell_out_unseen: true };
        let fork = self.view.fork(options, &directive);
        let members = self.members(engine, now);
        let request = members.iter().fold(fork, |fork, (member, value)| fork.with_member(member, value));
        let question = Question { how: How::Fork, request, retries: 1 };
        Ok(match self.ask(&question, now, errands)? {
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
