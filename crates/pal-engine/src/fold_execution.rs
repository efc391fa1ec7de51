//! Executes folds: a model summarizes a stretch, or an extract replaces it.

use pal_context::{
    ActionKind, FoldRange, FoldedStretch, LAYERS, SummaryMethod, SummaryQuestion, SummaryReply,
    WindowBudgets, extractive_fold, fold_decision, fold_directive, fold_question, read_summary,
};
use pal_model::{ContentBlock, Timestamp};
use pal_view::RenderOptions;

use crate::prepared_request::LAYER_ACTIONS_MAX;
use crate::{EngineError, Session, SessionConfig, SessionHost};

/// Name of the layer that folds.
const FOLD: &str = "fold";

impl Session {
    /// Folds a stretch and returns whether that freed tokens. An urgent fold never asks a model.
    pub(crate) fn fold(
        &mut self,
        stretch: FoldRange,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        let budgets = WindowBudgets::new(&config.limits);
        let may_ask = !stretch.is_urgent
            && config.summary_methods.as_ref().is_none_or(|ways| ways.contains(&SummaryMethod::Fork));
        let asked = if may_ask { self.ask_fold(stretch, config, now, host)? } else { None };
        if host.is_cancelled() {
            return Ok(false);
        }
        let summary = asked.unwrap_or_else(|| extractive_fold(&self.view, stretch));
        match fold_decision(&self.view, stretch, &summary, budgets, &config.paths) {
            Some(decision) => self.decide(&decision, now).map(|_| true),
            None => Ok(false),
        }
    }

    /// Folds everything possible without a model, because the provider rejected a context of `have` tokens.
    pub(crate) fn drain(
        &mut self,
        have: Option<u64>,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<(), EngineError> {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name() == FOLD) else { return Ok(()) };
        // The provider counts more than we estimate; a fold frees the same amount of both.
        let have = have.unwrap_or(config.limits.effective);
        let beyond = have.saturating_sub(self.view.size().tokens);
        for _ in 0..LAYER_ACTIONS_MAX {
            let size = self.view.size().tokens + beyond;
            let ActionKind::Fold(stretch) = config.plan_at(*layer, &self.view, now, size).kind else { break };
            if !self.fold(FoldRange { is_urgent: true, ..stretch }, config, now, host)? {
                break;
            }
        }
        Ok(())
    }

    /// Asks a model to summarize a stretch; none if that fails.
    fn ask_fold(
        &mut self,
        stretch: FoldRange,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<Option<String>, EngineError> {
        let budgets = WindowBudgets::new(&config.limits);
        let Some(asked) = fold_question(&self.view, stretch, budgets) else { return Ok(None) };
        let directive = fold_directive(&FoldedStretch {
            begins: &asked.begins,
            ends: &asked.ends,
            tokens: asked.max_tokens,
        });
        let size = self.view.size().tokens;
        // Twice the budget: part of it goes to a draft.
        let max_tokens = asked.max_tokens * 2;
        if size + max_tokens > config.limits.window.min(self.view.lens().card.prompt_limit()) {
            return Ok(None);
        }
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
        let params = self.fork_params(config, now);
        let request = params.fork(&self.view, options, &directive);
        let question = SummaryQuestion { method: SummaryMethod::Fork, card: None, request };
        Ok(match self.ask(&question, &params, config, now, host)? {
            SummaryReply::Response(blocks) => read_summary(&blocks).ok().or_else(|| joined_text(&blocks)),
            SummaryReply::TooLong(_) | SummaryReply::Failed(_) => None,
        })
    }
}

/// Text of a response, if it has any.
fn joined_text(blocks: &[ContentBlock]) -> Option<String> {
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.string("text")).collect();
    let words = texts.join("\n");
    (!words.trim().is_empty()).then_some(words)
}
