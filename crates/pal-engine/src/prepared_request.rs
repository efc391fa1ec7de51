//! Prepares requests: runs the layers in order until the context fits.

use pal_context::{
    ActionKind, CompactionRequest, CompactionTrigger, LAYERS, Layer, LayerAction, Proposal, RequestParams,
    SummaryMethod,
};
use pal_model::text::group_digits;
use pal_model::{Decision, DecisionKind, EntryBody, LayerReport, Timestamp};
use pal_view::{RenderOptions, Request};
use smol_str::SmolStr;

use crate::spill_files::write_spill;
use crate::{CompactionResult, EngineError, Session, SessionConfig, SessionHost};

/// Maximum actions of one layer before one request.
pub(crate) const LAYER_ACTIONS_MAX: usize = 24;

/// Minimum tokens reserved for an answer.
const ANSWER_TOKENS_MIN: u64 = 1_024;

/// A rendered request.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    /// The request.
    pub request: Request,
    /// Beta headers to send.
    pub betas: Vec<SmolStr>,
    /// Parameters besides the content.
    pub params: RequestParams,
    /// Report of each layer.
    pub reports: Vec<LayerReport>,
}

impl Session {
    /// Runs the layers and renders the request.
    pub fn prepare(
        &mut self,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<PreparedRequest, EngineError> {
        self.record_model(now)?;
        self.compact_left_out(config, now, host)?;
        let mut reports = Vec::new();
        for layer in LAYERS {
            reports.push(self.run(layer, config, now, host)?);
        }
        // A prefix that is made for a larger window than the session has learned of gives way first.
        if self.lacks_answer_room(config) {
            self.use_smaller_prefix(config.limits.window, now, host)?;
        }
        if self.lacks_answer_room(config) {
            self.compact_over_threshold(config, now, host)?;
        }
        self.latch(config, now)?;
        let size = self.view.size().tokens;
        if self.lacks_answer_room(config) {
            return Err(EngineError::Full(format!(
                "{} tokens leave no room for an answer in a window of {}, and no compaction made them fewer; \
                 choose a model with a larger window, shorten the instructions, or start a new session",
                group_digits(size),
                group_digits(config.limits.window)
            )));
        }
        Ok(self.rendered(config, size, now, reports))
    }

    /// Returns true if no answer would fit behind the context. What no compaction made smaller is sent as long as it
    /// leaves room for a short answer; in reactive-only mode the provider decides what is too long.
    fn lacks_answer_room(&self, config: &SessionConfig) -> bool {
        let is_limited = config.limits.auto_compact.is_some() && !config.policy.reactive_only;
        let size = self.view.size().tokens;
        let room = config.limits.window.min(self.view.lens().card.prompt_limit());
        is_limited && config.limits.fill(size).blocking && size + ANSWER_TOKENS_MIN > room
    }

    /// Makes the context as small as possible where no compaction gets below the threshold, because the prefix fills
    /// most of the window: whatever can be sent is better than an error.
    fn compact_over_threshold(
        &mut self,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<(), EngineError> {
        if config.summary_methods.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        self.shorten_waiting(config, now, host)?;
        let order = CompactionRequest {
            methods: Some(vec![SummaryMethod::Extractive]),
            ..config.compaction_request(CompactionTrigger::Reactive)
        };
        match self.compact(order, config, now, host)? {
            CompactionResult::Blocked(hook) => Err(EngineError::Full(format!(
                "no room is left for an answer, and the hook `{hook}` forbids compaction: change the hook, or start anew"
            ))),
            CompactionResult::Done { .. } | CompactionResult::Refused(_) => Ok(()),
        }
    }

    /// Records that the conversation goes on with another model: usage that the earlier one reported is in other tokens.
    fn record_model(&mut self, now: Timestamp) -> Result<(), EngineError> {
        let last = self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => Some(&request.model),
            EntryBody::Decision(Decision { kind: DecisionKind::Model { model }, .. }) => Some(model),
            _ => None,
        });
        let model = &self.view.lens().card.model;
        let Some(earlier) = last.filter(|last| !last.is_empty() && *last != model) else { return Ok(()) };
        let reason = format!("{model} answers from here on, not {earlier}");
        let kind = DecisionKind::Model { model: model.clone() };
        self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        Ok(())
    }

    /// Compacts without a model when a resume left out history. No window holds it, and a boundary makes every
    /// later resume start at the same place.
    fn compact_left_out(
        &mut self,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<(), EngineError> {
        if self.left_out().is_some() && self.view.boundary().is_none() {
            let order = CompactionRequest {
                methods: Some(vec![SummaryMethod::Extractive]),
                ..config.compaction_request(CompactionTrigger::Auto)
            };
            self.compact(order, config, now, host)?;
        }
        Ok(())
    }

    fn rendered(
        &self,
        config: &SessionConfig,
        size: u64,
        now: Timestamp,
        reports: Vec<LayerReport>,
    ) -> PreparedRequest {
        // The provider rejects a request whose answer could exceed the window.
        let room = config.limits.window.saturating_sub(size + size / 20).max(ANSWER_TOKENS_MIN);
        let options = RenderOptions {
            max_tokens: config.max_tokens.min(self.view.lens().card.max_output).min(room),
            stream: true,
            spell_out_unseen: false,
        };
        let params = self.params(config, now);
        let request = params.request(&self.view, options);
        PreparedRequest { request, betas: self.betas(config), params, reports }
    }

    /// Returns the action that a layer would take now.
    pub fn plan(&self, layer: &dyn Layer, config: &SessionConfig, now: Timestamp) -> LayerAction {
        config.plan(layer, &self.view, now)
    }

    /// Runs one layer until it has nothing left to do.
    fn run(
        &mut self,
        layer: &dyn Layer,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<LayerReport, EngineError> {
        let mut report =
            LayerReport { layer: layer.name().into(), acted: false, tokens_freed: 0, reason: String::new() };
        for _ in 0..LAYER_ACTIONS_MAX {
            let before = self.view.size().tokens;
            let mut act = self.plan(layer, config, now);
            let shows = changes_what_is_seen(&act.kind);
            let goes_on = match act.kind {
                // Provider-side edits are part of every request.
                ActionKind::Nothing | ActionKind::AskProvider { .. } => false,
                ActionKind::Decide(proposals) => self.apply_proposals(proposals, now, host)?,
                ActionKind::Fold(stretch) => self.fold(stretch, config, now, host)?,
                ActionKind::Compact => {
                    let order = config.compaction_request(CompactionTrigger::Auto);
                    if let CompactionResult::Blocked(hook) = self.compact(order, config, now, host)? {
                        act.reason = self.blocked(layer, config, hook, now)?;
                    }
                    false
                }
                ActionKind::Stop => return Err(EngineError::Full(act.reason)),
            };
            let freed = before.saturating_sub(self.view.size().tokens);
            report.acted |= (goes_on && shows) || freed > 0;
            report.tokens_freed += freed;
            // The reason of an action says more than the idle state after it.
            if report.reason.is_empty() || (goes_on && shows) {
                report.reason = act.reason;
            }
            if !goes_on {
                break;
            }
        }
        if report.acted {
            tracing::debug!(layer = layer.name(), tokens_freed = report.tokens_freed, "a layer acted");
        }
        Ok(report)
    }

    /// Shortens messages that the model has not answered until a compaction can keep them.
    pub(crate) fn shorten_waiting(
        &mut self,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<(), EngineError> {
        let [spill, ..] = LAYERS;
        // The layer acts as if the context had reached the threshold.
        if let ActionKind::Decide(proposals) = config.plan_at(spill, &self.view, now, u64::MAX).kind {
            self.apply_proposals(proposals, now, host)?;
        }
        Ok(())
    }

    /// Reason of a layer whose compaction a hook blocks; an error if it cannot wait.
    fn blocked(
        &self,
        layer: &dyn Layer,
        config: &SessionConfig,
        hook: String,
        now: Timestamp,
    ) -> Result<String, EngineError> {
        let mut config = config.clone();
        config.compaction.blocked_by = Some(hook);
        let act = self.plan(layer, &config, now);
        match act.kind {
            ActionKind::Stop => Err(EngineError::Full(act.reason)),
            _ => Ok(act.reason),
        }
    }

    /// Applies proposals and returns whether any was applied.
    fn apply_proposals(
        &mut self,
        proposals: Vec<Proposal>,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        let mut made = false;
        for Proposal { decision, file } in proposals {
            if let Some(file) = &file
                && let Err(error) = write_spill(&self.directory, file)
            {
                let message = format!("{} cannot be written, so the text stays whole: {error}", file.path);
                host.notice(&message);
                self.keep_whole(&decision, now)?;
                continue;
            }
            self.decide(&decision, now)?;
            made = true;
        }
        Ok(made)
    }

    /// Keeps a result whole for good if its spill file cannot be written.
    fn keep_whole(&mut self, decision: &Decision, now: Timestamp) -> Result<(), EngineError> {
        let DecisionKind::Spill { tool_use_id: Some(id), .. } = &decision.kind else { return Ok(()) };
        let kind = DecisionKind::Keep { tool_use_ids: vec![id.clone()] };
        let reason = String::from("its full text could not be written to disk");
        self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        Ok(())
    }
}

/// Returns whether an action changes what the model sees; `Keep` and `Latch` do not.
fn changes_what_is_seen(what: &ActionKind) -> bool {
    match what {
        ActionKind::Nothing | ActionKind::AskProvider { .. } | ActionKind::Stop => false,
        ActionKind::Fold(_) | ActionKind::Compact => true,
        ActionKind::Decide(proposals) => proposals.iter().any(|proposal| {
            !matches!(proposal.decision.kind, DecisionKind::Keep { .. } | DecisionKind::Latch { .. })
        }),
    }
}
