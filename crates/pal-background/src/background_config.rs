//! Configuration of background work.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pal_engine::CacheSettings;
use pal_model::RequestSource;
use pal_permissions::RuleSet;
use pal_project::InstructionSearch;
use pal_provider::ProviderConnection;
use pal_run::ProgressLimits;
use pal_tools::SandboxOptions;
use pal_view::{Lens, WindowLimits};

use crate::background_budget::BackgroundBudget;
use crate::clock::Clock;
use crate::fork_runner::ForkModel;
use crate::timed_exchange::ExchangeListener;

/// Everything that background work takes over from the agent that it works for.
#[derive(Clone)]
pub struct BackgroundConfig {
    /// Home directory of the program.
    pub home: PathBuf,
    /// Directories of the project, and the user's home.
    pub search: InstructionSearch,
    /// Model and connection.
    pub model: BackgroundModel,
    /// Maximum tokens of all background work per day, over all processes.
    pub tokens_daily: u64,
    /// Permission rules; those that allow something do not count.
    pub rules: RuleSet,
    /// Environment variables hidden from commands.
    pub secret_variables: Vec<String>,
    /// Sandbox of commands; none if switched off.
    pub sandbox: Option<SandboxOptions>,
    /// The clock.
    pub clock: Clock,
    /// Returns the date as the model reads it.
    pub today: fn() -> String,
    /// Name of the program in the prompt.
    pub attribution: String,
}

/// Model and connection of background work.
#[derive(Clone)]
pub struct BackgroundModel {
    /// Connection to the provider.
    pub connection: Arc<ProviderConnection>,
    /// Model and token estimator.
    pub lens: Lens,
    /// Token limits of the window.
    pub limits: WindowLimits,
    /// Parameters that the provider's cache depends on.
    pub cache: CacheSettings,
    /// Limits on turns without progress.
    pub progress: ProgressLimits,
}

/// Extraction of memories from a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtractionOptions {
    /// Minimum new tokens since the last run; 0 for any user message.
    pub tokens_least: u64,
}

/// Gates of background consolidation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DreamGateSettings {
    /// Turns dreams on.
    pub is_on: bool,
    /// Minimum time since the last dream.
    pub every: Duration,
    /// Minimum number of other sessions since then.
    pub sessions: usize,
}

impl BackgroundConfig {
    /// Returns the budget of a session's background work.
    pub fn budget(&self, session: &str) -> BackgroundBudget {
        BackgroundBudget::new(&self.home, self.tokens_daily, session, Arc::clone(&self.model.connection))
    }

    /// Returns the model of a fork whose requests have this source.
    pub(crate) fn fork_model(
        &self,
        source: RequestSource,
        listener: Arc<dyn ExchangeListener>,
        budget: Arc<BackgroundBudget>,
    ) -> ForkModel {
        ForkModel {
            connection: Arc::clone(&self.model.connection),
            card: self.model.lens.card.clone(),
            source,
            listener,
            budget,
            clock: self.clock,
        }
    }
}
