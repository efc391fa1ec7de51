//! Agent options from the command line and the settings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pal_agent::{
    AgentOptions, BackgroundOptions, MemoryOptions, ModelLookup, ModelOptions, ModelProfile, PauseOptions,
    PermissionOptions, PromptOptions, SessionOrigin, SubagentOptions, TeammateCommand, ToolOptions,
    cache_settings, learned_limits, run_settings,
};
use pal_background::{Clock, DreamGateSettings, ExtractionOptions};
use pal_context::NotesCadence;
use pal_model::{DecisionKind, EntryBody, EntryId, LogEntry, ModelCard};
use pal_process::sandbox::{Sandbox, SandboxProbe};
use pal_prompt::PromptOverrides;
use pal_provider::ProviderConnection;
use pal_settings::{KillSwitch, NoteWriter, SandboxSetting};
use pal_store::LogReader;
use pal_tools::SandboxOptions;
use pal_view::{Estimator, Lens, ViewScope};
use smol_str::SmolStr;

use super::given_agents::parse_agents;
use super::mcp_servers::mcp_servers;
use super::model_profiles::model_profiles;
use super::tool_choice::tools_left_out;
use crate::arguments::{AgentArgs, ModelArgs, ProviderArg};
use crate::failure::Failure;
use crate::loaded_session::{card, lens};
use crate::model_refresh::card_from_provider;
use crate::notices::Notices;
use crate::permission_rules::{all_rules, permission_mode};
use crate::progress::ReadingLog;
use crate::provider::{chosen_provider, endpoint, provider_policy, runtime, simulator, usual_dialect};
use crate::resume_directory::{continued_log, find_mismatch};
use crate::session_start::{
    SessionStartInputs, local_hour, memory_location, plugin_definitions, project_search, prompt_overrides,
    today, with_embeddings,
};
use crate::settings::{Settings, full_model_name};

/// Agent options for the current directory. They contain no permission prompt.
pub(crate) fn options(
    args: &AgentArgs,
    settings: &Settings,
    notices: &Notices,
) -> Result<AgentOptions, Failure> {
    let directory = std::env::current_dir().and_then(|directory| directory.canonicalize());
    let directory = directory.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    options_at(&directory, args, settings, notices)
}

/// Agent options for another directory, whose settings are `settings`.
pub(crate) fn options_at(
    directory: &Path,
    args: &AgentArgs,
    settings: &Settings,
    notices: &Notices,
) -> Result<AgentOptions, Failure> {
    let home = settings.home.clone().ok_or_else(|| {
        Failure::with_hint("sessions cannot be saved: neither PAL_HOME nor HOME is set", "set one of them")
    })?;
    check_directories(args, settings, notices)?;
    let origin = session_origin(directory, args, settings)?;
    let card = model(args, settings, &origin, notices)?;
    let lens = lens(&card, settings.estimator, ViewScope::Current);
    let mode = permission_mode(settings)?;
    let rules = all_rules(args, settings)?;
    let hooks = match args.project.bare {
        true => Vec::new(),
        false => settings.hooks.iter().map(|hooks| hooks.value.clone()).collect(),
    };
    let mut sources = project_sources(directory, args, settings, lens.estimator);
    sources.search.rules = rules.clone();
    Ok(AgentOptions {
        memory: memory_options(&home, directory, args, settings, notices),
        model: model_options(&home, args, settings, &card, lens)?,
        home,
        origin,
        sources,
        prompt: prompt_options(&args.model, settings),
        permissions: PermissionOptions {
            mode,
            is_mode_chosen: args.permissions.permission_mode.is_some()
                || args.compatibility.dangerously_skip_permissions,
            rules,
            asker: None,
            begins_planning: false,
            allows_bypass: settings.permissions.bypass_forbidden_by.is_none(),
            is_asking_program: false,
        },
        hooks,
        tools: tool_options(args, settings)?,
        mcp: mcp_servers(&args.project, settings, notices)?,
        switches: settings.switches.clone(),
        clock: Clock { ahead: settings.clock_offset },
        subagent: subagent_options(args, settings)?,
        background: BackgroundOptions {
            notes: notes(settings),
            tokens_daily: settings.background_tokens_daily,
            suggests: settings.prompt.suggests,
            pauses: PauseOptions { is_person_driving: false, local_hour },
        },
    })
}

/// Search paths of instruction files and the git snapshot.
fn project_sources(
    directory: &Path,
    args: &AgentArgs,
    settings: &Settings,
    estimator: Estimator,
) -> pal_project::ProjectQuery {
    let added: Vec<PathBuf> =
        args.permissions.added.iter().chain(&settings.permissions.directories).cloned().collect();
    let start = SessionStartInputs {
        directory,
        added: &added,
        is_bare: args.project.bare,
        with_instructions: true,
        with_git: true,
        estimator,
    };
    project_search(&start, settings)
}

fn model_options(
    home: &Path,
    args: &AgentArgs,
    settings: &Settings,
    card: &ModelCard,
    lens: Lens,
) -> Result<ModelOptions, Failure> {
    let provider = chosen_provider(args.model.provider, card, settings);
    let connection = connection(provider, settings, card)?;
    let limits = learned_limits(home, settings, card, connection.endpoint().address());
    let lookup = model_profiles(settings, card, provider);
    Ok(ModelOptions {
        lens,
        limits,
        policy: settings.context_policy(),
        cache: cache_settings(settings, card),
        connection: Arc::new(connection),
        run: run_settings(settings, card),
        alerts: settings.alerts,
        fallback: fallback_model(args, settings, card, &lookup)?,
        lookup,
        daily_max: settings.spending.daily_usd_max,
        reports_progress: args.output.include_partial_messages,
    })
}

/// The model of `--fallback-model`, which must have the provider of the session's model.
fn fallback_model(
    args: &AgentArgs,
    settings: &Settings,
    card: &ModelCard,
    lookup: &ModelLookup,
) -> Result<Option<ModelProfile>, Failure> {
    let Some(name) = &args.compatibility.fallback_model else { return Ok(None) };
    let wrong = |what: String| Failure::usage_error(what, "`pal models` lists models with their providers");
    let full = full_model_name(name, settings);
    if full == card.model {
        return Err(wrong(format!(
            "--fallback-model {name} is the model of the session; choose another one"
        )));
    }
    match lookup(Some(&full)) {
        Some(profile) => Ok(Some(profile)),
        None => Err(wrong(format!("--fallback-model {name} has another provider than {}", card.model))),
    }
}

fn prompt_options(args: &ModelArgs, settings: &Settings) -> PromptOptions {
    let set = &settings.prompt;
    PromptOptions {
        prompts: PromptOverrides {
            custom: args.system_prompt.clone(),
            appended: args.append_system_prompt.clone(),
            ..prompt_overrides(settings)
        },
        language: set.language.clone(),
        output_style: set.output_style.clone(),
        attaches_mentions: true,
        scratchpad: set.scratchpad,
        attribution: format!("Palimpsest {}", env!("CARGO_PKG_VERSION")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        today,
    }
}

fn tool_options(args: &AgentArgs, settings: &Settings) -> Result<ToolOptions, Failure> {
    let mut without = without_tools(settings);
    if let Some(list) = &args.compatibility.tools {
        without.extend(tools_left_out(list)?);
    }
    Ok(ToolOptions {
        without,
        deferred: settings.deferred_tools.iter().map(SmolStr::from).collect(),
        sandbox: sandbox_options(settings),
        outputs: settings.output_limits,
        secret_variables: settings.secret_variables.clone(),
        checkpoints: None,
        allows_private_addresses: settings.web_private_addresses,
        output_schema: None,
        plugins: if args.project.bare { Vec::new() } else { plugin_definitions(settings) },
    })
}

/// Options of a session that is no subagent itself.
fn subagent_options(args: &AgentArgs, settings: &Settings) -> Result<SubagentOptions, Failure> {
    let definitions = args.compatibility.agents.as_deref().map(parse_agents).transpose()?.unwrap_or_default();
    Ok(SubagentOptions {
        folder: None,
        depth: 0,
        identity: None,
        parent: None,
        teammate_command: Some(teammate_command()),
        progress_every: (!settings.switches.is_off(KillSwitch::Progress))
            .then_some(settings.progress_interval),
        cost_max: settings.spending.subagent_usd_max,
        definitions,
    })
}

/// Checks that added directories exist: a mistyped one is not noticed until a call is denied.
fn check_directories(args: &AgentArgs, settings: &Settings, notices: &Notices) -> Result<(), Failure> {
    for directory in &args.permissions.added {
        if !directory.is_dir() {
            return Err(Failure::usage_error(
                format!("--add-dir {}: there is no such directory", directory.display()),
                "check the path; it is relative to the directory that pal works in",
            ));
        }
    }
    for directory in settings.permissions.directories.iter().filter(|directory| !directory.is_dir()) {
        notices.add(format_args!("permissions.directories: there is no directory {}", directory.display()));
    }
    Ok(())
}

fn memory_options(
    home: &Path,
    directory: &Path,
    args: &AgentArgs,
    settings: &Settings,
    notices: &Notices,
) -> MemoryOptions {
    let memory = &settings.memory;
    MemoryOptions {
        place: memory_location(home, directory, args.project.bare, settings)
            .map(|place| with_embeddings(place, settings, notices)),
        tools: Vec::new(),
        bytes_max: settings.max_memory_bytes,
        extraction: memory.extracts.then_some(ExtractionOptions { tokens_least: memory.min_tokens }),
        dreams: Some(dream_gates(settings)),
    }
}

/// Keeper and cadence of session notes; none if they are switched off.
fn notes(settings: &Settings) -> Option<(NoteWriter, NotesCadence)> {
    let set = &settings.notes;
    let writer = set.writer.filter(|_| !settings.switches.is_off(KillSwitch::Notes))?;
    let cadence = NotesCadence {
        first: set.first_tokens,
        growth: set.growth_tokens,
        share: set.growth_share,
        calls: set.calls,
        ..NotesCadence::default()
    };
    Some((writer, cadence))
}

/// Conditions for a dream.
pub(crate) fn dream_gates(settings: &Settings) -> DreamGateSettings {
    let is_off = |switch| settings.switches.is_off(switch);
    DreamGateSettings {
        is_on: settings.memory.dreams && !is_off(KillSwitch::Dreaming) && !is_off(KillSwitch::Memory),
        every: settings.memory.dream_every,
        sessions: settings.memory.dream_sessions,
    }
}

/// The session to start or continue.
fn session_origin(directory: &Path, args: &AgentArgs, settings: &Settings) -> Result<SessionOrigin, Failure> {
    let id: Option<EntryId> = args.session.session_id.as_ref().and_then(|id| id.parse().ok());
    let Some(log) = continued_log(args, settings)? else { return Ok(SessionOrigin::New(id)) };
    if args.session.fork_session {
        return Ok(SessionOrigin::Forked(log, id));
    }
    match find_mismatch(&log, directory) {
        Some(mismatch) => Err(mismatch.failure()),
        None => Ok(SessionOrigin::Resumed(log)),
    }
}

/// The model: of the command line, else of the session, else of the settings.
fn model(
    args: &AgentArgs,
    settings: &Settings,
    origin: &SessionOrigin,
    notices: &Notices,
) -> Result<ModelCard, Failure> {
    if let Some(model) = &args.model.model {
        return Ok(known_card(model, args, settings, notices));
    }
    let known = match origin {
        SessionOrigin::Resumed(log)
        | SessionOrigin::Forked(log, _)
        | SessionOrigin::Branched { of: log, .. } => last_model(log)?,
        SessionOrigin::New(_) => None,
    };
    let model = known.or_else(|| settings.model.as_ref().map(ToString::to_string));
    Ok(known_card(model.as_deref().unwrap_or(pal_settings::DEFAULT_MODEL), args, settings, notices))
}

/// The card of a model: of the tables, else of its provider.
fn known_card(model: &str, args: &AgentArgs, settings: &Settings, notices: &Notices) -> ModelCard {
    let model = &full_model_name(model, settings);
    let found = settings.cards.find(model);
    let provider = chosen_provider(args.model.provider, &found.card, settings);
    let refreshed = found.notice.is_some().then(|| card_from_provider(model, provider, settings)).flatten();
    refreshed.unwrap_or_else(|| card(settings, model, notices))
}

/// The model that a session used last. Reads only the end of the log.
fn last_model(log: &Path) -> Result<Option<String>, Failure> {
    let failure = |error: pal_store::OpenError| Failure::new(error.to_string());
    let model = |entry: &LogEntry| match &entry.body {
        EntryBody::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
            Some(request.model.to_string())
        }
        EntryBody::Boundary(boundary) => boundary.snapshot.model.as_ref().map(ToString::to_string),
        _ => match entry.decision() {
            Some(DecisionKind::Model { model }) => Some(model.to_string()),
            _ => None,
        },
    };
    let _reading = ReadingLog::new(log);
    LogReader::open(log).and_then(|reader| reader.find_newest(model)).map_err(failure)
}

fn connection(
    name: ProviderArg,
    settings: &Settings,
    card: &ModelCard,
) -> Result<ProviderConnection, Failure> {
    let runtime = runtime()?;
    let endpoint = match name {
        // The simulator's task lives as long as the runtime.
        ProviderArg::Sim => runtime.block_on(simulator(settings, usual_dialect(card)))?.0,
        _ => endpoint(name, settings)?,
    };
    let mut policy = provider_policy(&endpoint, settings);
    policy.retries.max_retries = settings.max_retries;
    ProviderConnection::new(runtime, endpoint, policy).map_err(Failure::new)
}

/// Tools that are switched off.
fn without_tools(settings: &Settings) -> Vec<SmolStr> {
    let by_switch: [(KillSwitch, &[&'static str]); 5] = [
        (KillSwitch::Agents, &["Agent", "SendMessage"]),
        (KillSwitch::WebFetch, &["WebFetch"]),
        (KillSwitch::WebSearch, &["WebSearch"]),
        (KillSwitch::Background, &["BashOutput", "KillBash"]),
        (KillSwitch::Skills, &["Skill"]),
    ];
    let off = by_switch.into_iter().filter(|(switch, _)| settings.switches.is_off(*switch));
    off.flat_map(|(_, names)| names.iter().map(|name| SmolStr::new_static(name))).collect()
}

/// The sandbox of shell commands; none if it is switched off.
fn sandbox_options(settings: &Settings) -> Option<SandboxOptions> {
    let sandbox = &settings.sandbox;
    let is_wanted = sandbox.when != SandboxSetting::Off;
    is_wanted.then(|| {
        // The sandbox starts this program; without its path no command can run in it.
        let (probe, program) = match std::env::current_exe() {
            Ok(program) => (SandboxProbe::default(), program),
            Err(error) => {
                let why = format!("the path of the pal program is unknown: {error}");
                (Sandbox::None { why }.into(), PathBuf::new())
            }
        };
        let is_for_all = sandbox.when == SandboxSetting::On;
        SandboxOptions {
            probe,
            is_for_all,
            network: sandbox.network,
            writable: sandbox.writable.clone(),
            program,
        }
    })
}

/// The command that starts this program as a teammate, with the flags of this process.
fn teammate_command() -> TeammateCommand {
    Arc::new(|| {
        // If the path is unknown, starting fails and the error is reported.
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "pal".into()));
        command.arg("--teammate").args(std::env::args_os().skip(1));
        command
    })
}
