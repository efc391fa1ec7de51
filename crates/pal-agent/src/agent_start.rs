//! Starting an agent, step by step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pal_background::{
    CacheKeepalive, DreamScheduler, ExchangeListener, Extraction, MemoryKeeper, MemoryPrefetch, NoteKeeper,
    PromptSuggester, SpendingEntry, WriteOrigin, memory_index, record_spending,
};
use pal_engine::SessionConfig;
use pal_events::AgentEvent;
use pal_model::{EntryBody, EntryDraft, KnownFile, UsageBasis};
use pal_project::{ProjectSnapshot, take_project_snapshot};
use pal_prompt::ToolCatalog;
use pal_provider::RequestEncoder;
use pal_run::Run;
use pal_settings::{AnsweredIncludes, IncludeAnswers, KillSwitch, LearnedFactors, LearnedWindows};
use pal_store::log_path;
use pal_tools::{FileCheckpoints, MediaSupport, VersionKeeper, Workspace, hidden_files};

use crate::agent::Agent;
use crate::agent_handle::AgentHandle;
use crate::agent_inbox::AgentInbox;
use crate::agent_runtime::{AgentRuntime, SESSION_START, all_tools};
use crate::background_tasks::BackgroundTasks;
use crate::conversation_model::ConversationModel;
use crate::disk_output_limit::OutputLimit;
use crate::event_sink::EventSink;
use crate::hook_runner::HookRunner;
use crate::model_fallback::ModelFallback;
use crate::options::{AgentOptions, ModelOptions, SessionOrigin};
use crate::pause_recorder::PauseRecorder;
use crate::pending_entries::PendingEntries;
use crate::permission_checker::PermissionChecker;
use crate::project_context::{ProjectContext, available_skills};
use crate::session_mcp::McpServers;
use crate::session_open::{self, OpenedSession, PERMISSIONS, PromptBuilder, moved_text};
use crate::session_switches::SessionSwitches;
use crate::session_tools::structured_output::StructuredOutput;
use crate::subagents::{AGENT, RunningAgent, Subagents, TeamMailbox, is_fork, root_session};
use crate::todo_reminder::TodoReminder;
use crate::tool_runner::ToolRunner;
use crate::{AgentError, session_shell};

/// The prompt prefix that a session starts with, and what the model and the user hear about it.
struct StartedPrefix {
    catalog: ToolCatalog,
    attachments: Vec<(&'static str, String)>,
    notices: Vec<String>,
    warning: Option<String>,
}

impl<'a> Agent<'a> {
    /// Opens the session and reports it. Nothing is sent yet.
    pub fn start(
        mut options: AgentOptions,
        sink: Box<dyn FnMut(AgentEvent) + 'a>,
    ) -> Result<Agent<'a>, AgentError> {
        // MCP servers start up while everything else is prepared.
        let mut mcp = McpServers::start(&options);
        let project = pal_project::find_project(&options.sources.search.directory);
        let answers = IncludeAnswers::in_directory(&pal_store::project_directory(&options.home, &project));
        let AnsweredIncludes { allowed, refused } = answers.read();
        options.sources.search.allowed.extend(allowed);
        options.sources.search.refused.extend(refused);
        let mut gathered = take_project_snapshot(&options.sources);
        let mut opened = session_open::open(&options, &project)?;
        let clock = options.clock;
        let own = || Arc::new(FileCheckpoints::of_session(opened.folder(), move || clock.now()));
        // Changes of subagents belong to the session that started them.
        let checkpoints = Arc::clone(options.tools.checkpoints.get_or_insert_with(own));
        let mut config = options.session_config(&opened.log);
        let switches = SessionSwitches::new(&options.switches, &config);
        let pauses = PauseRecorder::open(&options, &project, &config);
        pauses.iter().for_each(|pauses| pauses.expect(&mut config, &switches, clock.now()));
        let (workspace, memory) = open_workspace(&options, &opened);
        let (prompt, problems) =
            PromptBuilder::new(&options, config.policy.warm_clear, &workspace, &opened.id);
        let prompt = prompt.with_prompts_of(&opened).with_host_tools(mcp.await_host_tools(&options));
        let reverted = revert_killed_dream(&options);
        let mut prefix = start_prefix(&options, &mut opened, &prompt, &mut gathered)?;
        prefix.notices.extend(reverted);
        take_over_factor(&options, &mut opened)?;
        prefix.notices.extend(problems);
        prefix.notices.extend(options.compaction_lens().and_then(Result::err));
        let output = options.tools.output_schema.clone().map(StructuredOutput::new);
        let inbox = AgentInbox::new();
        let shell = Arc::new(session_shell::open_shell(&options, &workspace));
        let subagents = open_subagents(&options, &opened, (&mcp, &prefix.catalog), &workspace, &inbox.handle);
        let definitions = pal_tools::definition_stamp(&workspace);
        let skills = available_skills(&switches, &workspace);
        let hooks = Arc::new(hook_runner(&options, &opened, &project, &workspace));
        let saved_mode = opened.session.view().state().mode.clone();
        let mut permissions = PermissionChecker::new(&options, Arc::clone(&shell), saved_mode.as_deref());
        prefix.attachments.extend(read_waiting_mail(&options, &opened, &subagents));
        let background = start_background(&options, (&opened, &config), &project, &workspace, &inbox.handle);
        permissions.allow_scratchpad(prompt.scratchpad());
        permissions.notes = background.notes.as_ref().and_then(NoteKeeper::own_file);
        let runtime = AgentRuntime {
            model: conversation_model(&options, &opened),
            clock: options.clock,
            inbox,
            events: EventSink::new(recording_sink(&options, &opened.id, sink)),
            tools: ToolRunner {
                all: Arc::new(all_tools(&mcp, &shell, &subagents, &prefix.catalog, output.as_ref())),
                output,
                catalog: prefix.catalog,
                workspace,
                shell,
                checkpoints,
                output_limit: output_limit(&options, &opened),
                running: Vec::new(),
                granted: BTreeMap::new(),
            },
            permissions,
            hooks,
            project: ProjectContext {
                instructions: gathered.instructions,
                skills,
                agents: subagents.offered(),
                definitions,
                servers: Vec::new(),
                announces: !switches.is_off(KillSwitch::Announcements),
                sources: options.sources,
                attaches_mentions: options.prompt.attaches_mentions && options.subagent.identity.is_none(),
                prompt,
                log: opened.log,
                answers,
                asked_includes: BTreeSet::new(),
            },
            memory,
            background,
            subagents,
            pending: PendingEntries {
                attachments: prefix.attachments,
                contents: Vec::new(),
                usage: Vec::new(),
                compaction: None,
                todo_reminder: TodoReminder::of(opened.session.view().branch()),
            },
            mcp,
            switches,
        };
        let run = Run::new(options.model.run.clone()).with_spent(opened.session.view().state().totals);
        let OpenedSession { session, id, is_resumed, .. } = opened;
        let reported = session.view().state().totals;
        let mut agent = Agent {
            session,
            config,
            run,
            runtime,
            unheard: VecDeque::new(),
            id,
            reported,
            last_rewind: None,
            home: options.home.clone(),
            idle_judged: None,
            pauses,
        };
        agent.report_start(is_resumed, &options.prompt.version, (prefix.notices, prefix.warning));
        Ok(agent)
    }

    /// Reports the open session to the user and to hooks.
    fn report_start(
        &mut self,
        is_resumed: bool,
        version: &str,
        (notices, warning): (Vec<String>, Option<String>),
    ) {
        let Agent { session, runtime, id, .. } = self;
        runtime.report_session(session, id, is_resumed, version);
        notices.into_iter().for_each(|notice| runtime.events.notice(notice));
        warning.into_iter().for_each(|warning| runtime.events.warning(warning));
        runtime.report_refused_includes();
        runtime.announce_instructions(SESSION_START);
        runtime.announce_servers();
        let cancel = runtime.inbox.handle.cancel();
        let source = if is_resumed { "resume" } else { "startup" };
        let said = runtime.hooks.session_started(session, source, runtime.permissions.mode, &cancel);
        runtime.pending.attach("hook", said);
    }
}

/// Starts a subagent as an agent of its own.
fn start_subagent<'a>(
    options: AgentOptions,
    sink: Box<dyn FnMut(AgentEvent) + 'a>,
) -> Result<Box<dyn RunningAgent + 'a>, AgentError> {
    Ok(Box::new(Agent::start(options, sink)?))
}

/// Reverts a dream that was killed, before its half-done work is read. Returns a notice about it.
fn revert_killed_dream(options: &AgentOptions) -> Option<String> {
    let place = options.memory.place.as_ref().filter(|_| options.subagent.identity.is_none())?;
    match pal_background::revert_killed_dreams(place, options.clock.now()) {
        Ok(false) => None,
        Ok(true) => Some(String::from("a dream was killed halfway: its changes of memories are undone")),
        Err(why) => Some(format!("a dream was killed halfway, and its changes cannot be undone: {why}")),
    }
}

/// Continues with the prefix of a resumed session, or starts a new one.
fn start_prefix(
    options: &AgentOptions,
    opened: &mut OpenedSession,
    prompt: &PromptBuilder,
    gathered: &mut ProjectSnapshot,
) -> Result<StartedPrefix, AgentError> {
    let unknown = session_open::unknown_prefix(opened).filter(|_| opened.is_resumed);
    let OpenedSession { session, log, is_resumed, is_foreign, moved_from, .. } = opened;
    let moved = moved_from.as_deref().map(|from| moved_text(from, &options.sources.search.directory));
    let moved = moved.map(|text| ("directory", text));
    // A session that was killed right after its first entry starts here.
    let has_begun = session.view().branch().iter().any(|entry| !matches!(entry.body, EntryBody::Session(_)));
    let now = options.clock.now();
    let lacks_tools = prompt.lacks_host_tools(session);
    if *is_resumed && has_begun && !*is_foreign && unknown.is_none() && !lacks_tools {
        let noted = session.view().prefix().map_or(&[][..], |prefix| &prefix.notes.sources);
        let changed = gathered.instructions.resume_from(noted, "since the session was left");
        // The session was warned when it started.
        gathered.instructions.take_warnings();
        let mut attachments: Vec<(&'static str, String)> = moved
            .into_iter()
            .chain(changed.into_iter().map(|notice| ("instructions", notice.text)))
            .collect();
        attachments.extend(prompt.unsaid(session).map(|text| (PERMISSIONS, text)));
        session.answer_interrupted_calls(options.clock.now())?;
        return Ok(StartedPrefix {
            catalog: prompt.catalog(session.view().prefix()),
            attachments,
            notices: Vec::new(),
            warning: None,
        });
    }
    let index = options.memory.place.as_ref().map(|place| memory_index(place, now));
    let (memory, mut notices) = index.unwrap_or_default();
    let assembled = prompt.assembled(gathered, memory);
    let cuts = assembled.left_out.iter().filter(|left| left.is_for_small_window());
    notices.extend(cuts.map(|left| format!("left out: {}; {}", left.what, left.why)));
    let mut warning = None;
    if *is_foreign && has_begun {
        session.answer_interrupted_calls(now)?;
        session_open::distrust(session, options, &assembled.prefix)?;
        warning = Some(format!(
            "{} is no session of {}: its system prompt, tools and reminders are not sent; those of this program take \
             their place",
            log_name(&options.origin, log),
            options.home.display()
        ));
    } else if let Some(reason) = unknown.filter(|_| has_begun) {
        session.answer_interrupted_calls(now)?;
        session.append(EntryDraft::prefix(&assembled.prefix), now)?;
        warning = Some(format!("{reason}; it continues with those of this program"));
    } else if *is_resumed && has_begun {
        session.answer_interrupted_calls(now)?;
        session.append(EntryDraft::prefix(&assembled.prefix), now)?;
        notices.push(String::from(
            "the driving program offers other tools than before, so the cache is written anew",
        ));
    } else {
        session_open::begin(session, options, &assembled.prefix)?;
    }
    let attachments = moved.into_iter().collect();
    Ok(StartedPrefix { catalog: assembled.catalog, attachments, notices, warning })
}

/// Freezes the correction factor that earlier sessions learned for the model at this endpoint (§10.7).
fn take_over_factor(options: &AgentOptions, opened: &mut OpenedSession) -> Result<(), AgentError> {
    let ModelOptions { lens, connection, .. } = &options.model;
    if !lens.estimator.is_fitted() {
        return Ok(());
    }
    let learned = LearnedFactors::in_home(&options.home);
    let learned = learned.find(connection.endpoint().address(), &lens.card.model);
    let factor = learned.factor_for(lens.card.generation);
    let reason = format!("estimates of earlier sessions were off by {:.2}", factor.as_f64());
    Ok(opened.session.freeze_factor(factor, reason, options.clock.now())?)
}

/// Opens the workspace, with the memory directory if there is one.
fn open_workspace(
    options: &AgentOptions,
    opened: &OpenedSession,
) -> (Arc<Workspace>, Option<MemoryPrefetch>) {
    let mut workspace = workspace(options, opened);
    let memory = options.memory.place.clone().map(|place| {
        let writing = WriteOrigin::default();
        workspace.recorded_folder = Some(Box::new(MemoryKeeper {
            folder: workspace.resolve(&place.directory.display().to_string()).real,
            place: place.clone(),
            session: opened.id.clone(),
            writing: writing.clone(),
            clock: options.clock,
        }));
        MemoryPrefetch::new(place, writing, options.memory.bytes_max, &opened.id)
    });
    (Arc::new(workspace), memory)
}

fn open_subagents(
    options: &AgentOptions,
    opened: &OpenedSession,
    (mcp, catalog): (&McpServers, &ToolCatalog),
    workspace: &Workspace,
    handle: &AgentHandle,
) -> Arc<Subagents> {
    // Definitions are needed only by an agent that can start others.
    let can_start = catalog.find_tool(AGENT).is_some();
    let known = if can_start { pal_tools::agent_definitions(workspace) } else { Vec::new() };
    // The directive that marks a fork is said only once the fork has started.
    let is_fork =
        matches!(options.origin, SessionOrigin::Branched { .. }) || is_fork(opened.session.view().branch());
    let mut template = options.clone();
    template.mcp.shared = Some(Arc::clone(&mcp.servers));
    // A subagent reports in words.
    template.tools.output_schema = None;
    let log = opened.log.clone();
    Arc::new(Subagents::new(template, log, known, handle.clone(), (is_fork, start_subagent)))
}

fn hook_runner(
    options: &AgentOptions,
    opened: &OpenedSession,
    project: &Path,
    workspace: &Arc<Workspace>,
) -> HookRunner {
    // A subagent's hooks run in the session that it belongs to; its id and log have fields of their own.
    let session = match options.subagent.identity {
        Some(_) => root_session(opened.folder()),
        None => opened.folder(),
    };
    let id = session.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let place = pal_hooks::HookSession {
        session_id: id,
        transcript_path: if session == opened.folder() { opened.log.clone() } else { log_path(session) },
        project: project.to_owned(),
        folder: opened.session.directory().to_owned(),
    };
    let (hooks, switches) = (options.hooks.clone(), options.switches.clone());
    let model = &options.model.lens.card.model;
    let hooks = HookRunner::new(hooks, place, Arc::clone(workspace), switches, model);
    hooks.of_agent(options.subagent.identity.clone(), &opened.log)
}

/// Delivers team mail that arrived while the session was closed; an attachment if it cannot be read.
fn read_waiting_mail(
    options: &AgentOptions,
    opened: &OpenedSession,
    subagents: &Subagents,
) -> Option<(&'static str, String)> {
    let has_mail =
        options.subagent.identity.is_none() && !opened.is_foreign && TeamMailbox::exists(opened.folder());
    match has_mail.then(|| subagents.lead())? {
        Ok(mail) => {
            mail.poll_now();
            None
        }
        Err(why) => Some(("agents", format!("The mail of the team cannot be read: {why}"))),
    }
}

fn start_background(
    options: &AgentOptions,
    (opened, config): (&OpenedSession, &SessionConfig),
    project: &Path,
    workspace: &Workspace,
    handle: &AgentHandle,
) -> BackgroundTasks {
    // Only the conversation itself needs background work: subagents report.
    if options.subagent.identity.is_some() {
        return BackgroundTasks {
            notes: None,
            extraction: None,
            dreams: None,
            keepalive: None,
            suggester: None,
            budget: None,
        };
    }
    let background = options.background_config();
    let listener: Arc<dyn ExchangeListener> = Arc::new(handle.clone());
    let budget = Arc::new(background.budget(&opened.id));
    let notes = options.background.notes.map(|notes| {
        NoteKeeper::open(opened.folder(), notes, &background, Arc::clone(&budget), Arc::clone(&listener))
    });
    // Only a person at a terminal reads suggestions.
    let suggests = options.background.suggests && options.is_attended();
    let suggester = suggests.then(|| {
        let suggestions = handle.clone();
        let deliver = Arc::new(move |text| suggestions.suggest(text));
        PromptSuggester::new(&background, Arc::clone(&budget), Arc::clone(&listener), deliver)
    });
    let pinged = handle.clone();
    let on_sent = Arc::new(move || pinged.report_keepalive());
    let keepalive = CacheKeepalive::begin(&background, config, Arc::clone(&budget), on_sent);
    let remembers = !options.switches.is_off(KillSwitch::Memory);
    let extraction = options.memory.extraction.filter(|_| remembers).map(|extraction| {
        let session = (opened.folder(), opened.id.as_str());
        let accounts = (Arc::clone(&listener), Arc::new(background.budget(&opened.id)));
        Extraction::open(&background, extraction, project, session, workspace, accounts)
    });
    // Unattended sessions do not last long enough for a dream.
    let gates = options.memory.dreams.filter(|_| remembers && options.is_attended());
    let dreams = gates.map(|gates| DreamScheduler::new(&background, gates, &opened.id, listener));
    BackgroundTasks { notes, extraction, dreams, keepalive, suggester, budget: Some(budget) }
}

/// Sink that also records what each exchange cost. A subagent's exchanges are reported to the session that it belongs
/// to, which records them.
fn recording_sink<'a>(
    options: &AgentOptions,
    session: &str,
    mut sink: Box<dyn FnMut(AgentEvent) + 'a>,
) -> Box<dyn FnMut(AgentEvent) + 'a> {
    if options.subagent.parent.is_some() {
        return sink;
    }
    let (home, clock, session) = (options.home.clone(), options.clock, session.to_owned());
    Box::new(move |event| {
        if let AgentEvent::ExchangeEnded(report) = &event
            && let Some(cost_usd) = report.cost.filter(|cost| *cost > 0.0)
        {
            // A server may say only with its first response that it is a simulator.
            let simulated = report.usage.as_ref().is_some_and(|usage| usage.basis == UsageBasis::Simulated);
            let entry = SpendingEntry { at: clock.now(), session: session.clone(), cost_usd, simulated };
            if let Err(error) = record_spending(&home, &entry) {
                tracing::warn!(%error, "the cost of an exchange is not recorded");
            }
        }
        sink(event);
    })
}

fn conversation_model(options: &AgentOptions, opened: &OpenedSession) -> ConversationModel {
    let connection = Arc::clone(&options.model.connection);
    let card = options.model.lens.card.clone();
    let encoder = RequestEncoder::new(&card, connection.endpoint().dialect(), opened.session.cache_key());
    ConversationModel {
        connection,
        encoder,
        card,
        windows: LearnedWindows::in_home(&options.home),
        factors: LearnedFactors::in_home(&options.home),
        lowered_window: None,
        time_waited: Duration::ZERO,
        reports_progress: options.model.reports_progress,
        alerts: options.model.alerts,
        daily_max: options.model.daily_max,
        is_quiet: false,
        fallback: ModelFallback::of_options(&options.model),
    }
}

fn output_limit(options: &AgentOptions, opened: &OpenedSession) -> Option<OutputLimit> {
    let bytes_max = options.tools.outputs.total_bytes_max;
    let is_subagent = options.subagent.identity.is_some();
    (!is_subagent).then(|| OutputLimit::new(&options.home, opened.session.directory(), bytes_max))
}

fn workspace(options: &AgentOptions, opened: &OpenedSession) -> Workspace {
    let search = &options.sources.search;
    let mut roots = vec![search.directory.clone()];
    roots.extend(search.added.iter().cloned());
    let roots = roots.into_iter().map(|root| root.canonicalize().unwrap_or(root)).collect();
    let state = opened.session.view().state();
    let seen: BTreeMap<PathBuf, KnownFile> =
        state.seen_files.iter().map(|(path, seen)| (PathBuf::from(path), seen.clone())).collect();
    let can = &options.model.lens.card.can;
    let abilities = MediaSupport { images: can.images, documents: can.documents };
    let folder = opened.folder().to_owned();
    let mut workspace = Workspace::new(roots, folder, search.home.clone(), abilities, seen);
    workspace.hidden = Some(hidden_files(&options.permissions.rules, &options.home, &workspace));
    workspace.program_home = Some(options.home.clone());
    workspace.checkpoints =
        options.tools.checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn VersionKeeper>);
    workspace.allows_private_addresses = options.tools.allows_private_addresses;
    workspace.plugins = options.tools.plugins.clone();
    // The directory that commands worked in last, if it is still there. A foreign log does not say where commands run.
    if let Some(directory) = state
        .directory
        .as_ref()
        .map(PathBuf::from)
        .filter(|directory| !opened.is_foreign && directory.is_dir())
    {
        workspace.change_directory(&directory);
    }
    workspace
}

/// The file that a session was opened from.
fn log_name(beginning: &SessionOrigin, log: &Path) -> String {
    match beginning {
        SessionOrigin::Resumed(of) | SessionOrigin::Forked(of, _) | SessionOrigin::Branched { of, .. } => {
            of.display().to_string()
        }
        SessionOrigin::New(_) => log.display().to_string(),
    }
}
