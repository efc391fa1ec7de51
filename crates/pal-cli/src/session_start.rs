//! Project context and memory of a new session: where they are searched, and how they are assembled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_background::memory_index;
use pal_memory::{EmbeddingModel, MemoryLocation};
use pal_model::ModelCard;
use pal_project::{
    InstructionLimit, InstructionSearch, ListedInstructions, ProjectQuery, ProjectSnapshot, find_project,
    managed_folders, take_project_snapshot, user_folders,
};
use pal_prompt::{
    AgentPrompt, COORDINATOR_PROMPT, OutputStyle, PrefixInputs, PromptOverrides, SessionFacts, built_in_tools,
};
use pal_settings::{ClaudePlugin, IncludeAnswers, KillSwitch, ResolvedSetting, SettingsSource};
use pal_tools::{MediaSupport, PluginDefinitions, Workspace, output_styles};
use pal_view::Estimator;

use crate::notices::Notices;
use crate::open_session::now;
use crate::permission_rules::settings_rules;
use crate::settings::Settings;

/// A new session.
pub(crate) struct SessionStartInputs<'a> {
    pub(crate) directory: &'a Path,
    /// Added directories.
    pub(crate) added: &'a [PathBuf],
    /// Search instruction files in added directories only.
    pub(crate) is_bare: bool,
    /// Read instruction files, unless the settings disable them.
    pub(crate) with_instructions: bool,
    /// Take a git snapshot, unless the settings disable it.
    pub(crate) with_git: bool,
    /// Counts tokens of instruction files.
    pub(crate) estimator: Estimator,
}

/// Reads instruction files and takes a git snapshot.
pub(crate) fn gather_project(start: &SessionStartInputs<'_>, settings: &Settings) -> ProjectSnapshot {
    take_project_snapshot(&project_search(start, settings))
}

/// Search paths of instruction files, and limits of the git snapshot.
pub(crate) fn project_search(start: &SessionStartInputs<'_>, settings: &Settings) -> ProjectQuery {
    let user = match (&settings.user_home, &settings.home) {
        (Some(user_home), Some(home)) => user_folders(user_home, home),
        (None, Some(home)) => vec![home.clone()],
        (_, None) => Vec::new(),
    };
    let estimator = start.estimator;
    let instructions = &settings.instructions;
    let limit = InstructionLimit {
        tokens_max: instructions.tokens_max,
        drops: instructions.drops_largest,
        measure: Arc::new(move |text| estimator.total(estimator.text(text))),
    };
    let project = find_project(start.directory);
    let answered = settings
        .home
        .as_deref()
        .map(|home| IncludeAnswers::in_directory(&pal_store::project_directory(home, &project)).read());
    let answered = answered.unwrap_or_default();
    let search = InstructionSearch {
        managed: managed_folders(),
        user,
        home: settings.user_home.clone(),
        directory: start.directory.to_owned(),
        root: None,
        added: start.added.to_vec(),
        listed: instructions.listed.iter().map(listed_instructions).collect(),
        allowed: instructions.allowed.iter().cloned().chain(answered.allowed).collect(),
        refused: answered.refused,
        // A malformed rule stops a session before it starts; for a preview, files that need a rule are not included.
        rules: settings_rules(settings).unwrap_or_default(),
        is_on: instructions.is_on && start.with_instructions,
        is_bare: start.is_bare,
        limit,
    };
    let asks_git = settings.git.is_on && start.with_git;
    let git_time = asks_git.then_some(settings.git.limit);
    ProjectQuery { search, git_time, shell: settings.shell.clone() }
}

/// Instruction files of a setting. Those of a project's file are the project's.
fn listed_instructions(listed: &ResolvedSetting<String>) -> ListedInstructions {
    let is_projects = matches!(listed.origin.place, SettingsSource::Project | SettingsSource::Local);
    ListedInstructions { pattern: listed.value.clone(), is_users: !is_projects }
}

/// Memory of a session in a directory; none if memory is switched off.
pub(crate) fn memory_location(
    home: &Path,
    directory: &Path,
    is_bare: bool,
    settings: &Settings,
) -> Option<MemoryLocation> {
    let is_on = !is_bare && !settings.switches.is_off(KillSwitch::Memory);
    is_on.then(|| MemoryLocation::of_project(home, &find_project(directory)))
}

/// Adds semantic search if the settings name an embedding model. A model that cannot be loaded is reported as a notice.
pub(crate) fn with_embeddings(
    place: MemoryLocation,
    settings: &Settings,
    notices: &Notices,
) -> MemoryLocation {
    let embeddings = settings.embeddings.as_deref().map(EmbeddingModel::open);
    let embeddings = embeddings.and_then(|opened| opened.map_err(|error| notices.add(error)).ok());
    place.with_embeddings(embeddings)
}

/// Prompts that the settings choose.
pub(crate) fn prompt_overrides(settings: &Settings) -> PromptOverrides {
    let set = &settings.prompt;
    // Without subagents there is nothing to direct.
    let coordinates = set.is_coordinator && !settings.switches.is_off(KillSwitch::Agents);
    PromptOverrides {
        coordinator: coordinates.then(|| COORDINATOR_PROMPT.to_owned()),
        agent: set.is_proactive.then(AgentPrompt::proactive),
        ..PromptOverrides::default()
    }
}

/// Output style of the settings in a directory, if there is one of its name.
fn output_style(directory: &Path, settings: &Settings) -> Option<OutputStyle> {
    let name = settings.prompt.output_style.clone()?;
    let text = output_styles(&style_workspace(directory, settings)).remove(&name)?;
    Some(OutputStyle { name, text })
}

/// Names of the output styles for sessions in a directory.
pub(crate) fn known_output_styles(directory: &Path, settings: &Settings) -> Vec<String> {
    output_styles(&style_workspace(directory, settings)).into_keys().collect()
}

/// Workspace in which output styles are searched.
fn style_workspace(directory: &Path, settings: &Settings) -> Workspace {
    let (roots, session) = (vec![directory.to_owned()], directory.to_owned());
    let home = settings.user_home.clone();
    let mut workspace = Workspace::new(roots, session, home, MediaSupport::default(), BTreeMap::new());
    workspace.program_home.clone_from(&settings.home);
    workspace
}

/// Assembles a session with the system prompt of the settings and the built-in tools.
pub(crate) fn assembly<'a>(
    card: &'a ModelCard,
    window: u64,
    gathered: &ProjectSnapshot,
    memory: Option<&MemoryLocation>,
    (directory, settings): (&Path, &Settings),
) -> PrefixInputs<'a> {
    PrefixInputs {
        prompts: prompt_overrides(settings),
        window,
        attribution: format!("Palimpsest {}", env!("CARGO_PKG_VERSION")),
        environment: gathered.environment.clone(),
        git: gathered.git.clone(),
        instructions: gathered.instructions.files.clone(),
        memory: memory.map_or(Vec::new(), |place| memory_index(place, now()).0),
        facts: SessionFacts {
            memory: memory.map(|place| place.directory.display().to_string()),
            language: settings.prompt.language.clone(),
            output_style: output_style(directory, settings),
            ..SessionFacts::default()
        },
        date: Some(today()),
        tools: built_in_tools()
            .into_iter()
            .filter(|tool| tool.name != "WebSearch" || card.can.web_search)
            .collect(),
        ..PrefixInputs::for_card(card)
    }
}

/// Local date.
pub(crate) fn today() -> String {
    jiff::Zoned::now().strftime("%A, %Y-%m-%d").to_string()
}

/// Local hour of the day of a time.
pub(crate) fn local_hour(at: pal_model::Timestamp) -> u8 {
    let time = jiff::Timestamp::from_millisecond(at.milliseconds()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    u8::try_from(time.to_zoned(jiff::tz::TimeZone::system()).hour()).unwrap_or(0)
}

/// Skills and agents of the plugins that the settings enable.
pub(crate) fn plugin_definitions(settings: &Settings) -> Vec<PluginDefinitions> {
    let definitions = |plugin: &ClaudePlugin| PluginDefinitions {
        name: plugin.name.clone(),
        skills: plugin.skills.clone(),
        agents: plugin.agents.clone(),
    };
    settings.imported.plugins.iter().map(definitions).collect()
}
