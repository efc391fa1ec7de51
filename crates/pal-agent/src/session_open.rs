//! Opens sessions: new ones, existing ones, and copies; and builds their prompt prefix.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pal_background::random_ids;
use pal_engine::{EngineError, Session};
use pal_model::{
    Decision, DecisionKind, EntryBody, EntryDraft, EntryId, ModelCard, PromptPrefix, SessionStart,
};
use pal_permissions::PermissionMode;
use pal_project::ProjectSnapshot;
use pal_prompt::{
    AssembledPrefix, CatalogTool, MemoryIndex, OutputStyle, PrefixInputs, PrefixProfile, PromptMode,
    PromptOverrides, SessionFacts, ToolCatalog, ToolSpec, assemble, built_in_tools,
};
use pal_store::{create_private_directory, log_path, project_directory};
use pal_tools::{SandboxOptions, Workspace};
use smol_str::SmolStr;

use crate::AgentError;
use crate::options::{AgentOptions, SessionOrigin};
use crate::session_directory::{is_same_directory, session_directory};
use crate::session_tools::structured_output::StructuredOutput;
use crate::session_tools::web_search_tool::{WEB_SEARCH, can_search};
use crate::subagents::UNDER_WAY;

/// Tools that most sessions never call.
const RARELY_USED: [&str; 1] = ["NotebookEdit"];

/// Tools that change something, which a coordinator leaves to others.
const CHANGING: [&str; 6] = ["Bash", "BashOutput", "Edit", "KillBash", "NotebookEdit", "Write"];

/// Attachment kind for changes of permissions.
pub(crate) const PERMISSIONS: &str = "permissions";

/// Program name in the session entry of our own sessions.
const PROGRAM: &str = "pal";

/// An open session and its log.
pub(crate) struct OpenedSession {
    pub(crate) session: Session,
    pub(crate) log: PathBuf,
    pub(crate) id: String,
    pub(crate) is_resumed: bool,
    /// Whether the log lies outside of this home and is therefore not trusted.
    pub(crate) is_foreign: bool,
    /// Directory of the original, if a fork continues it in another one.
    pub(crate) moved_from: Option<PathBuf>,
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
            let mut session = Session::open(&log, options.model.lens.clone(), random_ids())?;
            let is_foreign = !is_of_home(of, &options.home);
            let moved_from = move_session(&mut session, of, options)?;
            Ok(OpenedSession { is_foreign, moved_from, ..opened(session, log, true) })
        }
        SessionOrigin::Branched { of, call } => {
            let log = new_log(options, project, None)?;
            copy(of, &log).map_err(|error| AgentError::file(of, &error))?;
            let mut session = Session::open(&log, options.model.lens.clone(), random_ids())?;
            session.branch_at(call, UNDER_WAY, options.clock.now())?;
            let moved_from = move_session(&mut session, of, options)?;
            Ok(OpenedSession { moved_from, ..opened(session, log, true) })
        }
    }
}

fn opened(session: Session, log: PathBuf, is_resumed: bool) -> OpenedSession {
    let folder = log.parent().and_then(Path::file_name);
    let id = folder.map_or(String::new(), |name| name.to_string_lossy().into_owned());
    OpenedSession { session, log, id, is_resumed, is_foreign: false, moved_from: None }
}

/// Records that a copy of the session in the log `of` works in the directory of the options, and returns the
/// original's directory if it is another one.
fn move_session(
    session: &mut Session,
    of: &Path,
    options: &AgentOptions,
) -> Result<Option<PathBuf>, AgentError> {
    let directory = &options.sources.search.directory;
    let before = session_directory(of).map_err(EngineError::from)?;
    if before.as_deref().is_some_and(|before| is_same_directory(before, directory)) {
        return Ok(None);
    }
    session.append(EntryDraft::session(&session_start(options)), options.clock.now())?;
    Ok(before)
}

/// Tells the model that a fork works in another directory than the conversation before it.
pub(crate) fn moved_text(from: &Path, to: &Path) -> String {
    format!(
        "This conversation continues in another directory. Your working directory is now {}. Everything before this message \
         happened in {}: relative paths in it refer to that directory, and relative paths from now on refer to the new one. \
         Read files again before you rely on what they contained.",
        to.display(),
        from.display()
    )
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

/// Reason why the prefix that a session was begun with cannot be sent again; `None` if it can. Transcripts of
/// other agents hold neither their system prompt nor the schemas of their tools.
pub(crate) fn unknown_prefix(opened: &OpenedSession) -> Option<String> {
    let Some(prefix) = opened.session.view().prefix() else {
        return Some(String::from("the log has lost its system prompt and tools"));
    };
    let about = pal_store::read_session_entry(&opened.log);
    let writer = about.map(|about| about.program).filter(|program| program != PROGRAM);
    let is_unknown = prefix.unseen_tokens > 0 || (writer.is_some() && prefix.notes.system.is_empty());
    let writer = writer.unwrap_or_else(|| String::from("another agent"));
    is_unknown.then(|| {
        format!("the session was imported from {writer}: its original system prompt and tools are unknown")
    })
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
    if session.view().branch().is_empty() {
        session.append(EntryDraft::session(&session_start(options)), now)?;
    }
    session.append(EntryDraft::prefix(prefix), now)?;
    Ok(())
}

fn session_start(options: &AgentOptions) -> SessionStart {
    SessionStart {
        program: String::from(PROGRAM),
        version: Some(options.prompt.version.clone()),
        cwd: Some(options.sources.search.directory.display().to_string()),
        ..SessionStart::default()
    }
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
    /// Window in tokens, which chooses the profile of the prefix.
    window: u64,
}

impl PromptBuilder {
    /// Returns the builder, and notices about settings that name nothing.
    pub(crate) fn new(
        options: &AgentOptions,
        is_clearing: bool,
        workspace: &Workspace,
        session: &str,
    ) -> (PromptBuilder, Vec<String>) {
        let is_attended = options.is_attended();
        let (output_style, style_problem) = output_style(options, workspace).unzip();
        let (scratchpad, scratchpad_problem) = scratchpad(options, session).unzip();
        let problems = [style_problem, scratchpad_problem].into_iter().flatten().flatten().collect();
        let builder = PromptBuilder {
            card: options.model.lens.card.clone(),
            attribution: options.prompt.attribution.clone(),
            mode: if is_attended { PromptMode::Interactive } else { PromptMode::Headless },
            prompts: options.prompt.prompts.clone(),
            facts: SessionFacts {
                guidance: guidance(options),
                is_clearing,
                token_budget: options.model.run.tokens_max,
                memory: options.memory.place.as_ref().map(|place| place.directory.display().to_string()),
                language: options.prompt.language.clone(),
                output_style: output_style.flatten(),
                scratchpad: scratchpad.flatten().map(|folder| folder.display().to_string()),
                ..SessionFacts::default()
            },
            today: options.prompt.today,
            tools: tools(options),
            servers: crate::session_mcp::names(options),
            window: options.model.limits.window,
        };
        (builder, problems)
    }

    /// Directory for temporary files, if the session has one.
    pub(crate) fn scratchpad(&self) -> Option<&str> {
        self.facts.scratchpad.as_deref()
    }

    /// Name of the output style, if it has one.
    pub(crate) fn output_style(&self) -> Option<&str> {
        self.facts.output_style.as_ref().map(|style| style.name.as_str())
    }

    /// Adds a text that makes the prefix unlike any other, for the debugging of cache breaks.
    pub(crate) fn break_cache(&mut self, text: String) {
        self.facts.cache_breaker = Some(text);
    }

    /// Replaces the output style of the next prefix.
    pub(crate) fn choose_output_style(&mut self, style: Option<OutputStyle>) {
        self.facts.output_style = style;
    }

    /// Assembles the next prefix for another model.
    pub(crate) fn switch_model(&mut self, card: &ModelCard, window: u64) {
        self.card = card.clone();
        self.window = window;
    }

    /// Lowers the window that the next prefix is assembled for.
    pub(crate) fn lower_window(&mut self, window: u64) {
        self.window = self.window.min(window);
    }

    /// Keeps the system prompts that a continued session was started with, also after its compactions.
    pub(crate) fn with_prompts_of(mut self, opened: &OpenedSession) -> PromptBuilder {
        let prefix = opened.session.view().prefix().filter(|_| opened.is_resumed && !opened.is_foreign);
        if let Some(recorded) = prefix.map(PromptOverrides::recorded_in) {
            self.prompts.custom = self.prompts.custom.or(recorded.custom);
            self.prompts.appended = self.prompts.appended.or(recorded.appended);
        }
        self
    }

    /// Adds the tools of the driving program, which the prefix lists.
    pub(crate) fn with_host_tools(mut self, tools: Vec<ToolSpec>) -> PromptBuilder {
        self.tools.extend(tools);
        self
    }

    /// Returns whether the recorded tool list of a session lacks a tool of the driving program.
    pub(crate) fn lacks_host_tools(&self, session: &Session) -> bool {
        let of_host = self.tools.iter().filter(|tool| tool.origin.server().is_some());
        let of_host: Vec<ToolSpec> = of_host.cloned().collect();
        let recorded = session.view().prefix().map_or("", |prefix| prefix.tools.as_str());
        let is_listed = |tool: &CatalogTool| recorded.contains(&format!("\"name\":\"{}\"", tool.wire_name));
        !ToolCatalog::new(&of_host).tools().iter().all(is_listed)
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
            window: self.window,
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

    /// Catalog of tools that a resumed session offers now. The list in its requests is the one in its log, so the profile
    /// of that prefix holds, whatever the window is now.
    pub(crate) fn catalog(&self, recorded: Option<&PromptPrefix>) -> ToolCatalog {
        let profile = PrefixProfile::from_name(recorded.and_then(|prefix| prefix.notes.profile.as_deref()));
        let catalog = ToolCatalog::for_profile(&self.tools, profile);
        if self.servers.is_empty() { catalog } else { catalog.expect_late_tools() }
    }
}

/// Output style of the settings, or the notice that there is none of this name.
fn output_style(
    options: &AgentOptions,
    workspace: &Workspace,
) -> Option<(Option<OutputStyle>, Option<String>)> {
    let name = options.prompt.output_style.as_ref()?;
    let mut styles = pal_tools::output_styles(workspace);
    if let Some(text) = styles.remove(name) {
        return Some((Some(OutputStyle { name: name.clone(), text }), None));
    }
    let names: Vec<String> = styles.into_keys().collect();
    let known = match names.is_empty() {
        true => String::from("there are no output styles; put one into ~/.claude/output-styles"),
        false => format!("there are: {}", names.join(", ")),
    };
    Some((None, Some(format!("no output style is named \"{name}\"; {known}"))))
}

/// Directory for temporary files, or the notice that it cannot be made.
fn scratchpad(options: &AgentOptions, session: &str) -> Option<(Option<PathBuf>, Option<String>)> {
    if !options.prompt.scratchpad {
        return None;
    }
    let temporary = std::env::temp_dir();
    let folder = temporary.canonicalize().unwrap_or(temporary).join(format!("pal-scratchpad-{session}"));
    Some(match make_private_folder(&folder) {
        Ok(()) => (Some(folder), None),
        Err(error) => (None, Some(format!("no scratchpad: {} cannot be made: {error}", folder.display()))),
    })
}

/// Makes a folder that only this user can enter. One that is there already has to be such a folder.
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(folder)?;
            let own = fs::metadata("/proc/self").map_or(found.uid(), |process| process.uid());
            match found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 {
                true => Ok(()),
                false => Err(std::io::Error::other("another user owns it or can enter it")),
            }
        }
        made => made,
    }
}

/// Tools that the session offers.
fn tools(options: &AgentOptions) -> Vec<ToolSpec> {
    let searches_web = can_search(options);
    let coordinates = options.prompt.prompts.coordinator.is_some();
    let is_offered = |tool: &ToolSpec| {
        !options.tools.without.contains(&tool.name)
            && (tool.name != WEB_SEARCH || searches_web)
            && !(coordinates && CHANGING.contains(&tool.name.as_str()))
    };
    // Where the model has a search tool anyway, rarely used tools need no room in the list.
    let has_search = !options.tools.deferred.is_empty() || !crate::session_mcp::names(options).is_empty();
    let is_deferred = |name: &SmolStr| {
        options.tools.deferred.contains(name) || (has_search && RARELY_USED.contains(&name.as_str()))
    };
    let offered = built_in_tools().into_iter().filter(is_offered);
    let offered = offered.map(|tool| ToolSpec { is_deferred: is_deferred(&tool.name), ..tool });
    offered.chain(options.tools.output_schema.as_ref().map(StructuredOutput::spec)).collect()
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
            "This session plans: look at whatever you need and change nothing. When the plan stands, show it with \
             ExitPlanMode; if that is not possible, end with a plan that another agent can carry out."
        }
        PermissionMode::Bypass => "Calls are not asked about.",
    }
}
