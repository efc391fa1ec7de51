//! Home, project folder and provider of one test, and the agent options that belong to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pal_agent::{
    AgentOptions, BackgroundOptions, McpOptions, MemoryOptions, ModelOptions, ModelProfile, PauseOptions,
    PermissionOptions, PromptOptions, SessionOrigin, SubagentOptions, ToolOptions, cache_settings,
    learned_limits, run_settings,
};
use pal_background::{Clock, DreamGateSettings, ExtractionOptions};
use pal_context::NotesCadence;
use pal_memory::MemoryLocation;
use pal_model::{ModelCard, ModelCatalog};
use pal_permissions::{RuleSet, SourcedRule};
use pal_project::{InstructionLimit, InstructionSearch, ProjectQuery, find_project};
use pal_prompt::{AgentPrompt, COORDINATOR_PROMPT, PromptOverrides};
use pal_provider::{ApiKey, ClientPolicy, ProviderConnection, ProviderEndpoint};
use pal_settings::{KillSwitch, ResolvedSetting, Settings, SettingsInput};
use pal_view::{Estimator, Lens, ViewScope, WindowLimits};
use pal_wire::RetryPolicy;
use smol_str::SmolStr;

use crate::test_agent::TestAgent;
use crate::test_provider::{ProviderSetup, TestProvider};

/// Time limit for anything that a test waits for; longer is a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Local hour of the day in all tests.
pub const TEST_HOUR: u8 = 10;

/// Model of all sessions unless the settings name another.
const MODEL: &str = "claude-opus-5-5";

/// Home, project folder and provider of one test; removed on drop.
pub struct AgentWorld {
    folder: tempfile::TempDir,
    cards: ModelCatalog,
    /// The provider.
    pub provider: TestProvider,
}

impl AgentWorld {
    /// Starts the provider beside an empty home and a project of two files.
    pub fn new(setup: ProviderSetup) -> AgentWorld {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "pal", "project/src"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let cards = ModelCatalog::built_in().with_overrides(&setup.cards).unwrap();
        let world = AgentWorld { folder, cards, provider: TestProvider::start(setup) };
        world.file("README.md", "# Scratch\n\nA project of a few files.\n");
        world.file("src/lib.rs", "/// Adds.\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n");
        world
    }

    /// The project folder, links resolved.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project").canonicalize().unwrap()
    }

    /// The program's own folder.
    pub fn pal_home(&self) -> PathBuf {
        self.folder.path().join("pal").canonicalize().unwrap()
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, content: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Text of a file of the project; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    /// Returns whether the project has this file.
    pub fn has_file(&self, name: &str) -> bool {
        self.project().join(name).exists()
    }

    /// Memory of the project.
    pub fn memory(&self) -> MemoryLocation {
        MemoryLocation::of_project(&self.pal_home(), &find_project(&self.project()))
    }

    /// Starts an agent on a new session with these settings, a TOML text.
    pub fn start(&self, settings: &str) -> TestAgent {
        TestAgent::start(self.options(settings))
    }

    /// Starts an agent with changed options.
    pub fn start_with(&self, settings: &str, change: impl FnOnce(&mut AgentOptions)) -> TestAgent {
        let mut options = self.options(settings);
        change(&mut options);
        TestAgent::start(options)
    }

    /// Resumes the session of a log.
    pub fn resume(&self, settings: &str, log: &Path) -> TestAgent {
        self.start_with(settings, |options| options.origin = SessionOrigin::Resumed(log.to_owned()))
    }

    /// Options of an agent in the project, as the program derives them from its settings. There is no sandbox, no git
    /// snapshot, no embedding model and no background work unless the settings ask for it.
    pub fn options(&self, settings: &str) -> AgentOptions {
        let settings = self.settings(settings);
        let card = self.cards.find(settings.model.as_deref().unwrap_or(MODEL)).card;
        let (home, project) = (self.pal_home(), self.project());
        let rules = rules(&settings);
        let lens = model_lens(&card);
        AgentOptions {
            origin: SessionOrigin::New(None),
            sources: project_query(&project, &settings, rules.clone(), lens.estimator),
            model: self.model_options(&settings, &card, lens),
            prompt: PromptOptions {
                prompts: PromptOverrides {
                    coordinator: settings.prompt.is_coordinator.then(|| COORDINATOR_PROMPT.to_owned()),
                    agent: settings.prompt.is_proactive.then(AgentPrompt::proactive),
                    ..PromptOverrides::default()
                },
                language: settings.prompt.language.clone(),
                output_style: settings.prompt.output_style.clone(),
                attaches_mentions: true,
                scratchpad: settings.prompt.scratchpad,
                attribution: String::from("Palimpsest"),
                version: String::from("0.0.0"),
                today: || String::from("Monday, 2030-01-07"),
            },
            permissions: PermissionOptions {
                mode: Some(settings.permissions.mode.as_str())
                    .filter(|mode| !mode.is_empty())
                    .map_or_else(Default::default, |mode| mode.parse().unwrap()),
                is_mode_chosen: false,
                rules,
                asker: None,
                begins_planning: false,
                allows_bypass: true,
                is_asking_program: false,
            },
            hooks: settings.hooks.iter().map(|hooks| hooks.value.clone()).collect(),
            tools: ToolOptions {
                without: Vec::new(),
                deferred: settings.deferred_tools.iter().map(SmolStr::from).collect(),
                sandbox: None,
                outputs: settings.output_limits,
                secret_variables: settings.secret_variables.clone(),
                checkpoints: None,
                allows_private_addresses: settings.web_private_addresses,
                output_schema: None,
                plugins: Vec::new(),
            },
            mcp: McpOptions {
                servers: Vec::new(),
                start_limit: settings.mcp.start_limit,
                call_limit: settings.mcp.call_limit,
                allows_plain_http: false,
                shared: None,
                host: None,
            },
            switches: settings.switches.clone(),
            clock: Clock { ahead: settings.clock_offset },
            subagent: SubagentOptions {
                folder: None,
                depth: 0,
                identity: None,
                parent: None,
                teammate_command: None,
                progress_every: None,
                cost_max: settings.spending.subagent_usd_max,
                definitions: Vec::new(),
            },
            memory: self.memory_options(&settings),
            background: BackgroundOptions {
                notes: notes(&settings),
                tokens_daily: settings.background_tokens_daily,
                suggests: settings.prompt.suggests,
                pauses: PauseOptions { is_person_driving: false, local_hour: |_| TEST_HOUR },
            },
            home,
        }
    }

    /// Settings of a TOML text. Background work is off unless it asks for it.
    fn settings(&self, text: &str) -> Settings {
        let variables = [("PAL_EXTRACTION", "false"), ("PAL_DREAMING", "false"), ("PAL_NOTES", "off")];
        let variables = variables.iter().filter(|(name, _)| {
            let key = name.trim_start_matches("PAL_").to_lowercase();
            !text.lines().any(|line| line.split('=').next().is_some_and(|name| name.trim() == key))
        });
        let mut variables: std::collections::BTreeMap<String, String> =
            variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        variables.insert(String::from("HOME"), self.folder.path().join("home").display().to_string());
        let input = SettingsInput {
            home: Some(self.pal_home()),
            given: (!text.is_empty()).then(|| text.to_owned()),
            variables,
            cards: Some(self.cards.clone()),
            ..SettingsInput::default()
        };
        let settings = Settings::read(input).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
        settings
    }

    fn model_options(&self, settings: &Settings, card: &ModelCard, lens: Lens) -> ModelOptions {
        let (cards, own) = (self.cards.clone(), settings.clone());
        let connection = self.connection();
        let limits = learned_limits(&self.pal_home(), settings, card, connection.endpoint().address());
        ModelOptions {
            lens,
            limits,
            policy: settings.context_policy(),
            cache: cache_settings(settings, card),
            connection: Arc::new(connection),
            run: run_settings(settings, card),
            fallback: None,
            lookup: Arc::new(move |name| {
                let small = own.small_model.as_deref().unwrap_or(MODEL);
                let card = cards.find(name.unwrap_or(small)).card;
                Some(ModelProfile {
                    lens: model_lens(&card),
                    limits: WindowLimits::new(&card, &own.window_for(&card.model)),
                    cache: cache_settings(&own, &card),
                    run: run_settings(&own, &card),
                })
            }),
            alerts: settings.alerts,
            daily_max: settings.spending.daily_usd_max,
            reports_progress: false,
        }
    }

    /// A connection with two quick retries.
    fn connection(&self) -> ProviderConnection {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let key = Some(ApiKey::api("simulated"));
        let endpoint = ProviderEndpoint::new(self.provider.dialect, &self.provider.address, key).unwrap();
        let retries = RetryPolicy { base_delay: Duration::from_millis(2), ..RetryPolicy::STANDARD };
        let policy = ClientPolicy { retries, seed: Some(1), ..ClientPolicy::patient() };
        ProviderConnection::new(runtime, endpoint, policy).unwrap()
    }

    fn memory_options(&self, settings: &Settings) -> MemoryOptions {
        let memory = &settings.memory;
        let is_on = !settings.switches.is_off(KillSwitch::Memory);
        MemoryOptions {
            place: is_on.then(|| self.memory()),
            tools: Vec::new(),
            bytes_max: settings.max_memory_bytes,
            extraction: memory.extracts.then_some(ExtractionOptions { tokens_least: memory.min_tokens }),
            dreams: Some(DreamGateSettings {
                is_on: memory.dreams,
                every: memory.dream_every,
                sessions: memory.dream_sessions,
            }),
        }
    }
}

fn model_lens(card: &ModelCard) -> Lens {
    Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope: ViewScope::Current }
}

fn rules(settings: &Settings) -> RuleSet {
    let parse = |rules: &[ResolvedSetting<String>]| -> Vec<SourcedRule> {
        let parsed = rules
            .iter()
            .map(|rule| SourcedRule { rule: rule.value.parse().unwrap(), origin: rule.origin.to_string() });
        parsed.collect()
    };
    let mut rules = RuleSet::default();
    rules.allow = parse(&settings.permissions.allow);
    rules.ask = parse(&settings.permissions.ask);
    rules.deny = parse(&settings.permissions.deny);
    rules
}

fn project_query(project: &Path, settings: &Settings, rules: RuleSet, estimator: Estimator) -> ProjectQuery {
    let search = InstructionSearch {
        managed: Vec::new(),
        user: Vec::new(),
        home: settings.user_home.clone(),
        directory: project.to_owned(),
        root: None,
        added: Vec::new(),
        listed: Vec::new(),
        allowed: Vec::new(),
        refused: Vec::new(),
        rules,
        is_on: true,
        is_bare: false,
        limit: InstructionLimit {
            tokens_max: settings.instructions.tokens_max,
            drops: false,
            measure: Arc::new(move |text| estimator.total(estimator.text(text))),
        },
    };
    ProjectQuery { search, git_time: None, shell: None }
}

fn notes(settings: &Settings) -> Option<(pal_settings::NoteWriter, NotesCadence)> {
    let set = &settings.notes;
    let cadence = NotesCadence {
        first: set.first_tokens,
        growth: set.growth_tokens,
        share: set.growth_share,
        calls: set.calls,
        ..NotesCadence::default()
    };
    Some((set.writer?, cadence))
}
