//! The one value that all settings resolve to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_model::ModelCatalog;
use pal_view::{CacheTtl, CompactionThreshold, WindowSettings};
use secrecy::SecretString;
use smol_str::SmolStr;

use crate::error::SettingsError;
use crate::kill_switches::{KillSwitch, KillSwitches};
use crate::mcp_settings::{McpSettings, ProjectSettings};
use crate::other_agents::ClaudePlugin;
use crate::resolve::{Resolution, SettingEntry, resolve};
use crate::setting_values::{SettingValues, threshold};
use crate::sources::{ResolvedSetting, SettingsInput, SettingsSource};
use crate::stored_keys::{StoredKey, StoredKeys};
use crate::telemetry_settings::{LogSettings, TelemetrySettings};
use crate::trust::ProjectTrust;

/// All settings, resolved.
#[derive(Clone)]
pub struct Settings {
    /// Where our files live, if a home is known.
    pub home: Option<PathBuf>,
    /// The user's own home.
    pub user_home: Option<PathBuf>,
    /// The name of the user's shell.
    pub shell: Option<String>,
    /// The model table, the user's on top.
    pub cards: ModelCatalog,
    /// The model that is asked, if one is chosen.
    pub model: Option<SmolStr>,
    /// The model for small questions, if one is chosen.
    pub small_model: Option<SmolStr>,
    /// Maximum bytes of memories added until a compaction.
    pub max_memory_bytes: u64,
    /// The folder of a model by which memories are found that say the same in other words.
    pub embeddings: Option<PathBuf>,
    /// Notes of the session.
    pub notes: NoteSettings,
    /// Daily token budget of background work.
    pub background_tokens_daily: u64,
    /// Sections of the system prompt that the user chooses.
    pub prompt: PromptSettings,
    /// Extraction and consolidation of memories.
    pub memory: MemorySettings,
    /// Interval of progress lines of agents by the small model.
    pub progress_interval: Duration,
    /// Reasoning effort; none for the model's default.
    pub effort: Option<SmolStr>,
    /// TTL of cache breakpoints; none leaves the choice to the policy.
    pub cache_ttl: Option<CacheTtl>,
    /// The account has used up its prepaid quota.
    pub is_in_overage: bool,
    /// Maximum retries of a request that failed before its response began.
    pub max_retries: u32,
    /// Where providers are asked.
    pub endpoints: ProviderEndpoints,
    /// Keys of providers.
    pub secrets: ProviderSecrets,
    /// The provider of the model, if one is chosen.
    pub provider: Option<SmolStr>,
    /// Environment variables for this program and everything that it starts.
    pub variables: BTreeMap<String, String>,
    /// Files of other agents that were read.
    pub imported: ImportedSettings,
    /// Permission mode and rules.
    pub permissions: PermissionSettings,
    /// The fence around shell commands.
    pub sandbox: SandboxSettings,
    /// Allows pages of this machine and its local network.
    pub web_private_addresses: bool,
    /// Asks the provider about a model without a card.
    pub refresh_models: bool,
    /// Tools that the model finds by searching instead of having them in its list.
    pub deferred_tools: Vec<String>,
    /// Variables that commands do not get to see.
    pub secret_variables: Vec<String>,
    /// Hooks of each place, far to near.
    pub hooks: Vec<ResolvedSetting<pal_hooks::HookConfig>>,
    /// MCP servers.
    pub mcp: McpSettings,
    /// The project that is worked on.
    pub project: ProjectSettings,
    /// Limits on turns, tokens and cost.
    pub spending: SpendingLimits,
    /// Prices from which on users are warned.
    pub alerts: CostAlerts,
    /// Token estimator.
    pub estimator: EstimatorSetting,
    /// Context policy by name; [`Settings::context_policy`] has its figures.
    pub policy: PolicySetting,
    /// Instruction files.
    pub instructions: InstructionSettings,
    /// Git queries at session start.
    pub git: GitSettings,
    /// Look and keys of the terminal.
    pub terminal: TerminalSettings,
    /// The user's editor.
    pub editor: Option<String>,
    /// Figures for a collector.
    pub telemetry: TelemetrySettings,
    /// The program's own log.
    pub logging: LogSettings,
    /// Timeout without a byte once a response has begun.
    pub idle_timeout: Duration,
    /// Limits on outputs that are kept on disk.
    pub output_limits: OutputLimits,
    /// Days for which sessions are kept.
    pub retention: SessionRetention,
    /// Limits on the provider's answers besides that.
    pub response_limits: ResponseLimits,
    /// Offset of the agent's clock.
    pub clock_offset: Duration,
    /// Subsystems that are switched off.
    pub switches: KillSwitches,
    /// Warnings about ignored or renamed settings.
    pub warnings: Vec<String>,
    window: WindowSettings,
    thresholds: BTreeMap<String, CompactionThreshold>,
    entries: Vec<SettingEntry>,
}

/// Token estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EstimatorSetting {
    /// Weights fitted to real sessions, per model generation.
    Calibrated,
    /// 4 bytes a token, 2 for JSON, 2 000 for media, × 4/3.
    Classic,
}

/// Context policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicySetting {
    /// Thresholds.
    Threshold,
    /// Lowest expected cost.
    CostAware,
}

/// Where providers are asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderEndpoints {
    /// Claude; the provider's own address if there is none.
    pub anthropic: Option<String>,
    /// GPT and compatible servers; the provider's own address if there is none.
    pub openai: Option<String>,
    /// Allows unencrypted HTTP to other machines.
    pub allows_plain_http: bool,
    /// Amazon Bedrock.
    pub bedrock: BedrockSettings,
    /// Google Vertex AI.
    pub vertex: VertexSettings,
}

/// Settings of Amazon Bedrock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BedrockSettings {
    /// AWS region.
    pub region: Option<String>,
    /// Profile in the credentials file.
    pub profile: String,
    /// Base URL; that of the region if there is none.
    pub base_url: Option<String>,
    /// Ids of models, each as `NAME=ID`.
    pub models: Vec<String>,
}

/// Settings of Google Vertex AI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VertexSettings {
    /// Google Cloud project.
    pub project: Option<String>,
    /// Region.
    pub region: String,
    /// Base URL; that of the region if there is none.
    pub base_url: Option<String>,
    /// Ids of models, each as `NAME=ID`.
    pub models: Vec<String>,
    /// Credentials file.
    pub credentials: Option<PathBuf>,
}

/// Keys of providers; their `Debug` form is masked.
#[derive(Clone, Default, Debug)]
pub struct ProviderSecrets {
    /// The key for Claude.
    pub anthropic_api_key: Option<SecretString>,
    /// The key for Claude that `pal login` stored; a variable goes before it.
    pub stored_anthropic_key: Option<StoredKey>,
    /// A command that prints the key for Claude.
    pub api_key_helper: Option<String>,
    /// A bearer token in its place.
    pub anthropic_auth_token: Option<SecretString>,
    /// The key for GPT.
    pub openai_api_key: Option<SecretString>,
    /// The key for GPT that `pal login` stored; a variable goes before it.
    pub stored_openai_key: Option<StoredKey>,
    /// AWS access key id.
    pub aws_access_key_id: Option<SecretString>,
    /// AWS secret access key.
    pub aws_secret_access_key: Option<SecretString>,
    /// AWS session token.
    pub aws_session_token: Option<SecretString>,
    /// Access token for Google Cloud.
    pub google_access_token: Option<SecretString>,
    /// Headers for the collector of figures.
    pub telemetry_headers: Option<SecretString>,
}

/// Permission mode, rules and directories.
#[derive(Clone, PartialEq, Debug)]
pub struct PermissionSettings {
    /// The mode by its name.
    pub mode: SmolStr,
    /// Rules for calls that need no asking.
    pub allow: Vec<ResolvedSetting<String>>,
    /// Rules for calls that are asked about.
    pub ask: Vec<ResolvedSetting<String>>,
    /// Rules for calls that are refused.
    pub deny: Vec<ResolvedSetting<String>>,
    /// Directories besides the project that sessions may work in.
    pub directories: Vec<PathBuf>,
    /// Source that forbids the mode bypass, if any.
    pub bypass_forbidden_by: Option<String>,
}

/// Settings files of other agents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportedSettings {
    /// Files that were read.
    pub files: Vec<PathBuf>,
    /// Notices about parts without effect here, one for each file.
    pub unused: Vec<String>,
    /// Plugins of Claude Code that are loaded.
    pub plugins: Vec<ClaudePlugin>,
}

/// The fence around shell commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SandboxSettings {
    /// When it stands.
    pub when: SandboxSetting,
    /// Allows network access inside the sandbox.
    pub network: bool,
    /// Folders that they may write to besides the workspace and temporary files.
    pub writable: Vec<PathBuf>,
}

/// When shell commands are fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SandboxSetting {
    /// For commands that no rule and no user allowed, and in bypass mode.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Limits on turns, tokens and cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpendingLimits {
    /// Most answers to one prompt.
    pub turns_max: Option<u64>,
    /// Most tokens of a session.
    pub tokens_max: Option<u64>,
    /// Most US dollars of a session.
    pub cost_usd_max: Option<f64>,
    /// Most US dollars of one subagent.
    pub subagent_usd_max: Option<f64>,
    /// Most US dollars of all sessions of a day (UTC).
    pub daily_usd_max: Option<f64>,
    /// Token budget that the model sees.
    pub task_budget: Option<u64>,
    /// Most tokens of one answer.
    pub output_tokens_max: u64,
    /// Answers in a row that bring nothing new before a run ends.
    pub stalled_turns_max: u64,
    /// Answers in a row without a call that succeeds with a new result before a run ends.
    pub fruitless_turns_max: u64,
}

/// Prices in US dollars from which on users are warned; none for never.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CostAlerts {
    /// Price of a prompt into an expired cache.
    pub cold_turn: Option<f64>,
    /// Price of an unexpected cache break.
    pub cache_break: Option<f64>,
}

/// Sections of the system prompt that the user chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromptSettings {
    /// Language that the agent writes in.
    pub language: Option<String>,
    /// Name of the output style.
    pub output_style: Option<String>,
    /// Gives each session a directory for temporary files.
    pub scratchpad: bool,
    /// Directs subagents instead of working.
    pub is_coordinator: bool,
    /// Works on without asking.
    pub is_proactive: bool,
    /// Suggests the next prompt after each turn.
    pub suggests: bool,
}

/// Days for which removed and inactive sessions are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionRetention {
    /// Days without activity after which a session is moved to the trash; none to keep all.
    pub inactive_days: Option<u64>,
    /// Days after which a session in the trash is deleted.
    pub trash_days: u64,
}

/// Look and keys of the terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TerminalSettings {
    /// Name of the theme.
    pub theme: String,
    /// Keys of vi in the prompt editor.
    pub has_vi_keys: bool,
    /// Command of the status line.
    pub status_line: Option<String>,
}

/// Limits on spilled results and outputs of commands on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputLimits {
    /// Maximum size of one command's output.
    pub command_bytes_max: u64,
    /// Maximum size of all of them, in all sessions.
    pub total_bytes_max: u64,
}

/// Limits on the time and size of the provider's answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponseLimits {
    /// Time to connect.
    pub connect: Duration,
    /// Time in which the provider has to take the next piece of a request.
    pub send: Duration,
    /// Time from the end of a request to the headers of its answer; none for what suits the provider.
    pub headers: Option<Duration>,
    /// Time from the headers to the first content.
    pub first_event: Duration,
    /// Time between two pieces of content.
    pub content_gap: Duration,
    /// Time for one whole answer.
    pub answer: Duration,
    /// Maximum size of one answer.
    pub bytes_max: usize,
}

/// Notes of a session: who keeps them, and when they are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoteSettings {
    /// Writer; none if notes are off.
    pub writer: Option<NoteWriter>,
    /// Size of the conversation at which notes are first written.
    pub first_tokens: u64,
    /// By how many tokens it grows at least before they are written again.
    pub growth_tokens: u64,
    /// Minimum growth as 1/N of the visible context.
    pub growth_share: u64,
    /// Minimum tool calls between two updates.
    pub calls: usize,
}

/// Writer of the session notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteWriter {
    /// A fork of the conversation.
    Fork,
    /// The agent itself, in passing.
    Main,
}

/// Extraction and consolidation of memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySettings {
    /// Extracts memories when a conversation comes to rest.
    pub extracts: bool,
    /// Minimum new tokens before an extraction.
    pub min_tokens: u64,
    /// Maximum wait for an extraction before the program exits.
    pub wait_at_exit: Duration,
    /// Consolidates memories in the background.
    pub dreams: bool,
    /// Minimum time between two consolidations.
    pub dream_every: Duration,
    /// Minimum other sessions between two consolidations.
    pub dream_sessions: usize,
}

/// Instruction files.
#[derive(Clone, PartialEq, Debug)]
pub struct InstructionSettings {
    /// Reads instruction files.
    pub is_on: bool,
    /// Size that brings a warning, in tokens.
    pub tokens_max: u64,
    /// Leaves out the largest files beyond that size.
    pub drops_largest: bool,
    /// Files and folders outside of projects that may be included.
    pub allowed: Vec<PathBuf>,
    /// Paths and globs of more instruction files, with their sources.
    pub listed: Vec<ResolvedSetting<String>>,
}

/// Git queries at session start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GitSettings {
    /// Runs git at all.
    pub is_on: bool,
    /// For how long.
    pub limit: Duration,
}

impl Settings {
    /// Reads all places.
    pub fn read(sources: SettingsInput) -> Result<Settings, SettingsError> {
        let Resolution { mut entries, mut warnings, unused, imported, plugins, trust, .. } =
            resolve(&sources)?;
        let stored = sources.home.as_deref().map(StoredKeys::read).transpose()?.unwrap_or_default();
        stored.show_in(&mut entries, sources.home.as_deref());
        let user_home = sources.user_home();
        let values = SettingValues { entries: &entries, home: user_home.as_deref() };
        let (window, thresholds) = windows(&values);
        let switches = KillSwitches::new(values.items("disabled"), sources.home.as_deref());
        let mut imported = ImportedSettings { files: imported, unused, plugins };
        let hooks = hooks(&values, &mut warnings, &mut imported);
        let secret = |name: &str| sources.variable(name).map(|text| SecretString::from(text.trim()));
        // The key of another server must not go to OpenAI, nor the other way round.
        let openai_variable = values.text("openai.key_variable");
        let openai_key = secret(openai_variable.as_deref().unwrap_or("OPENAI_API_KEY"));
        // Other programs read these as well: what is wrong with one must not matter before it is used.
        let common = |name: &str| {
            sources.variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let shell = sources.variable("SHELL").and_then(|shell| Path::new(shell).file_name());
        Ok(Settings {
            shell: shell.map(|name| name.to_string_lossy().into_owned()),
            model: values.text("model").map(SmolStr::from),
            small_model: values.text("small_model").map(SmolStr::from),
            max_memory_bytes: values.count("max_memory_bytes").unwrap_or(60_000),
            embeddings: values.path("embeddings"),
            notes: notes(&values),
            background_tokens_daily: values.count("background_tokens_daily").unwrap_or(0),
            prompt: prompt(&values),
            terminal: terminal(&values),
            memory: MemorySettings {
                extracts: values.is_on("extraction"),
                min_tokens: values.count("extraction_tokens").unwrap_or_default(),
                wait_at_exit: Duration::from_secs(values.count("extraction_wait_s").unwrap_or_default()),
                dreams: values.is_on("dreaming"),
                dream_every: Duration::from_secs(values.count("dream_hours").unwrap_or(24) * 3_600),
                dream_sessions: usize::try_from(values.count("dream_sessions").unwrap_or(5))
                    .unwrap_or(usize::MAX),
            },
            progress_interval: Duration::from_secs(values.count("progress_interval_s").unwrap_or(30)),
            effort: values.text("effort").map(SmolStr::from),
            cache_ttl: match values.text("cache_ttl").as_deref() {
                Some("1h") => Some(CacheTtl::Hour1),
                Some("5m") => Some(CacheTtl::Minutes5),
                _ => None,
            },
            is_in_overage: values.is_on("account_in_overage"),
            max_retries: values
                .count("max_retries")
                .and_then(|count| count.try_into().ok())
                .unwrap_or(u32::MAX),
            endpoints: ProviderEndpoints {
                anthropic: values.text("anthropic.base_url"),
                openai: values.text("openai.base_url"),
                allows_plain_http: values.is_on("allow_plain_http"),
                bedrock: BedrockSettings {
                    region: values.text("bedrock.region"),
                    profile: values.text("bedrock.profile").unwrap_or_else(|| String::from("default")),
                    base_url: values.text("bedrock.base_url"),
                    models: values.texts("bedrock.models"),
                },
                vertex: VertexSettings {
                    project: values.text("vertex.project"),
                    region: values.text("vertex.region").unwrap_or_else(|| String::from("global")),
                    base_url: values.text("vertex.base_url"),
                    models: values.texts("vertex.models"),
                    credentials: values.path("vertex.credentials"),
                },
            },
            secrets: ProviderSecrets {
                anthropic_api_key: secret("ANTHROPIC_API_KEY"),
                stored_anthropic_key: stored.anthropic,
                api_key_helper: values.text("api_key_helper"),
                anthropic_auth_token: secret("ANTHROPIC_AUTH_TOKEN"),
                openai_api_key: openai_key,
                stored_openai_key: stored.openai.filter(|_| openai_variable.is_none()),
                aws_access_key_id: secret("AWS_ACCESS_KEY_ID"),
                aws_secret_access_key: secret("AWS_SECRET_ACCESS_KEY"),
                aws_session_token: secret("AWS_SESSION_TOKEN"),
                google_access_token: secret("CLOUDSDK_AUTH_ACCESS_TOKEN"),
                telemetry_headers: secret("OTEL_EXPORTER_OTLP_HEADERS"),
            },
            permissions: permissions(&values),
            sandbox: sandbox(&values),
            web_private_addresses: values.is_on("web_private_addresses"),
            refresh_models: values.is_on("refresh_models"),
            deferred_tools: values.texts("deferred_tools"),
            secret_variables: values.texts("secret_variables"),
            hooks,
            mcp: McpSettings::new(&values),
            project: ProjectSettings {
                top: sources.project.clone(),
                is_trusted: trust == ProjectTrust::Yes,
                trust,
            },
            imported,
            variables: values.texts_by_name("env"),
            provider: values.text("provider").map(SmolStr::from),
            spending: spending(&values),
            alerts: alerts(&values),
            estimator: match values.text("estimator").as_deref() {
                Some("classic") => EstimatorSetting::Classic,
                _ => EstimatorSetting::Calibrated,
            },
            policy: match values.text("policy").as_deref() {
                Some("threshold") => PolicySetting::Threshold,
                _ => PolicySetting::CostAware,
            },
            instructions: InstructionSettings {
                is_on: values.is_on("instructions"),
                tokens_max: values.count("max_instruction_tokens").unwrap_or(u64::MAX),
                drops_largest: values.is_on("drop_large_instructions"),
                allowed: values.paths("allow_includes"),
                listed: values.items("instruction_files"),
            },
            git: GitSettings {
                is_on: values.is_on("git"),
                limit: Duration::from_millis(values.count("git_timeout_ms").unwrap_or(0)),
            },
            editor: values.text("editor"),
            telemetry: TelemetrySettings {
                is_on: values.is_on("telemetry.enabled"),
                endpoint: values.text("telemetry.endpoint").or_else(|| common("OTEL_EXPORTER_OTLP_ENDPOINT")),
                with_content: values.is_on("telemetry.content"),
                service_name: values.text("telemetry.service_name").unwrap_or_default(),
            },
            logging: LogSettings {
                filter: values.text("log").filter(|filter| !filter.trim().is_empty()),
                file: values.text("log_file").map(PathBuf::from),
            },
            idle_timeout: Duration::from_secs(values.count("idle_timeout_s").unwrap_or(90)),
            response_limits: response_limits(&values),
            retention: SessionRetention {
                inactive_days: values.count("keep_sessions_days").filter(|days| *days > 0),
                trash_days: values.count("keep_trash_days").unwrap_or(30),
            },
            output_limits: OutputLimits {
                command_bytes_max: values
                    .count("max_command_output_mb")
                    .unwrap_or(256)
                    .saturating_mul(1 << 20),
                total_bytes_max: values.count("max_outputs_mb").unwrap_or(2_048).saturating_mul(1 << 20),
            },
            clock_offset: Duration::from_secs(values.count("clock_offset_s").unwrap_or(0)),
            switches,
            warnings,
            window,
            thresholds,
            user_home,
            home: sources.home,
            cards: sources.cards.unwrap_or_else(ModelCatalog::built_in),
            entries,
        })
    }

    /// Every setting with its value and where that came from, in the order of the table.
    pub fn entries(&self) -> &[SettingEntry] {
        &self.entries
    }

    /// Windows and compaction for a model.
    pub fn window_for(&self, model: &str) -> WindowSettings {
        let threshold = self.thresholds.get(model).copied().unwrap_or(self.window.threshold);
        let auto_compact = self.window.auto_compact && self.compaction_off().is_none();
        WindowSettings { threshold, auto_compact, ..self.window }
    }

    /// True unless compaction is switched off, manual compaction included.
    pub fn may_compact(&self) -> bool {
        !self.switches.is_off(KillSwitch::Compact)
    }

    /// Variable or file that switched off compaction, or automatic compaction.
    pub fn compaction_off(&self) -> Option<String> {
        let off = |switch| self.switches.is_off(switch).then(|| self.switches.why(switch));
        off(KillSwitch::Compact).or_else(|| off(KillSwitch::AutoCompact))
    }
}

/// Windows, and thresholds of single models unless a nearer place gives one for all.
fn windows(values: &SettingValues<'_>) -> (WindowSettings, BTreeMap<String, CompactionThreshold>) {
    let mut window = WindowSettings::STANDARD;
    window.auto_compact = values.is_on("auto_compact");
    window.max_context_tokens = values.count("max_context_tokens");
    if let Some(threshold) = threshold(&values.value("threshold")) {
        window.threshold = threshold;
    }
    let place = |name| values.origin(name).map(|origin| origin.place);
    let by_model = values.value("thresholds");
    let by_model = by_model.as_object().filter(|_| place("threshold") <= place("thresholds"));
    let thresholds = by_model.into_iter().flatten();
    (window, thresholds.filter_map(|(model, value)| Some((model.clone(), threshold(value)?))).collect())
}

fn notes(values: &SettingValues<'_>) -> NoteSettings {
    let count = |name: &str| values.count(name).unwrap_or(0);
    NoteSettings {
        writer: match values.text("notes").as_deref() {
            Some("fork") => Some(NoteWriter::Fork),
            Some("main") => Some(NoteWriter::Main),
            _ => None,
        },
        first_tokens: count("notes_min_tokens"),
        growth_tokens: count("notes_growth_tokens"),
        growth_share: count("notes_growth_share"),
        calls: usize::try_from(count("notes_min_calls")).unwrap_or(usize::MAX),
    }
}

fn permissions(values: &SettingValues<'_>) -> PermissionSettings {
    PermissionSettings {
        mode: values.text("permissions.mode").map(SmolStr::from).unwrap_or_default(),
        allow: values.items("permissions.allow"),
        ask: values.items("permissions.ask"),
        deny: values.items("permissions.deny"),
        directories: values.paths("permissions.directories"),
        bypass_forbidden_by: (!values.is_on("permissions.allow_bypass"))
            .then(|| values.origin("permissions.allow_bypass").map(ToString::to_string).unwrap_or_default()),
    }
}

fn sandbox(values: &SettingValues<'_>) -> SandboxSettings {
    SandboxSettings {
        when: match values.text("sandbox").as_deref() {
            Some("on") => SandboxSetting::On,
            Some("off") => SandboxSetting::Off,
            _ => SandboxSetting::Auto,
        },
        network: values.is_on("sandbox_network"),
        writable: values.paths("sandbox_writable"),
    }
}

fn alerts(values: &SettingValues<'_>) -> CostAlerts {
    let above_zero = |name: &str| values.number(name).filter(|dollars| *dollars > 0.0);
    CostAlerts {
        cold_turn: above_zero("cold_turn_warning_usd"),
        cache_break: above_zero("cache_break_alarm_usd"),
    }
}

fn spending(values: &SettingValues<'_>) -> SpendingLimits {
    SpendingLimits {
        turns_max: values.count("max_turns"),
        tokens_max: values.count("max_tokens_total"),
        cost_usd_max: values.number("max_cost_usd"),
        subagent_usd_max: values.number("max_subagent_cost_usd"),
        daily_usd_max: values.number("max_daily_cost_usd"),
        task_budget: values.count("task_budget_tokens"),
        output_tokens_max: values.count("max_output_tokens").unwrap_or(u64::MAX),
        stalled_turns_max: values.count("max_stalled_turns").unwrap_or(8),
        fruitless_turns_max: values.count("max_fruitless_turns").unwrap_or(50),
    }
}

fn prompt(values: &SettingValues<'_>) -> PromptSettings {
    let named = |name: &str| values.text(name).filter(|text| !text.trim().is_empty());
    PromptSettings {
        language: named("language"),
        output_style: named("output_style"),
        scratchpad: values.is_on("scratchpad"),
        is_coordinator: values.is_on("coordinator"),
        is_proactive: values.is_on("proactive"),
        suggests: values.is_on("prompt_suggestions"),
    }
}

fn terminal(values: &SettingValues<'_>) -> TerminalSettings {
    TerminalSettings {
        theme: values.text("theme").unwrap_or_default(),
        has_vi_keys: values.text("editor_mode").as_deref() == Some("vim"),
        status_line: values.text("status_line").filter(|command| !command.trim().is_empty()),
    }
}

fn response_limits(values: &SettingValues<'_>) -> ResponseLimits {
    let seconds = |name: &str, default| Duration::from_secs(values.count(name).unwrap_or(default));
    let megabytes = usize::try_from(values.count("max_response_mb").unwrap_or(32)).unwrap_or(usize::MAX);
    ResponseLimits {
        connect: seconds("connect_timeout_s", 10),
        send: seconds("send_timeout_s", 30),
        headers: values.count("header_timeout_s").map(Duration::from_secs),
        first_event: seconds("first_event_timeout_s", 1_200),
        content_gap: seconds("content_gap_timeout_s", 1_200),
        answer: seconds("response_timeout_s", 3_600),
        bytes_max: megabytes.saturating_mul(1 << 20),
    }
}

/// Hooks of each source. Unsupported ones are reported: those of other agents once, our own at every start.
fn hooks(
    values: &SettingValues<'_>,
    warnings: &mut Vec<String>,
    imported: &mut ImportedSettings,
) -> Vec<ResolvedSetting<pal_hooks::HookConfig>> {
    let mut hooks = Vec::new();
    for part in values.parts("hooks").iter().filter(|part| part.origin.place != SettingsSource::Default) {
        // Our own files are checked before; hooks of another agent that are not understood stand guard.
        let config = pal_hooks::HookConfig::parse(&part.value);
        let config = config.unwrap_or_else(|_| pal_hooks::HookConfig::parse_guarded(&part.value));
        let notices = config.notices.iter().map(|notice| format!("{}: {notice}", part.origin));
        match imported.files.iter().any(|file| file.as_os_str() == part.origin.source.as_str()) {
            true => imported.unused.extend(notices),
            false => warnings.extend(notices),
        }
        hooks.push(ResolvedSetting { value: config, origin: part.origin.clone() });
    }
    hooks
}
