//! The one value that all settings resolve to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_model::Cards;
use pal_view::{CacheLifetime, Threshold, WindowSettings};
use secrecy::SecretString;
use smol_str::SmolStr;

use crate::error::SettingsError;
use crate::place::{Place, Resolved, Sources};
use crate::resolve::{Entry, resolve};
use crate::servers::{Project, Servers};
use crate::switches::{Switch, Switches};
use crate::telling::{Logging, Telemetry};
use crate::values::{Values, threshold};

/// What all parts of the program may need to know.
#[derive(Clone)]
pub struct Settings {
    /// Where our files live, if a home is known.
    pub home: Option<PathBuf>,
    /// The user's own home.
    pub user_home: Option<PathBuf>,
    /// The name of the user's shell.
    pub shell: Option<String>,
    /// The model table, the user's on top.
    pub cards: Cards,
    /// The model that is asked, if one is chosen.
    pub model: Option<SmolStr>,
    /// The model for small questions, if one is chosen.
    pub small_model: Option<SmolStr>,
    /// How many bytes of memories are handed over until a compaction.
    pub memory_bytes_max: u64,
    /// The folder of a model by which memories are found that say the same in other words.
    pub embeddings: Option<PathBuf>,
    /// Notes of the session.
    pub notes: NoteSettings,
    /// How many tokens all background work of a day may take.
    pub background_tokens_daily: u64,
    /// When memories are drawn from conversations and put in order.
    pub remembering: Remembering,
    /// Every how often the small model says what agents do.
    pub progress_every: Duration,
    /// How hard models shall think; none for their own measure.
    pub effort: Option<SmolStr>,
    /// For how long the provider's cache is asked to keep what is marked.
    pub cache_lifetime: CacheLifetime,
    /// How often a request that failed before its answer began is tried again.
    pub retries_max: u32,
    /// Where providers are asked.
    pub endpoints: Endpoints,
    /// Keys of providers.
    pub secrets: Secrets,
    /// What may be done without asking.
    pub permissions: Permissions,
    /// The fence around shell commands.
    pub sandbox: Sandbox,
    /// Whether pages of this machine and its own network may be fetched.
    pub web_private_addresses: bool,
    /// Tools that the model finds by searching instead of having them in its list.
    pub deferred_tools: Vec<String>,
    /// Variables that commands do not get to see.
    pub secret_variables: Vec<String>,
    /// Hooks of each place, far to near.
    pub hooks: Vec<Resolved<pal_hooks::Config>>,
    /// MCP servers.
    pub mcp: Servers,
    /// The project that is worked on.
    pub project: Project,
    /// How much may be spent.
    pub spending: Spending,
    /// How to estimate tokens.
    pub estimator: EstimatorName,
    /// What decides what the model sees.
    pub policy: PolicyName,
    /// How dear it is to `thrifty` that something leaves the context and is needed again, from 0 to 1.
    pub fidelity: f64,
    /// Whether `thrifty` may keep the provider's cache warm in a pause.
    pub pings: bool,
    /// Instruction files.
    pub instructions: Instructions,
    /// What is asked of git when a session starts.
    pub git: Git,
    /// The user's editor.
    pub editor: Option<String>,
    /// Figures for a collector.
    pub telemetry: Telemetry,
    /// What the program tells of its own work.
    pub logging: Logging,
    /// How long an answer that has begun may be silent.
    pub silence_limit: Duration,
    /// Limits on outputs that are kept on disk.
    pub output_limits: OutputLimits,
    /// Limits on the provider's answers besides that.
    pub answer_limits: AnswerLimits,
    /// How much the agent's clock is ahead.
    pub clock_ahead: Duration,
    /// Subsystems that are switched off.
    pub switches: Switches,
    /// What was ignored, and why.
    pub warnings: Vec<String>,
    window: WindowSettings,
    thresholds: BTreeMap<String, Threshold>,
    entries: Vec<Entry>,
}

/// A way to estimate tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EstimatorName {
    /// Weights fitted to real sessions, per model generation.
    Calibrated,
    /// 4 bytes a token, 2 for JSON, 2 000 for media, × 4/3.
    Classic,
}

/// What decides what the model sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyName {
    /// Thresholds.
    Classic,
    /// What is the cheapest from here on.
    Thrifty,
}

/// Where providers are asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoints {
    /// Claude; the provider's own address if there is none.
    pub anthropic: Option<String>,
    /// GPT and compatible servers; the provider's own address if there is none.
    pub openai: Option<String>,
    /// Whether other machines may be spoken to in the clear.
    pub allows_plain_http: bool,
}

/// Keys of providers. They show themselves to nobody.
#[derive(Clone, Default, Debug)]
pub struct Secrets {
    /// The key for Claude.
    pub anthropic_api_key: Option<SecretString>,
    /// A bearer token in its place.
    pub anthropic_auth_token: Option<SecretString>,
    /// The key for GPT.
    pub openai_api_key: Option<SecretString>,
    /// Headers for the collector of figures.
    pub telemetry_headers: Option<SecretString>,
}

/// What may be done without asking.
#[derive(Clone, PartialEq, Debug)]
pub struct Permissions {
    /// The mode by its name.
    pub mode: SmolStr,
    /// Rules for calls that need no asking.
    pub allow: Vec<Resolved<String>>,
    /// Rules for calls that are asked about.
    pub ask: Vec<Resolved<String>>,
    /// Rules for calls that are refused.
    pub deny: Vec<Resolved<String>>,
    /// Directories besides the project that sessions may work in.
    pub directories: Vec<PathBuf>,
}

/// The fence around shell commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// When it stands.
    pub when: SandboxWhen,
    /// Whether commands behind it reach the network.
    pub network: bool,
    /// Folders that they may write to besides the workspace and temporary files.
    pub writable: Vec<PathBuf>,
}

/// When shell commands are fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SandboxWhen {
    /// When nobody is asked: in the mode bypass.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How much may be spent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spending {
    /// Most answers to one prompt.
    pub turns_max: Option<u64>,
    /// Most tokens of a session.
    pub tokens_max: Option<u64>,
    /// Most US dollars of a session.
    pub cost_usd_max: Option<f64>,
    /// Most tokens of one answer.
    pub output_tokens_max: u64,
    /// Answers in a row that bring nothing new before a run ends.
    pub stalled_turns_max: u64,
    /// Answers in a row without a call that succeeds with a new result before a run ends.
    pub fruitless_turns_max: u64,
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
pub struct AnswerLimits {
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
    /// Who keeps them; none for nobody.
    pub by: Option<NotesBy>,
    /// How many tokens of conversation come before the first ones.
    pub first_tokens: u64,
    /// By how many tokens it grows at least before they are written again.
    pub growth_tokens: u64,
    /// And by one so-many-th of what is in sight.
    pub growth_share: u64,
    /// How many calls lie in between.
    pub calls: usize,
}

/// Who keeps notes of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotesBy {
    /// A fork of the conversation.
    Fork,
    /// The agent itself, in passing.
    Main,
}

/// When memories are drawn from conversations and put in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembering {
    /// Whether they are drawn from a conversation that has come to rest.
    pub draws: bool,
    /// So many tokens of it have to be new for that.
    pub tokens_least: u64,
    /// How long a program that is about to end waits for it.
    pub waits: Duration,
    /// Whether they are put in order in the background.
    pub dreams: bool,
    /// So long after the last time.
    pub dream_every: Duration,
    /// After so many other sessions since then.
    pub dream_sessions: usize,
}

/// Instruction files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instructions {
    /// Whether they are read.
    pub is_on: bool,
    /// How many tokens of them are too many.
    pub tokens_max: u64,
    /// Whether the largest are left out then.
    pub drops: bool,
    /// Files and folders outside of projects that may be included.
    pub allowed: Vec<PathBuf>,
}

/// What is asked of git when a session starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Git {
    /// Whether it is asked.
    pub is_on: bool,
    /// For how long.
    pub limit: Duration,
}

impl Settings {
    /// Reads all places.
    pub fn read(sources: Sources) -> Result<Settings, SettingsError> {
        let (entries, mut warnings) = resolve(&sources)?;
        let user_home = sources.user_home();
        let values = Values { entries: &entries, home: user_home.as_deref() };
        let (window, thresholds) = windows(&values);
        let switches = Switches::new(values.items("disabled"), sources.home.as_deref());
        let hooks = hooks(&values, &mut warnings);
        let secret = |name: &str| sources.variable(name).map(|text| SecretString::from(text.trim()));
        // Other programs read these as well: what is wrong with one must not matter before it is used.
        let common = |name: &str| {
            sources.variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let shell = sources.variable("SHELL").and_then(|shell| Path::new(shell).file_name());
        Ok(Settings {
            shell: shell.map(|name| name.to_string_lossy().into_owned()),
            model: values.text("model").map(SmolStr::from),
            small_model: values.text("small_model").map(SmolStr::from),
            memory_bytes_max: values.count("memory_bytes_max").unwrap_or(60_000),
            embeddings: values.path("embeddings"),
            notes: notes(&values),
            background_tokens_daily: values.count("background_tokens_daily").unwrap_or(0),
            remembering: Remembering {
                draws: values.is_on("extraction"),
                tokens_least: values.count("extraction_tokens").unwrap_or_default(),
                waits: Duration::from_secs(values.count("extraction_wait_s").unwrap_or_default()),
                dreams: values.is_on("dreaming"),
                dream_every: Duration::from_secs(values.count("dream_hours").unwrap_or(24) * 3_600),
                dream_sessions: usize::try_from(values.count("dream_sessions").unwrap_or(5))
                    .unwrap_or(usize::MAX),
            },
            progress_every: Duration::from_secs(values.count("progress_s").unwrap_or(30)),
            effort: values.text("effort").map(SmolStr::from),
            cache_lifetime: match values.text("cache_lifetime").as_deref() {
                Some("1h") => CacheLifetime::Hour1,
                _ => CacheLifetime::Minutes5,
            },
            retries_max: values
                .count("max_retries")
                .and_then(|count| count.try_into().ok())
                .unwrap_or(u32::MAX),
            endpoints: Endpoints {
                anthropic: values.text("anthropic.base_url"),
                openai: values.text("openai.base_url"),
                allows_plain_http: values.is_on("allow_plain_http"),
            },
            secrets: Secrets {
                anthropic_api_key: secret("ANTHROPIC_API_KEY"),
                anthropic_auth_token: secret("ANTHROPIC_AUTH_TOKEN"),
                openai_api_key: secret("OPENAI_API_KEY"),
                telemetry_headers: secret("OTEL_EXPORTER_OTLP_HEADERS"),
            },
            permissions: permissions(&values),
            sandbox: sandbox(&values),
            web_private_addresses: values.is_on("web_private_addresses"),
            deferred_tools: values.texts("deferred_tools"),
            secret_variables: values.texts("secret_variables"),
            hooks,
            mcp: Servers::new(&values),
            project: Project::new(&sources, &values),
            spending: spending(&values),
            estimator: match values.text("estimator").as_deref() {
                Some("classic") => EstimatorName::Classic,
                _ => EstimatorName::Calibrated,
            },
            policy: match values.text("policy").as_deref() {
                Some("thrifty") => PolicyName::Thrifty,
                _ => PolicyName::Classic,
            },
            fidelity: values.number("fidelity").unwrap_or(0.5),
            pings: values.is_on("pings"),
            instructions: Instructions {
                is_on: values.is_on("instructions"),
                tokens_max: values.count("instruction_tokens_max").unwrap_or(u64::MAX),
                drops: values.is_on("instruction_tokens_drop"),
                allowed: values.paths("allow_includes"),
            },
            git: Git {
                is_on: values.is_on("git"),
                limit: Duration::from_millis(values.count("git_limit_ms").unwrap_or(0)),
            },
            editor: values.text("editor"),
            telemetry: Telemetry {
                is_on: values.is_on("telemetry.enabled"),
                endpoint: values.text("telemetry.endpoint").or_else(|| common("OTEL_EXPORTER_OTLP_ENDPOINT")),
                with_content: values.is_on("telemetry.content"),
                service_name: values.text("telemetry.service_name").unwrap_or_default(),
            },
            logging: Logging {
                filter: values.text("log").filter(|filter| !filter.trim().is_empty()),
                file: values.text("log_file").map(PathBuf::from),
            },
            silence_limit: Duration::from_secs(values.count("silence_limit_s").unwrap_or(90)),
            answer_limits: answer_limits(&values),
            output_limits: OutputLimits {
                command_bytes_max: values
                    .count("max_command_output_mb")
                    .unwrap_or(256)
                    .saturating_mul(1 << 20),
                total_bytes_max: values.count("max_outputs_mb").unwrap_or(2_048).saturating_mul(1 << 20),
            },
            clock_ahead: Duration::from_secs(values.count("clock_ahead_s").unwrap_or(0)),
            switches,
            warnings,
            window,
            thresholds,
            user_home,
            home: sources.home,
            cards: sources.cards.unwrap_or_else(Cards::shipped),
            entries,
        })
    }

    /// Every setting with its value and where that came from, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Windows and compaction for a model.
    pub fn window_for(&self, model: &str) -> WindowSettings {
        let threshold = self.thresholds.get(model).copied().unwrap_or(self.window.threshold);
        let auto_compact = self.window.auto_compact && self.compaction_off().is_none();
        WindowSettings { threshold, auto_compact, ..self.window }
    }

    /// Whether sessions may be compacted at all, by hand, too.
    pub fn may_compact(&self) -> bool {
        !self.switches.is_off(Switch::Compact)
    }

    /// What switched off compaction, or only that by itself: the variable or the file.
    pub fn compaction_off(&self) -> Option<String> {
        let off = |switch| self.switches.is_off(switch).then(|| self.switches.why(switch));
        off(Switch::Compact).or_else(|| off(Switch::AutoCompact))
    }
}

/// Windows, and thresholds of single models unless a nearer place gives one for all.
fn windows(values: &Values<'_>) -> (WindowSettings, BTreeMap<String, Threshold>) {
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

fn notes(values: &Values<'_>) -> NoteSettings {
    let count = |name: &str| values.count(name).unwrap_or(0);
    NoteSettings {
        by: match values.text("notes").as_deref() {
            Some("fork") => Some(NotesBy::Fork),
            Some("main") => Some(NotesBy::Main),
            _ => None,
        },
        first_tokens: count("notes_first_tokens"),
        growth_tokens: count("notes_growth_tokens"),
        growth_share: count("notes_growth_share"),
        calls: usize::try_from(count("notes_calls")).unwrap_or(usize::MAX),
    }
}

fn permissions(values: &Values<'_>) -> Permissions {
    Permissions {
        mode: values.text("permissions.mode").map(SmolStr::from).unwrap_or_default(),
        allow: values.items("permissions.allow"),
        ask: values.items("permissions.ask"),
        deny: values.items("permissions.deny"),
        directories: values.paths("permissions.directories"),
    }
}

fn sandbox(values: &Values<'_>) -> Sandbox {
    Sandbox {
        when: match values.text("sandbox").as_deref() {
            Some("on") => SandboxWhen::On,
            Some("off") => SandboxWhen::Off,
            _ => SandboxWhen::Auto,
        },
        network: values.is_on("sandbox_network"),
        writable: values.paths("sandbox_writable"),
    }
}

fn spending(values: &Values<'_>) -> Spending {
    Spending {
        turns_max: values.count("max_turns"),
        tokens_max: values.count("max_tokens_total"),
        cost_usd_max: values.number("max_cost_usd"),
        output_tokens_max: values.count("max_output_tokens").unwrap_or(u64::MAX),
        stalled_turns_max: values.count("max_stalled_turns").unwrap_or(8),
        fruitless_turns_max: values.count("max_fruitless_turns").unwrap_or(50),
    }
}

fn answer_limits(values: &Values<'_>) -> AnswerLimits {
    let seconds = |name: &str, default| Duration::from_secs(values.count(name).unwrap_or(default));
    let megabytes = usize::try_from(values.count("max_answer_mb").unwrap_or(32)).unwrap_or(usize::MAX);
    AnswerLimits {
        connect: seconds("connect_limit_s", 10),
        send: seconds("send_limit_s", 30),
        headers: values.count("header_limit_s").map(Duration::from_secs),
        first_event: seconds("first_event_limit_s", 1_200),
        content_gap: seconds("content_gap_limit_s", 1_200),
        answer: seconds("answer_limit_s", 3_600),
        bytes_max: megabytes.saturating_mul(1 << 20),
    }
}

/// Hooks of each place; what they hold that we cannot run is told of.
fn hooks(values: &Values<'_>, warnings: &mut Vec<String>) -> Vec<Resolved<pal_hooks::Config>> {
    let mut hooks = Vec::new();
    for part in values.parts("hooks").iter().filter(|part| part.origin.place != Place::Default) {
        match pal_hooks::Config::parse(&part.value) {
            Ok(config) => {
                warnings.extend(config.notices.iter().map(|notice| format!("{}: {notice}", part.origin)));
                hooks.push(Resolved { value: config, origin: part.origin.clone() });
            }
            Err(wanted) => warnings.push(format!("{}: hooks want {wanted}", part.origin)),
        }
    }
    hooks
}
