//! How a session begins: anew, where it was left, or as a copy of another one.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pal_engine::Session;
use pal_model::{Body, Card, Decision, DecisionKind, Draft, EntryId, Prefix};
use pal_permissions::Mode;
use pal_prompt::{
    Assembled, Assembly, Catalogue, MemoryIndex, Mode as PromptMode, Prompts, SessionFacts, ToolSpec,
    assemble, built_in_tools,
};
use pal_sources::Gathered;
use pal_store::{create_private_directory, log_path, project_directory};
use smol_str::SmolStr;

use crate::AgentError;
use crate::agents::UNDER_WAY;
use crate::clock;
use crate::options::{Beginning, Fencing, Options};

/// Notes on what the model may do.
pub(crate) const PERMISSIONS: &str = "permissions";

/// A session that is open, and its log.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) log: PathBuf,
    pub(crate) id: String,
    pub(crate) is_resumed: bool,
    /// Whether its log was written elsewhere, by anybody: it is no session of this home.
    pub(crate) is_foreign: bool,
}

/// Opens the session; a new one has no prefix yet.
pub(crate) fn open(options: &Options, project: &Path) -> Result<Opened, AgentError> {
    match &options.beginning {
        Beginning::New(id) => {
            let log = new_log(options, project, *id)?;
            let session = Session::create(&log, options.lens.clone(), clock::ids())?;
            Ok(opened(session, log, false))
        }
        Beginning::Resumed(log) => {
            let log = std::path::absolute(log).unwrap_or_else(|_| log.clone());
            let session = Session::open(&log, options.lens.clone(), clock::ids())?;
            let is_foreign = !is_of_home(&log, &options.home);
            Ok(Opened { is_foreign, ..opened(session, log, true) })
        }
        Beginning::Forked(of, id) => {
            let log = new_log(options, project, *id)?;
            copy(of, &log).map_err(|error| AgentError::file(of, &error))?;
            let session = Session::open(&log, options.lens.clone(), clock::ids())?;
            let is_foreign = !is_of_home(of, &options.home);
            Ok(Opened { is_foreign, ..opened(session, log, true) })
        }
        Beginning::Branched { of, call } => {
            let log = new_log(options, project, None)?;
            copy(of, &log).map_err(|error| AgentError::file(of, &error))?;
            let mut session = Session::open(&log, options.lens.clone(), clock::ids())?;
            session.branch_at(call, UNDER_WAY, options.clock.now())?;
            Ok(opened(session, log, true))
        }
    }
}

fn opened(session: Session, log: PathBuf, is_resumed: bool) -> Opened {
    let folder = log.parent().and_then(Path::file_name);
    let id = folder.map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Opened { session, log, id, is_resumed, is_foreign: false }
}

/// Returns whether a log lies among the sessions of a home, links followed.
fn is_of_home(log: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(log).starts_with(real(home).join("projects"))
}

/// Takes from a foreign log what would speak for the system: its attachments leave the model's sight, and `prefix` stands in
/// the place of its system prompt, tools and context. The log itself keeps everything.
pub(crate) fn distrust(session: &mut Session, options: &Options, prefix: &Prefix) -> Result<(), AgentError> {
    let now = options.clock.now();
    let is_attachment = |shown: &pal_view::Shown<'_>| matches!(shown.entry.body, Body::Attachment(_));
    let entries: Vec<EntryId> =
        session.view().shown().filter(is_attachment).map(|shown| shown.entry.id).collect();
    if !entries.is_empty() {
        let reason = String::from("attachments of a foreign log do not speak for the system");
        let kind = DecisionKind::Snip { entries };
        session.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
    }
    let parts = |prefix: &Prefix| (prefix.system.clone(), prefix.tools.clone(), prefix.context.raw());
    if session.view().prefix().map(parts) != Some(parts(prefix)) {
        session.append(Draft::prefix(prefix), now)?;
    }
    Ok(())
}

/// The log of a session that does not exist yet; its folder does.
fn new_log(options: &Options, project: &Path, id: Option<EntryId>) -> Result<PathBuf, AgentError> {
    let id = id.unwrap_or_else(|| clock::ids().next_id(options.clock.now()));
    let among_sessions = || project_directory(&options.home, project).join("sessions").join(id.to_string());
    let folder = options.folder.clone().unwrap_or_else(among_sessions);
    create_private_directory(&folder).map_err(|error| AgentError::Other(error.to_string()))?;
    let log = log_path(&folder);
    Ok(std::path::absolute(&log).unwrap_or(log))
}

/// Copies a log, byte for byte, so that the copy sends what the original would have sent and reads its cache.
fn copy(of: &Path, to: &Path) -> std::io::Result<()> {
    let part = to.with_extension("part");
    let mut from = fs::File::open(of)?;
    let mut into = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    std::io::copy(&mut from, &mut into)?;
    into.flush()?;
    into.sync_data()?;
    // Half a copy is no session.
    fs::rename(&part, to)
}

/// Appends how a new session begins.
pub(crate) fn begin(session: &mut Session, options: &Options, prefix: &Prefix) -> Result<(), AgentError> {
    let now = options.clock.now();
    let began = pal_model::Session {
        program: String::from("pal"),
        version: Some(options.version.clone()),
        cwd: Some(options.sources.search.directory.display().to_string()),
        ..pal_model::Session::default()
    };
    if session.view().branch().is_empty() {
        session.append(Draft::session(&began), now)?;
    }
    session.append(Draft::prefix(prefix), now)?;
    Ok(())
}

/// What the prefix of a session is made of, besides what is gathered around it: it is put together when a session begins, and
/// again behind a compaction.
#[derive(Clone)]
pub(crate) struct Prefixing {
    card: Card,
    attribution: String,
    mode: PromptMode,
    prompts: Prompts,
    facts: SessionFacts,
    today: fn() -> String,
    tools: Vec<ToolSpec>,
    servers: Vec<SmolStr>,
}

impl Prefixing {
    pub(crate) fn new(options: &Options, is_clearing: bool) -> Prefixing {
        let is_attended = options.is_attended();
        Prefixing {
            card: options.lens.card.clone(),
            attribution: options.attribution.clone(),
            mode: if is_attended { PromptMode::Interactive } else { PromptMode::Headless },
            prompts: options.prompts.clone(),
            facts: SessionFacts {
                guidance: guidance(options),
                is_clearing,
                token_budget: options.run.tokens_max,
                memory: options.memory.as_ref().map(|place| place.directory.display().to_string()),
                ..SessionFacts::default()
            },
            today: options.today,
            tools: tools(options),
            servers: crate::servers::names(options),
        }
    }

    /// What stands before the messages, with what is around the session now.
    pub(crate) fn assembled(&self, gathered: &Gathered, memory: Vec<MemoryIndex>) -> Assembled {
        assemble(&Assembly {
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
            ..Assembly::bare(&self.card)
        })
    }

    /// What the model is to know of what it may do now, where what it was told last is something else.
    pub(crate) fn unsaid(&self, session: &Session) -> Option<String> {
        let told = told(session)?;
        let unsaid = self.facts.guidance.iter().filter(|words| !told.contains(*words));
        let words: Vec<&str> = unsaid.map(String::as_str).collect();
        (!words.is_empty()).then(|| changed(&words.join(" ")))
    }

    /// Another mode holds: what the model is told of it, now and behind the next compaction.
    pub(crate) fn choose_mode(&mut self, mode: Mode) -> String {
        if let Some(first) = self.facts.guidance.first_mut() {
            *first = String::from(guidance_of(mode));
        }
        changed(guidance_of(mode))
    }

    /// The tools that the session offers now. What its requests list is what its log holds.
    pub(crate) fn catalogue(&self) -> Catalogue {
        let catalogue = Catalogue::new(&self.tools);
        if self.servers.is_empty() { catalogue } else { catalogue.expecting_late() }
    }
}

/// The tools that the session offers.
fn tools(options: &Options) -> Vec<ToolSpec> {
    let offered = built_in_tools().into_iter().filter(|tool| !options.without_tools.contains(&tool.name));
    let deferring =
        |tool: ToolSpec| ToolSpec { is_deferred: options.deferred_tools.contains(&tool.name), ..tool };
    offered.map(deferring).collect()
}

/// What the model was told of what it may do, and still counts: the prefix, and the newest word on the mode behind it.
fn told(session: &Session) -> Option<String> {
    let view = session.view();
    let mut told = view.prefix()?.system.to_string();
    let is_about_mode = |text: &String| Mode::ALL.iter().any(|mode| text.contains(guidance_of(*mode)));
    let notes = view.shown().filter_map(|shown| match &shown.entry.body {
        Body::Attachment(note) if note.what == PERMISSIONS => Some(note.content.raw()),
        _ => None,
    });
    if let Some(newest) = notes.filter(is_about_mode).last() {
        Mode::ALL.iter().for_each(|mode| told = told.replace(guidance_of(*mode), ""));
        told.push_str(&newest);
    }
    Some(told)
}

fn changed(words: &str) -> String {
    format!("What you may do is not what it was. From now on this holds: {words}")
}

/// What the model is told of what it may do.
fn guidance(options: &Options) -> Vec<String> {
    let mut guidance = vec![String::from(guidance_of(options.mode))];
    let is_confined = |fencing: &&Fencing| fencing.is_for_all || options.mode == Mode::Bypass;
    if let Some(fencing) = options.fence.as_ref().filter(is_confined) {
        let network = if fencing.network { "reach the network" } else { "do not reach the network" };
        guidance.push(format!(
            "Shell commands run in a sandbox: they can write to the project and to temporary files only, and {network}."
        ));
    }
    guidance
}

fn guidance_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => {
            "Reading inside the project is allowed. Changing files and running commands that do more than look needs a \
             rule that allows it."
        }
        Mode::AcceptEdits => {
            "Reading and changing files inside the project is allowed. Running commands that do more than look needs a \
             rule that allows it."
        }
        Mode::Plan => {
            "This session plans: look at whatever you need, change nothing, and end with a plan that somebody else could \
             carry out."
        }
        Mode::Bypass => "Calls are not asked about.",
    }
}
