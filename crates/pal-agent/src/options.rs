//! Options of an agent, grouped by topic.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pal_background::{BackgroundConfig, BackgroundModel, Clock, DreamGateSettings, ExtractionOptions};
use pal_context::NotesCadence;
use pal_engine::{CacheSettings, SessionConfig};
use pal_events::PermissionAsker;
use pal_memory::MemoryLocation;
use pal_model::{EntryId, SharedText, Timestamp, ToolUseId};
use pal_permissions::{PermissionMode, RuleSet};
use pal_prompt::PromptOverrides;
use pal_provider::ProviderConnection;
use pal_run::RunSettings;
use pal_settings::{CostAlerts, KillSwitch, KillSwitches, NoteWriter, OutputLimits};
use pal_tools::{FileCheckpoints, PluginDefinitions, SandboxOptions};
use pal_view::{Lens, WindowLimits};
use smol_str::SmolStr;

use crate::parent_agent::ParentAgent;

/// Everything an agent is made of.
#[derive(Clone)]
pub struct AgentOptions {
    /// Home directory of the program.
    pub home: PathBuf,
    /// Origin of the session.
    pub origin: SessionOrigin,
    /// Model, connection and context policy of an agent.
    pub model: ModelOptions,
    /// Search paths of instruction files, the working directory, and git queries.
    pub sources: pal_project::ProjectQuery,
    /// System prompt of an agent.
    pub prompt: PromptOptions,
    /// Permissions of an agent.
    pub permissions: PermissionOptions,
    /// Hook configurations, from the farthest to the nearest.
    pub hooks: Vec<pal_hooks::HookConfig>,
    /// Tools of an agent.
    pub tools: ToolOptions,
    /// MCP servers.
    pub mcp: McpOptions,
    /// Kill switches.
    pub switches: KillSwitches,
    /// The clock.
    pub clock: Clock,
    /// Place of an agent among others, and of those it starts.
    pub subagent: SubagentOptions,
    /// Memory of an agent.
    pub memory: MemoryOptions,
    /// Background work of an agent.
    pub background: BackgroundOptions,
}

/// Model, connection and context policy of an agent.
#[derive(Clone)]
pub struct ModelOptions {
    /// Model and token estimator.
    pub lens: Lens,
    /// Token limits of the window.
    pub limits: WindowLimits,
    /// Policy of the context layers.
    pub policy: pal_context::ContextPolicy,
    /// Parameters that the provider's cache depends on.
    pub cache: CacheSettings,
    /// Connection to the provider.
    pub connection: Arc<ProviderConnection>,
    /// Limits of one prompt.
    pub run: RunSettings,
    /// Other models that the same connection reaches.
    pub lookup: ModelLookup,
    /// Prices from which on the user is warned.
    pub alerts: CostAlerts,
    /// Model that answers the rest of a prompt if the model is overloaded; none to fail.
    pub fallback: Option<ModelProfile>,
    /// Budget of all sessions of a day, in US dollars.
    pub daily_max: Option<f64>,
    /// Reports every step of a response ([`pal_events::AgentEvent::Progress`]), not only its text.
    pub reports_progress: bool,
}

/// System prompt of an agent.
#[derive(Clone)]
pub struct PromptOptions {
    /// Prompts that replace or extend the default.
    pub prompts: PromptOverrides,
    /// Language that the agent writes in.
    pub language: Option<String>,
    /// Name of the output style.
    pub output_style: Option<String>,
    /// Attaches files and folders that a prompt mentions with `@`.
    pub attaches_mentions: bool,
    /// Gives the session a directory for temporary files.
    pub scratchpad: bool,
    /// Name of the program in the prompt.
    pub attribution: String,
    /// Version of the program.
    pub version: String,
    /// Returns the date as the model reads it.
    pub today: fn() -> String,
}

/// Permissions of an agent.
#[derive(Clone)]
pub struct PermissionOptions {
    /// Permission mode.
    pub mode: PermissionMode,
    /// True if the mode was chosen for this run and overrides that of a resumed session.
    pub is_mode_chosen: bool,
    /// Permission rules.
    pub rules: RuleSet,
    /// Asks a person; none if the agent runs unattended.
    pub asker: Option<PermissionAsker>,
    /// True to start in plan mode.
    pub begins_planning: bool,
    /// False to refuse the mode bypass, from every source.
    pub allows_bypass: bool,
    /// True if a program answers instead of a person.
    pub is_asking_program: bool,
}

/// Pauses of the person who talks with an agent.
#[derive(Clone, Copy)]
pub struct PauseOptions {
    /// True if a driving program passes on the prompts of a person.
    pub is_person_driving: bool,
    /// Returns the local hour of the day.
    pub local_hour: fn(Timestamp) -> u8,
}

/// Tools of an agent.
#[derive(Clone)]
pub struct ToolOptions {
    /// Names of tools that are not offered.
    pub without: Vec<SmolStr>,
    /// Names of tools that the model finds through search only.
    pub deferred: Vec<SmolStr>,
    /// Sandbox of commands; none if switched off.
    pub sandbox: Option<SandboxOptions>,
    /// Disk limits of spilled results and command outputs.
    pub outputs: OutputLimits,
    /// Environment variables hidden from commands.
    pub secret_variables: Vec<String>,
    /// Checkpoints of changed files; none for those of the session itself.
    pub checkpoints: Option<Arc<FileCheckpoints>>,
    /// Allows fetching pages of this machine and its private network.
    pub allows_private_addresses: bool,
    /// Schema of the output that each prompt must end with; none for plain text.
    pub output_schema: Option<OutputSchema>,
    /// Skills and agents of installed plugins.
    pub plugins: Vec<PluginDefinitions>,
}

/// Schema of structured output.
#[derive(Clone)]
pub struct OutputSchema {
    /// JSON Schema of an object.
    pub schema: SharedText,
    /// Checks an output; the error says what does not fit.
    pub check: OutputCheck,
}

/// Checks a JSON text against a schema.
pub type OutputCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Place of an agent among others, and of those it starts.
#[derive(Clone)]
pub struct SubagentOptions {
    /// Directory of the session; none for the default among the project's sessions.
    pub folder: Option<PathBuf>,
    /// Number of agents above this one.
    pub depth: usize,
    /// Name and kind, if another agent started it.
    pub identity: Option<(String, String)>,
    /// Agent that started it in this process; none for a teammate or a session of a person.
    pub parent: Option<Arc<dyn ParentAgent>>,
    /// Command that starts this program as a teammate ([`crate::work_as_teammate`]); none if there are no teammates.
    pub teammate_command: Option<TeammateCommand>,
    /// Interval of progress lines for running subagents (§8.6); none for never.
    pub progress_every: Option<Duration>,
    /// Maximum cost of each subagent, in US dollars.
    pub cost_max: Option<f64>,
    /// Definitions of agents that were given with the options; they beat those of files.
    pub definitions: Vec<pal_tools::AgentDefinition>,
}

/// Memory of an agent.
#[derive(Clone)]
pub struct MemoryOptions {
    /// Memory directory; none if nothing is remembered.
    pub place: Option<MemoryLocation>,
    /// Names of tools that the agent has for its memories only.
    pub tools: Vec<SmolStr>,
    /// Maximum bytes of prefetched memories between two compactions.
    pub bytes_max: u64,
    /// Extraction of memories from the conversation; none for never.
    pub extraction: Option<ExtractionOptions>,
    /// Gates of background consolidation; none for never.
    pub dreams: Option<DreamGateSettings>,
}

/// Background work of an agent.
#[derive(Clone)]
pub struct BackgroundOptions {
    /// Writer and cadence of session notes; none for no notes.
    pub notes: Option<(NoteWriter, NotesCadence)>,
    /// Maximum tokens of all background work per day, over all processes.
    pub tokens_daily: u64,
    /// Suggests the next prompt after each turn.
    pub suggests: bool,
    /// Pauses of the person who talks with the agent.
    pub pauses: PauseOptions,
}

/// Returns the command that starts this program as a teammate.
pub type TeammateCommand = Arc<dyn Fn() -> std::process::Command + Send + Sync>;

/// Looks up a model by name; none if this connection does not reach it. Without a name, returns the smallest
/// one.
pub type ModelLookup = Arc<dyn Fn(Option<&str>) -> Option<ModelProfile> + Send + Sync>;

/// A model of the same connection.
#[derive(Clone, Debug)]
pub struct ModelProfile {
    /// Model and token estimator.
    pub lens: Lens,
    /// Token limits of its window.
    pub limits: WindowLimits,
    /// Parameters that the provider's cache depends on.
    pub cache: CacheSettings,
    /// Limits of one prompt.
    pub run: RunSettings,
}

/// MCP servers and their limits.
#[derive(Clone, Debug)]
pub struct McpOptions {
    /// Server configurations.
    pub servers: Vec<pal_mcp::McpServerConfig>,
    /// Timeout of a server's start.
    pub start_limit: Duration,
    /// Timeout of a call.
    pub call_limit: Duration,
    /// Allows unencrypted connections to other machines.
    pub allows_plain_http: bool,
    /// Running servers of the agent that started this one, which are used instead.
    pub shared: Option<Arc<pal_mcp::ServerPool>>,
    /// The program that runs servers of the type `sdk`.
    pub host: Option<Arc<dyn pal_mcp::McpHost>>,
}

/// Origin of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionOrigin {
    /// A new session, with this id if given.
    New(Option<EntryId>),
    /// An existing session, by its log.
    Resumed(PathBuf),
    /// A copy of a session, by its log, with this id if given.
    Forked(PathBuf, Option<EntryId>),
    /// A copy up to the response that made a call: the start of a fork.
    Branched {
        /// Log of the original.
        of: PathBuf,
        /// The call.
        call: ToolUseId,
    },
}

impl AgentOptions {
    /// Returns whether a person talks with the agent: subagents report to the agent that started them.
    pub(crate) fn is_attended(&self) -> bool {
        let is_person = self.permissions.asker.is_some() && !self.permissions.is_asking_program;
        is_person && self.subagent.identity.is_none()
    }

    /// Returns whether the pauses before prompts are those of a person, in person or through a driving program.
    pub(crate) fn is_paused_by_person(&self) -> bool {
        self.is_attended() || (self.background.pauses.is_person_driving && self.subagent.identity.is_none())
    }

    /// Returns the part of the options that background work needs.
    pub fn background_config(&self) -> BackgroundConfig {
        let model = &self.model;
        BackgroundConfig {
            home: self.home.clone(),
            search: self.sources.search.clone(),
            model: BackgroundModel {
                connection: Arc::clone(&model.connection),
                lens: model.lens.clone(),
                limits: model.limits,
                cache: model.cache.clone(),
                progress: model.run.progress,
            },
            tokens_daily: self.background.tokens_daily,
            rules: self.permissions.rules.clone(),
            secret_variables: self.tools.secret_variables.clone(),
            sandbox: self.tools.sandbox.clone(),
            clock: self.clock,
            today: self.prompt.today,
            attribution: self.prompt.attribution.clone(),
        }
    }

    /// Returns the model that writes summaries, or the reason why the chosen one cannot; none for the session's own.
    pub(crate) fn compaction_lens(&self) -> Option<Result<Lens, String>> {
        let name = self.model.policy.compaction_model.as_deref()?;
        match (self.model.lookup)(Some(name)) {
            Some(found) if found.lens.card.model == self.model.lens.card.model => None,
            Some(found) => Some(Ok(found.lens)),
            None => Some(Err(format!(
                "compaction.model: the provider of {} does not offer {name}; {} writes the summaries",
                self.model.lens.card.model, self.model.lens.card.model
            ))),
        }
    }

    /// Returns the configuration of the session whose log is `log`.
    pub(crate) fn session_config(&self, log: &std::path::Path) -> SessionConfig {
        let model = &self.model;
        let mut config =
            SessionConfig::for_log(log, model.policy.clone(), model.limits, model.run.output_tokens)
                .with_attended(self.is_attended())
                .with_cache(model.cache.clone());
        if model.policy.reactive_small_model {
            let small = (model.lookup)(None).map(|small| small.lens);
            config.compaction.reactive_lens = small.filter(|small| small.card.model != model.lens.card.model);
        }
        if let Some(Ok(lens)) = self.compaction_lens() {
            config.compaction.lens = Some(lens);
        }
        if self.switches.is_off(KillSwitch::Compact) { config.without_summaries() } else { config }
    }
}
