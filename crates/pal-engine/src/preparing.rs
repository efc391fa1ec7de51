//! Before a request: the layers, in their order, until the context is as it shall be.

use pal_context::thrifty::Ping;
use pal_context::{
    Act, Foreseen, How, LAYERS, Layer, Order, Proposal, Reach, Situation, Standing, Trigger, What,
};
use pal_model::{Decision, DecisionKind, LayerReport, Source, Timestamp};
use pal_view::{RenderOptions, Request, View};
use smol_str::SmolStr;

use crate::files::write_spill;
use crate::{Compacted, Engine, EngineError, Errands, Session};

/// How often a layer may act in a row before one request.
pub(crate) const ACTS_MAX: usize = 24;

/// Tokens that an answer is always granted.
const ANSWER_LEAST: u64 = 1_024;

/// A request, ready to leave.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The request.
    pub request: Request,
    /// The beta headers that it is to be sent with.
    pub betas: Vec<SmolStr>,
    /// What it carries besides its content.
    pub standing: Standing,
    /// What each layer did, or why it did nothing.
    pub reports: Vec<LayerReport>,
}

impl Session {
    /// Runs the layers and renders the request.
    pub fn prepare(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Prepared, EngineError> {
        self.compact_left_out(engine, now, errands)?;
        let mut reports = Vec::new();
        for layer in LAYERS {
            reports.push(self.run(layer, engine, now, errands)?);
        }
        self.latch(engine, now)?;
        let size = self.view.size().tokens;
        if engine.limits.auto_compact.is_some() && engine.limits.fill(size).blocking {
            return Err(EngineError::Full(format!(
                "{size} tokens leave no room for an answer in a window of {}, and no compaction made them fewer; \
                 choose a model with a larger window, shorten the instructions, or start a new session",
                engine.limits.window
            )));
        }
        Ok(self.rendered(engine, size, now, reports))
    }

    /// Compacts a conversation of which a resume left something out, without a model: no window holds it, whatever the
    /// layers do, and with a boundary every later resume begins at the same place.
    fn compact_left_out(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<(), EngineError> {
        if self.left_out().is_some() && self.view.boundary().is_none() {
            let order = Order { only: Some(vec![How::Extractive]), ..automatic(Trigger::Auto, engine) };
            self.compact(order, engine, now, errands)?;
        }
        Ok(())
    }

    fn rendered(&self, engine: &Engine, size: u64, now: Timestamp, reports: Vec<LayerReport>) -> Prepared {
        // An answer that does not fit behind the context would be refused before it is begun.
        let room = engine.limits.window.saturating_sub(size + size / 20).max(ANSWER_LEAST);
        let options = RenderOptions {
            max_tokens: engine.max_tokens.min(self.view.lens().card.max_output).min(room),
            stream: true,
            spell_out_unseen: true,
        };
        let standing = self.standing(engine, now);
        let request = standing.request(&self.view, options);
        Prepared { request, betas: self.betas(engine), standing, reports }
    }

    /// What one layer would do now.
    pub fn plan(&self, layer: &dyn Layer, engine: &Engine, now: Timestamp) -> Act {
        engine.plan(layer, &self.view, now)
    }

    /// Lets one layer act until it is content.
    fn run(
        &mut self,
        layer: &dyn Layer,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<LayerReport, EngineError> {
        let mut report =
            LayerReport { layer: layer.name().into(), acted: false, tokens_freed: 0, reason: String::new() };
        for _ in 0..ACTS_MAX {
            let before = self.view.size().tokens;
            let mut act = self.plan(layer, engine, now);
            let shows = changes_what_is_seen(&act.what);
            let goes_on = match act.what {
                // What a layer asks of the provider goes along with every request.
                What::Nothing | What::AskProvider { .. } => false,
                What::Decide(proposals) => self.carry_out(proposals, now, errands)?,
                What::Fold(stretch) => self.fold(stretch, engine, now, errands)?,
                What::Compact => {
                    let order = automatic(Trigger::Auto, engine);
                    if let Compacted::Blocked(hook) = self.compact(order, engine, now, errands)? {
                        act.reason = self.blocked(layer, engine, hook, now)?;
                    }
                    false
                }
                What::Stop => return Err(EngineError::Full(act.reason)),
            };
            let freed = before.saturating_sub(self.view.size().tokens);
            report.acted |= (goes_on && shows) || freed > 0;
            report.tokens_freed += freed;
            // The reason of an act says more than the contentment after it.
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

    /// What a layer says now that a hook forbids the compaction: why it waits, or that it cannot wait any longer.
    fn blocked(
        &self,
        layer: &dyn Layer,
        engine: &Engine,
        hook: String,
        now: Timestamp,
    ) -> Result<String, EngineError> {
        let mut engine = engine.clone();
        engine.inputs.blocked_by = Some(hook);
        let act = self.plan(layer, &engine, now);
        match act.what {
            What::Stop => Err(EngineError::Full(act.reason)),
            _ => Ok(act.reason),
        }
    }

    /// Makes decisions; whether any was made.
    fn carry_out(
        &mut self,
        proposals: Vec<Proposal>,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<bool, EngineError> {
        let mut made = false;
        for Proposal { decision, file } in proposals {
            if let Some(file) = &file
                && let Err(error) = write_spill(&self.directory, file)
            {
                let message = format!("{} cannot be written, so the text stays whole: {error}", file.path);
                errands.notice(&message);
                self.keep_whole(&decision, now)?;
                continue;
            }
            self.decide(&decision, now)?;
            made = true;
        }
        Ok(made)
    }

    /// A result whose full text could not be written stays whole for good.
    fn keep_whole(&mut self, decision: &Decision, now: Timestamp) -> Result<(), EngineError> {
        let DecisionKind::Spill { tool_use_id: Some(id), .. } = &decision.kind else { return Ok(()) };
        let kind = DecisionKind::Keep { tool_use_ids: vec![id.clone()] };
        let reason = String::from("its full text could not be written to disk");
        self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        Ok(())
    }
}

impl Engine {
    /// What one layer would do with a view now; nothing is done.
    pub fn plan(&self, layer: &dyn Layer, view: &View, now: Timestamp) -> Act {
        self.plan_at(layer, view, now, view.size().tokens)
    }

    /// What the layers would do later with a view, each at the moments that it waits for; nothing is done.
    pub fn foresee(&self, view: &View, now: Timestamp) -> Vec<Foreseen> {
        let situation = self.situation(view, now, view.size().tokens);
        LAYERS.iter().flat_map(|layer| layer.foresee(&situation)).collect()
    }

    /// Whether a request that only keeps the cache warm is worth its price now.
    pub(crate) fn ping(&self, view: &View, now: Timestamp) -> Ping {
        pal_context::ping(&self.situation(view, now, view.size().tokens))
    }

    /// The same, where the context is known to have another size than it is taken for.
    pub(crate) fn plan_at(&self, layer: &dyn Layer, view: &View, now: Timestamp, size: u64) -> Act {
        layer.act(&self.situation(view, now, size))
    }

    fn situation<'a>(&'a self, view: &'a View, now: Timestamp, size: u64) -> Situation<'a> {
        Situation {
            view,
            now,
            limits: &self.limits,
            policy: &self.policy,
            place: &self.place,
            blocked_by: self.inputs.blocked_by.as_deref(),
            size,
        }
    }
}

/// Whether an act changes what the model sees; noting that something stays as it is does not.
fn changes_what_is_seen(what: &What) -> bool {
    match what {
        What::Nothing | What::AskProvider { .. } | What::Stop => false,
        What::Fold(_) | What::Compact => true,
        What::Decide(proposals) => proposals.iter().any(|proposal| {
            !matches!(proposal.decision.kind, DecisionKind::Keep { .. } | DecisionKind::Latch { .. })
        }),
    }
}

/// The order of a compaction that nobody asked for.
pub(crate) fn automatic(trigger: Trigger, engine: &Engine) -> Order {
    Order {
        trigger,
        reach: Reach::Whole,
        source: Source::main(),
        instructions: None,
        hook_instructions: None,
        notes: engine.inputs.notes.clone(),
        only: engine.ways.clone(),
        is_attended: engine.is_attended,
        world: Default::default(),
        standing: Standing::default(),
    }
}
