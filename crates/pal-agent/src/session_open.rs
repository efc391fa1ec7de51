//! Opens sessions: new ones, existing ones, and copies; and builds their prompt prefix.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pal_background::random_ids;
use pal_engine::Session;
use pal_model::{Decision, DecisionKind, EntryBody, EntryDraft, EntryId, ModelCard, PromptPrefix};
use pal_permissions::PermissionMode;
use pal_project::ProjectSnapshot;
use pal_prompt::{
    AssembledPrefix, MemoryIndex, PrefixInputs, PromptMode, PromptOverrides, SessionFacts, ToolCatalog,
    ToolSpec, assemble, built_in_tools,
};
use pal_store::{create_private_directory, log_path, project_directory};
use pal_tools::SandboxOptions;
use smol_str::SmolStr;

use crate::AgentError;
use crate::options::{AgentOptions, SessionOrigin};
use crate::subagents::UNDER_WAY;

/// Attachment kind for changes of permissions.
pub(crate) const PERMISSIONS: &str = "permissions";

/// An open session and its log.
pub(crate) struct OpenedSession {
    pub(crate) session: Session,
    pub(crate) log: PathBuf,
    pub(crate) id: String,
    pub(crate) is_resumed: bool,
    /// Whether the log lies outside of this home and is therefore not trusted.
    pub(crate) is_foreign: bool,
}

impl OpenedSession {
    /// Directory of the session.
    pub(crate) fn folder(&self) -> &Path {
        self.log.parent().unwrap_or(&self.log)
    }
}

/// Opens the session; a new one has no prefix yet.
pub(crate) fn open(options: &AgentOptions, project: &Path) -> Result<OpenedSession, AgentError> {
    match &options.origin {
        SessionOrigin::New(id) => {
            let log = new_log(options, project, *id)?;
            let session = Session::create(&log, options.model.lens.clone(), random_ids())?;
            Ok(opened(session, log, false))
        }
        SessionOrigin::Resumed(log) => {
            let log = std::path::absolute(log).unwrap_or_else(|_| log.clone());
            let session = Session::open(&log, options.model.lens.clone(), random_ids())?;
            let is_foreign = !is_of_home(&log, &options.home);
            Ok(OpenedSession { is_foreign, ..opened(session, log, true) })
        }
        SessionOrigin::Forked(of, id) => {
            let log = new_log(options, project, *id)?;
            copy(of, &log).map_err(|error| AgentError::file(of, &error))?;
            let session = Session::open(&log, options.model.lens.clone(), random_ids())?;
            let is_foreign = !is_of_home(of, &options.home);
            Ok(OpenedSession { is_foreign, ..opened(session, log, true) })
        }
        SessionOrigin::Branched { of, call } => {
            let log = new_log(options, project, None)?;
            copy(of, &log).map_err(|error| AgentError::file(of, &error))?;
            let mut session = Session::open(&log, options.model.lens.clone(), random_ids())?;
            session.branch_at(call, UNDER_WAY, options.clock.now())?;
            Ok(opened(session, log, true))
        }
    }
}

fn opened(session: Session, log: PathBuf, is_resumed: bool) -> OpenedSession {
    let folder = log.parent().and_then(Path::file_name);
    let id = folder.map_or(String::new(), |name| name.to_string_lossy().into_owned());
    OpenedSession { session, log, id, is_resumed, is_foreign: false }
}

/// Returns whether a log lies among the sessions of a home, links followed.
fn is_of_home(log: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(log).starts_with(real(home).join("projects"))
}

/// Removes from a foreign log everything that would speak for the system: its attachments are hidden from the
/// model, and `prefix` replaces its system prompt, tools and context. The log itself stays complete.
pub(crate) fn distrust(
    session: &mut Session,
    options: &AgentOptions,
    prefix: &PromptPrefix,
) -> Result<(), AgentError> {
    let now = options.clock.now();
    let is_attachment =
        |shown: &pal_view::VisibleEntry<'_>| matches!(shown.entry.body, EntryBody::Attachment(_));
    let entries: Vec<EntryId> =
        session.view().visible_entries().filter(is_attachment).map(|shown| shown.entry.id).collect();
    if !entries.is_empty() {
        let reason = String::from("attachments of a foreign log do not speak for the system");
        let kind = DecisionKind::Snip { entries };
        session.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
    }
    let parts =
        |prefix: &PromptPrefix| (prefix.system.clone(), prefix.tools.clone(), prefix.context.to_json());
    if session.view().prefix().map(parts) != Some(parts(prefix)) {
        session.append(EntryDraft::prefix(prefix), now)?;
    }
    Ok(())
}

/// Path of the log of a new session; its directory is created.
fn new_log(options: &AgentOptions, project: &Path, id: Option<EntryId>) -> Result<PathBuf, AgentError> {
    let id = id.unwrap_or_else(|| random_ids().next_id(options.clock.now()));
    let among_sessions = || project_directory(&options.home, project).join("sessions").join(id.to_string());
    let folder = options.subagent.folder.clone().unwrap_or_else(among_sessions);
    create_private_directory(&folder).map_err(|error| AgentError::Other(error.to_string()))?;
    let log = log_path(&folder);
    Ok(std::path::absolute(&log).unwrap_or(log))
}

/// Copies a log byte for byte: the copy sends the same requests and reads the same cache.
fn copy(of: &Path, to: &Path) -> std::io::Result<()> {
    let part = to.with_extension("part");
    let mut from = fs::File::open(of)?;
    let mut into = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    std::io::copy(&mut from, &mut into)?;
    into.flush()?;
    into.sync_data()?;
    // The rename makes the copy appear complete or not at all.
    fs::rename(&part, to)
}

/// Appends the first entries of a new session.
pub(crate) fn begin(
    session: &mut Session,
    options: &AgentOptions,
    prefix: &PromptPrefix,
) -> Result<(), AgentError> {
    let now = options.clock.now();
    let began = pal_model::SessionStart {
        program: String::from("pal"),
        version: Some(options.prompt.version.clone()),
        cwd: Some(options.sources.search.directory.display().to_string()),
        ..pal_model::SessionStart::default()
    };
    if session.view().branch().is_empty() {
        session.append(EntryDraft::session(&began), now)?;
    }
    session.append(EntryDraft::prefix(prefix), now)?;
    Ok(())
}

/// Builds the prompt prefix of a session from its options and the project around it, at its start and after
/// each compaction.
#[derive(Clone)]
pub(crate) struct PromptBuilder {
    card: ModelCard,
    attribution: String,
    mode: PromptMode,
    prompts: PromptOverrides,
    facts: SessionFacts,
    today: fn() -> String,
    tools: Vec<ToolSpec>,
    servers: Vec<SmolStr>,
}

impl PromptBuilder {
    pub(crate) fn new(options: &AgentOptions, is_clearing: bool) -> PromptBuilder {
        let is_attended = options.is_attended();
        PromptBuilder {
            card: options.model.lens.card.clone(),
            attribution: options.prompt.attribution.clone(),
            mode: if is_attended { PromptMode::Interactive } else { PromptMode::Headless },
            prompts: options.prompt.prompts.clone(),
            facts: SessionFacts {
                guidance: guidance(options),
                is_clearing,
                token_budget: options.model.run.tokens_max,
                memory: options.memory.place.as_ref().map(|place| place.directory.display().to_string()),
                ..SessionFacts::default()
            },
            today: options.prompt.today,
            tools: tools(options),
            servers: crate::session_mcp::names(options),
        }
    }

    /// Assembles the prefix with the current state of the project.
    pub(crate) fn assembled(&self, gathered: &ProjectSnapshot, memory: Vec<MemoryIndex>) -> AssembledPrefix {
        assemble(&PrefixInputs {
            attribution: self.attribution.clone(),
            mode: self.mode,
            prompts: self.prompts.clone(),
            environment: gathered.environment.clone(),
            facts: self.facts.clone(),
            git: gathered.git.clone(),
            instructions: gathered.instructions.files.clone(),
            memory,
            date: Some((self.today)()),
            tools: self.tools.clone(),
            servers: self.servers.clone(),
            ..PrefixInputs::for_card(&self.card)
        })
    }

    /// Permission guidance that the model has not been told yet.
    pub(crate) fn unsaid(&self, session: &Session) -> Option<String> {
        let told = told(session)?;
        let unsaid = self.facts.guidance.iter().filter(|words| !told.contains(*words));
        let words: Vec<&str> = unsaid.map(String::as_str).collect();
        (!words.is_empty()).then(|| changed(&words.join(" ")))
    }

    /// Switches the guidance to another mode and returns the text for the model.
    pub(crate) fn choose_mode(&mut self, mode: PermissionMode) -> String {
        if let Some(first) = self.facts.guidance.first_mut() {
            *first = String::from(guidance_of(mode));
        }
        changed(guidance_of(mode))
    }

    /// Catalog of tools that the session offers now. The list in its requests is the one in its log.
    pub(crate) fn catalog(&self) -> ToolCatalog {
        let catalog = ToolCatalog::new(&self.tools);
        if self.servers.is_empty() { catalog } else { catalog.expect_late_tools() }
    }
}

/// Tools that the session offers.
fn tools(options: &AgentOptions) -> Vec<ToolSpec> {
    let offered = built_in_tools().into_iter().filter(|tool| !options.tools.without.contains(&tool.name));
    let deferring =
        |tool: ToolSpec| ToolSpec { is_deferred: options.tools.deferred.contains(&tool.name), ..tool };
    offered.map(deferring).collect()
}

/// Permission guidance known to the model: the prefix, and the newest attachment about the mode.
fn told(session: &Session) -> Option<String> {
    let view = session.view();
    let mut told = view.prefix()?.system.to_string();
    let is_about_mode =
        |text: &String| PermissionMode::ALL.iter().any(|mode| text.contains(guidance_of(*mode)));
    let notes = view.visible_entries().filter_map(|shown| match &shown.entry.body {
        EntryBody::Attachment(note) if note.what == PERMISSIONS => Some(note.content.to_json()),
        _ => None,
    });
    if let Some(newest) = notes.filter(is_about_mode).last() {
        PermissionMode::ALL.iter().for_each(|mode| told = told.replace(guidance_of(*mode), ""));
        told.push_str(&newest);
    }
    Some(told)
}

fn changed(words: &str) -> String {
    format!("What you may do is not what it was. From now on this holds: {words}")
}

/// Permission guidance for the model.
fn guidance(options: &AgentOptions) -> Vec<String> {
    let mut guidance = vec![String::from(guidance_of(options.permissions.mode))];
    let is_confined =
        |fencing: &&SandboxOptions| fencing.is_for_all || options.permissions.mode == PermissionMode::Bypass;
    if let Some(fencing) = options.tools.sandbox.as_ref().filter(is_confined) {
        let network = if fencing.network { "reach the network" } else { "do not reach the network" };
        guidance.push(format!(
            "Shell commands run in a sandbox: they can write to the project and to temporary files only, and {network}."
        ));
    }
    guidance
}

fn guidance_of(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => {
            "Reading inside the project is allowed. Changing files and running commands that do more than look needs a \
             rule that allows it."
        }
        PermissionMode::AcceptEdits => {
            "Reading and changing files inside the project is allowed. Running commands that do more than look needs a \
             rule that allows it."
        }
        PermissionMode::Plan => {
            "This session plans: look at whatever you need, change nothing, and end with a plan that somebody else could \
             carry out."
        }
        PermissionMode::Bypass => "Calls are not asked about.",
    }
}
