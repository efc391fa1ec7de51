//! The configuration of a session: what its layers do, the limits of its model, and its files.

use std::path::Path;

use pal_context::cache::TtlPreference;
use pal_context::cost_aware::{IdleCompactionVerdict, KeepaliveVerdict};
use pal_context::{
    CompactionRange, CompactionRequest, CompactionTrigger, ContextPolicy, LAYERS, Layer, LayerAction,
    LayerContext, LayerForecast, RequestParams, SessionNotes, SessionPaths, SummaryMethod,
};
use pal_model::{RequestSource, Timestamp};
use pal_view::{Lens, View, WindowLimits};
use smol_str::SmolStr;

/// Configuration of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Policy of the layers.
    pub policy: ContextPolicy,
    /// Token limits of the model's window.
    pub limits: WindowLimits,
    /// Paths of the session's files as the model sees them.
    pub paths: SessionPaths,
    /// True if a person can answer questions.
    pub is_attended: bool,
    /// Summary methods that may be tried; none for all. With an empty list, a request that is too long is not
    /// shortened either.
    pub summary_methods: Option<Vec<SummaryMethod>>,
    /// Maximum tokens of an answer.
    pub max_tokens: u64,
    /// Parameters that the provider's cache depends on.
    pub cache: CacheSettings,
    /// Inputs of compactions that are known in advance.
    pub compaction: CompactionSettings,
}

/// Request parameters that the provider's cache depends on, besides the content.
#[derive(Clone, Debug, Default)]
pub struct CacheSettings {
    /// TTL as the user wants it.
    pub ttl_preference: TtlPreference,
    /// Reasoning effort; none for the model's default.
    pub effort: Option<SmolStr>,
    /// Token budget of the session that the model sees; none where the provider has no budgets.
    pub task_budget: Option<u64>,
    /// Beta headers required by the model card and the task budget.
    pub betas: Vec<SmolStr>,
    /// Sends requests without cache breakpoints.
    pub breakpoints_off: bool,
    /// Disables the analysis of cache-read drops.
    pub watch_off: bool,
}

/// Inputs of compactions that are known in advance. Others come from
/// [`crate::CompactionObserver::before_compaction`] when a compaction starts.
#[derive(Clone, Debug, Default)]
pub struct CompactionSettings {
    /// Disables all compaction.
    pub compaction_off: bool,
    /// Name of the hook that currently blocks compaction.
    pub blocked_by: Option<String>,
    /// Notes of the session.
    pub notes: Option<SessionNotes>,
    /// Model that summarizes after a refusal, if its window holds the conversation; none for the session's own.
    pub reactive_lens: Option<Lens>,
    /// Model that writes all summaries, if its window holds the conversation; none for the session's own.
    pub lens: Option<Lens>,
}

impl SessionConfig {
    /// Returns the configuration of the session whose log is `log`: attended, with every summary method allowed.
    ///
    /// The one way to configure a session, for the command line, the terminal, editors and tests alike.
    pub fn for_log(
        log: &Path,
        policy: ContextPolicy,
        limits: WindowLimits,
        max_tokens: u64,
    ) -> SessionConfig {
        let directory = log.parent().unwrap_or(Path::new("/"));
        let paths = SessionPaths {
            directory: directory.display().to_string(),
            transcript: log.display().to_string(),
        };
        SessionConfig {
            policy,
            limits,
            paths,
            is_attended: true,
            summary_methods: None,
            max_tokens,
            cache: CacheSettings::default(),
            compaction: CompactionSettings::default(),
        }
    }

    /// Sets the parameters that the provider's cache depends on.
    pub fn with_cache(mut self, cache: CacheSettings) -> SessionConfig {
        self.cache = cache;
        self
    }

    /// Sets whether a person is there to answer questions.
    pub fn with_attended(mut self, is_attended: bool) -> SessionConfig {
        self.is_attended = is_attended;
        self
    }

    /// Forbids summaries of any kind: the conversation is never compacted.
    pub fn without_summaries(mut self) -> SessionConfig {
        self.summary_methods = Some(Vec::new());
        self
    }

    /// Returns the action that a layer would take now, without taking it.
    pub fn plan(&self, layer: &dyn Layer, view: &View, now: Timestamp) -> LayerAction {
        self.plan_at(layer, view, now, view.size().tokens)
    }

    /// Returns the actions that the layers expect to take later, without taking them.
    pub fn forecast(&self, view: &View, now: Timestamp) -> Vec<LayerForecast> {
        let situation = self.layer_context(view, now, view.size().tokens);
        LAYERS.iter().flat_map(|layer| layer.forecast(&situation)).collect()
    }

    /// Judges whether a keepalive request is worth its price now.
    pub(crate) fn ping(&self, view: &View, now: Timestamp) -> KeepaliveVerdict {
        pal_context::judge_keepalive(&self.layer_context(view, now, view.size().tokens))
    }

    /// Judges whether the conversation should be compacted now, in a pause.
    pub fn idle_compaction(&self, view: &View, now: Timestamp) -> IdleCompactionVerdict {
        pal_context::judge_idle_compaction(&self.layer_context(view, now, view.size().tokens))
    }

    /// Like [`SessionConfig::plan`], for a context of `size` tokens.
    pub(crate) fn plan_at(&self, layer: &dyn Layer, view: &View, now: Timestamp, size: u64) -> LayerAction {
        layer.act(&self.layer_context(view, now, size))
    }

    fn layer_context<'a>(&'a self, view: &'a View, now: Timestamp, size: u64) -> LayerContext<'a> {
        LayerContext {
            view,
            now,
            limits: &self.limits,
            policy: &self.policy,
            paths: &self.paths,
            blocked_by: self.compaction.blocked_by.as_deref(),
            size,
        }
    }

    /// Returns the request for a compaction of the whole conversation without instructions.
    pub(crate) fn compaction_request(&self, trigger: CompactionTrigger) -> CompactionRequest {
        CompactionRequest {
            trigger,
            reason: None,
            range: CompactionRange::Whole,
            source: RequestSource::main(),
            instructions: None,
            hook_instructions: None,
            notes: self.compaction.notes.clone(),
            methods: self.summary_methods.clone(),
            is_attended: self.is_attended,
            sources: Default::default(),
            params: RequestParams::default(),
        }
    }
}
