//! The agent.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pal_engine::{Engine, Session, drive};
use pal_mcp::Servers;
use pal_model::{Body, Content, FileSeen, Origin};
use pal_permissions::Mode;
use pal_prompt::Offered;
use pal_session::{End as RunEnd, Input, Run, Said};
use pal_settings::Switch;
use pal_sources::gather;
use pal_tools::{Abilities, Shell, Workspace};
use smol_str::SmolStr;

use crate::AgentError;
use crate::agents::{AGENT, Agents, Mail, Team, is_fork};
use crate::allowance::Allowance;
use crate::around::Around;
use crate::background::{self, DreamTask, Dreaming};
use crate::desk::Desk;
use crate::event::{Began, End, Ended, Event};
use crate::gate::Gate;
use crate::handle::{Handle, Signal};
use crate::listening::Listening;
use crate::note_keeping::NoteKeeping;
use crate::opening::{self, Opened, PERMISSIONS, Prefixing};
use crate::options::{Beginning, Options};
use crate::output_limit::OutputLimit;
use crate::remembering::{MemoryKeeper, Remembering, Writing, memory_index};
use crate::reminding::Reminding;
use crate::servers::Served;
use crate::switched::Switched;
use crate::voice::Voice;
use crate::warming::Warming;

/// An agent with its session.
pub struct Agent<'a> {
    pub(crate) session: Session,
    pub(crate) engine: Engine,
    run: Run,
    pub(crate) desk: Desk<'a>,
    /// What was said while it rested.
    unheard: VecDeque<Said>,
    id: String,
}

impl<'a> Agent<'a> {
    /// Opens the session and tells what it consists of. Nothing is sent yet.
    pub fn start(options: Options, sink: Box<dyn FnMut(Event) + 'a>) -> Result<Agent<'a>, AgentError> {
        let directory = options.sources.search.directory.clone();
        // They come up while everything else is looked for.
        let served = Served::start(&options);
        let project = pal_sources::project_of(&directory);
        let mut gathered = gather(&options.sources);
        let Opened { mut session, log, id, is_resumed, is_foreign } = opening::open(&options, &project)?;
        let engine = options.engine(&log);
        let switched = Switched::new(&options.switches, &engine);
        let prefixing = Prefixing::new(&options, engine.policy.warm_clear);
        let mut notes: Vec<(&'static str, String)> = Vec::new();
        let mut notices = Vec::new();
        let mut foreign = None;
        // A session that was killed before anything but its beginning was written begins here.
        let has_begun = session.view().branch().iter().any(|entry| !matches!(entry.body, Body::Session(_)));
        let catalogue = if is_resumed && has_begun && !is_foreign {
            let noted = session.view().prefix().map_or(&[][..], |prefix| &prefix.notes.sources);
            let changed = gathered.instructions.resumed(noted);
            notes.extend(changed.into_iter().map(|notice| ("instructions", notice.text)));
            notes.extend(prefixing.unsaid(&session).map(|text| (PERMISSIONS, text)));
            session.settle(options.clock.now())?;
            prefixing.catalogue()
        } else {
            let now = options.clock.now();
            let index = options.memory.as_ref().map(|place| memory_index(place, now));
            let (memory, cut) = index.unwrap_or_default();
            notices = cut;
            let assembled = prefixing.assembled(&gathered, memory);
            if is_foreign && has_begun {
                session.settle(now)?;
                opening::distrust(&mut session, &options, &assembled.prefix)?;
                foreign = Some(format!(
                    "{} is no session of {}: its system prompt, tools and reminders are not sent; those of this program take \
                     their place",
                    log_name(&options.beginning, &log),
                    options.home.display()
                ));
            } else {
                opening::begin(&mut session, &options, &assembled.prefix)?;
            }
            assembled.catalogue
        };
        let mut workspace = workspace(&options, &session, &log, is_foreign);
        let remembering = options.memory.clone().map(|place| {
            let writing = Writing::default();
            workspace.keeper = Some(Box::new(MemoryKeeper {
                folder: workspace.resolve(&place.directory.display().to_string()).real,
                place: place.clone(),
                session: id.clone(),
                writing: writing.clone(),
                clock: options.clock,
            }));
            Remembering::new(place, writing, options.memory_bytes_max, &id)
        });
        let workspace = Arc::new(workspace);
        let (sender, signals) = channel();
        let handle = Handle::new(sender);
        let shell = Arc::new(crate::fencing::shell(&options, &workspace));
        // Who cannot send any need not know of any.
        let sends = catalogue.named(AGENT).is_some();
        let known = if sends { pal_tools::agents(&workspace) } else { Vec::new() };
        let is_fork = is_fork(session.view().branch());
        let shared_servers = Some(Arc::clone(&served.servers));
        let template = Options { shared_servers, ..options.clone() };
        let team = Arc::new(Team::new(template, log.clone(), known, handle.clone(), is_fork));
        let announces = !switched.is_off(Switch::Announcements);
        let offered = |skill: pal_tools::SkillInfo| Offered {
            name: SmolStr::new(skill.name),
            about: skill.description,
        };
        let skills = match switched.is_off(Switch::Skills) {
            true => Vec::new(),
            false => pal_tools::skills(&workspace).into_iter().map(offered).collect(),
        };
        let agents = team.offered();
        let hooks = options.hooks.clone();
        let place = pal_hooks::Place {
            session_id: id.clone(),
            transcript_path: log.clone(),
            project: project.clone(),
            folder: session.directory().to_owned(),
        };
        let model = &options.lens.card.model;
        let hooks = Listening::new(hooks, place, Arc::clone(&workspace), options.switches.clone(), model);
        let hooks = Arc::new(hooks.of_agent(options.agent.clone(), &log));
        let totals = session.view().state().totals;
        let mode = session.view().state().mode.clone();
        let dialect = options.line.endpoint().dialect();
        let cache_key = session.view().branch().first().map(|entry| format!("pal-{}", entry.id));
        let mut gate = Gate {
            rules: options.rules.clone(),
            mode: options.mode,
            usual: options.mode,
            own: Some(options.home.clone()),
            notes: None,
            asking: options.asking.clone(),
            agent: options.agent.as_ref().map(|(name, _)| name.clone()),
            memory_tools: options.memory_tools.clone(),
            shell: Arc::clone(&shell),
            confines_all: options.fence.as_ref().is_some_and(|fencing| fencing.is_for_all),
        };
        // What the user says now counts more than what was said then.
        if let Some(mode) = mode.filter(|_| !options.is_mode_chosen) {
            gate.set_mode(&mode);
        }
        if options.begins_planning {
            gate.mode = Mode::Plan;
        }
        // Something may have come while it was not there.
        let session_folder = log.parent().unwrap_or(&log);
        if options.agent.is_none() && !is_foreign && Mail::exists(session_folder) {
            match team.lead() {
                Ok(mail) => mail.look_now(),
                Err(why) => notes.push(("agents", format!("The mail of the team cannot be read: {why}"))),
            }
        }
        let told_mode = gate.mode;
        let (home, line) = (&options.home, Arc::clone(&options.line));
        let allowance = Arc::new(Allowance::new(home, options.background_tokens_daily, &id, line));
        // Only the conversation itself is worth notes: agents that are sent report.
        let note_keeping = match options.agent {
            None => NoteKeeping::open(session_folder, &options, Arc::clone(&allowance), handle.clone()),
            Some(_) => None,
        };
        gate.notes = note_keeping.as_ref().and_then(NoteKeeping::own_file);
        let output_limit = match options.agent {
            None => Some(OutputLimit::new(home, session.directory(), options.outputs.total_bytes_max)),
            Some(_) => None,
        };
        let warming = Warming::begin(&options, &engine, allowance);
        let (extraction, dreaming) =
            background::begin(&options, (session_folder, id.as_str()), &project, &workspace, &handle);
        let mut desk = Desk {
            voice: Voice::new(&options.lens.card, dialect, cache_key),
            line: options.line,
            clock: options.clock,
            card: options.lens.card.clone(),
            handle,
            signals,
            sink,
            tools: Arc::new(served.all_tools(&shell, &team, &catalogue)),
            served,
            catalogue,
            workspace,
            shell,
            gate,
            hooks,
            reminding: Reminding::of(session.view().branch()),
            note_keeping,
            remembering,
            extraction,
            dreaming,
            warming,
            around: Around {
                instructions: gathered.instructions,
                skills,
                agents,
                servers: Vec::new(),
                announces,
            },
            team,
            spent: Vec::new(),
            sources: options.sources,
            output_limit,
            prefixing,
            switched,
            log,
            notes,
            told_mode,
            wishes_compaction: None,
            done: Vec::new(),
            denials: Vec::new(),
            running: Vec::new(),
            granted: BTreeMap::new(),
            took_provider: Duration::ZERO,
        };
        let run = Run::new(options.run.clone()).with_spent(totals);
        desk.began(&session, &id, is_resumed, &options.version);
        notices.into_iter().for_each(|notice| (desk.sink)(Event::Notice(notice)));
        foreign.into_iter().for_each(|warning| (desk.sink)(Event::Warning(warning)));
        desk.tell_refused_includes();
        desk.tell_instructions();
        desk.tell_servers();
        let cancel = desk.handle.cancel();
        let source = if is_resumed { "resume" } else { "startup" };
        let said = desk.hooks.session_started(&session, source, &desk.gate, &cancel);
        desk.notes.extend(said.into_iter().map(|text| ("hook", text)));
        Ok(Agent { session, engine, run, desk, unheard: VecDeque::new(), id })
    }

    /// Works on a prompt until it has ended. The log holds everything, whatever comes of it.
    pub fn prompt(&mut self, content: Content) -> Result<Ended, AgentError> {
        self.work(Input::Prompt(content), false)
    }

    fn work(&mut self, input: Input, is_given_up: bool) -> Result<Ended, AgentError> {
        let begun = Instant::now();
        let span = tracing::info_span!("invoke_agent", session = %self.id);
        let within = span.entered();
        let before = self.session.view().state().totals;
        self.desk.begin_prompt();
        self.desk.tell_remembered();
        self.run.handle(input);
        if is_given_up {
            self.run.handle(Input::Interrupt);
        }
        let end = drive(&mut self.session, &mut self.engine, &mut self.run, &mut self.desk)?;
        let now = self.desk.clock.now();
        self.desk.keep_notes(&self.session, &self.engine, now);
        if end == RunEnd::Done {
            self.desk.remember(&self.session, &self.engine, now);
        }
        self.desk.book(&mut self.session, now)?;
        self.desk.pause(&self.session, &self.engine, now);
        let ended = Ended {
            end: match end {
                RunEnd::Done => End::Done,
                RunEnd::Refused => {
                    End::Refused(String::from("the model refused to answer; its words are not reused"))
                }
                RunEnd::Limit(which) => End::Limit(which),
                RunEnd::Interrupted => End::Interrupted,
                RunEnd::Failed(why) => End::Failed(why),
            },
            text: self.run.last_words().to_owned(),
            turns: self.run.turns(),
            took: begun.elapsed(),
            took_provider: self.desk.took_provider,
            spent: self.session.view().state().totals.since(&before),
            denials: std::mem::take(&mut self.desk.denials),
        };
        tracing::info!(
            end = ended.end.name(),
            turns = ended.turns,
            took_ms = ended.took.as_millis() as u64,
            provider_ms = ended.took_provider.as_millis() as u64,
            denials = ended.denials.len(),
            "ended"
        );
        drop(within);
        (self.desk.sink)(Event::Ended(ended.clone()));
        Ok(ended)
    }

    /// Works on whatever was said too late for the last prompt, and on what is said meanwhile. How the last of it ended; none
    /// if nothing was said.
    pub fn heed(&mut self) -> Result<Option<Ended>, AgentError> {
        self.heed_all(false)
    }

    /// Records what was said too late for the last prompt, without working on it: somebody wants everything to stop.
    pub fn give_up_unheard(&mut self) -> Result<Option<Ended>, AgentError> {
        self.heed_all(true)
    }

    fn heed_all(&mut self, is_given_up: bool) -> Result<Option<Ended>, AgentError> {
        let mut last = None;
        while !self.desk.handle.is_closed() && self.has_unheard() {
            let Some(Said { origin, content }) = self.unheard.pop_front() else { break };
            let input = match origin {
                Origin::Person => Input::Prompt(content),
                _ => Input::Message(content),
            };
            last = Some(self.work(input, is_given_up)?);
        }
        Ok(last)
    }

    /// Whether something was said that it has not heard.
    pub fn has_unheard(&mut self) -> bool {
        self.unheard.extend(self.run.take_unheard());
        while let Ok(signal) = self.desk.signals.try_recv() {
            self.keep(signal);
        }
        !self.unheard.is_empty()
    }

    /// Whether agents that it sent are at work, and will say something.
    pub fn awaits(&self) -> bool {
        self.desk.team.is_at_work()
    }

    /// Waits until a message arrives or a subagent has ended; false if the user interrupts the wait.
    pub fn rest(&mut self) -> Result<bool, AgentError> {
        while self.unheard.is_empty() {
            // The desk holds a handle itself, so the channel does not close.
            let Ok(signal) = self.desk.signals.recv() else { return Ok(false) };
            if matches!(signal, Signal::Said(Input::Interrupt)) {
                return Ok(false);
            }
            if matches!(signal, Signal::AgentLeft) {
                return Ok(true);
            }
            self.keep(signal);
            self.desk.book(&mut self.session, self.desk.clock.now())?;
        }
        Ok(true)
    }

    /// Takes in what happened while it rested.
    fn keep(&mut self, signal: Signal) {
        match self.desk.taken_in(signal) {
            Some(Input::Prompt(content)) => self.unheard.push_back(Said { origin: Origin::Person, content }),
            Some(Input::Message(content)) => self.unheard.push_back(Said { origin: Origin::Agent, content }),
            // What comes of a call that nobody waits for any more is nothing.
            _ => {}
        }
    }

    /// Works on a prompt that was given up before it began: it is recorded, and nothing is done.
    pub fn prompt_given_up(&mut self, content: Content) -> Result<Ended, AgentError> {
        self.work(Input::Prompt(content), true)
    }

    /// Steers and interrupts it from other threads.
    pub fn handle(&self) -> Handle {
        self.desk.handle.clone()
    }

    /// The shell, whose commands in the background are to be ended by whoever ends the program without the agent.
    pub fn shell(&self) -> Arc<Shell> {
        Arc::clone(&self.desk.shell)
    }

    /// The MCP servers, which are to be stopped by whoever ends the program without the agent.
    pub fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.desk.served.servers)
    }

    /// The agents that it can send and has sent.
    pub fn agents(&self) -> Agents {
        Agents(Arc::clone(&self.desk.team))
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for memories that are being drawn from the conversation, at most so long, or until somebody wants an end to it.
    pub fn wait_for_memories(&mut self, limit: Duration) -> Result<(), AgentError> {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        let until = Instant::now() + limit;
        let cancel = self.desk.handle.cancel();
        while let Some(extraction) = &self.desk.extraction
            && !extraction.wait(until.min(Instant::now() + LOOK_EVERY))
            && Instant::now() < until
            && !cancel.is_cancelled()
        {}
        while let Ok(signal) = self.desk.signals.try_recv() {
            self.keep(signal);
        }
        self.desk.book(&mut self.session, self.desk.clock.now())?;
        Ok(())
    }

    /// The last dream of this session, for whoever looks at it or stops it.
    pub fn dream(&self) -> impl Fn() -> Option<DreamTask> + Send + Sync + 'static {
        let task = self.desk.dreaming.as_ref().map(Dreaming::task);
        move || task.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends what is under way in the background, and lets hooks know.
    pub fn finish(mut self, reason: &str) {
        // Who interrupted the last prompt still wants its end to be heard of.
        self.desk.handle.renew();
        let cancel = self.desk.handle.cancel();
        self.desk.hooks.session_ended(reason, &self.desk.gate, &cancel);
        self.desk.tell_notices();
        // What is not in the log is in the books of background work.
        if let Err(error) = self.desk.go_on(&mut self.session) {
            tracing::warn!(%error, "pings are not in the log");
        }
        if let Some(keeping) = &mut self.desk.note_keeping {
            keeping.end();
        }
        if let Some(remembering) = &mut self.desk.remembering {
            remembering.end();
        }
        if let Some(extraction) = &self.desk.extraction {
            extraction.end();
        }
        if let Some(dreaming) = &mut self.desk.dreaming {
            dreaming.end();
        }
        self.desk.team.end();
        self.desk.served.stop();
        self.desk.shell.end();
    }
}

/// Damaged places of a log that are named one by one when its session begins.
const DAMAGE_SHOWN_MAX: usize = 5;

impl Desk<'_> {
    fn began(&mut self, session: &Session, id: &str, is_resumed: bool, version: &str) {
        (self.sink)(Event::Began(Began {
            session_id: id.to_owned(),
            transcript_path: self.log.display().to_string(),
            cwd: self.workspace.directory().display().to_string(),
            model: self.card.model.clone(),
            tools: self.catalogue.tools().iter().map(|tool| tool.wire_name.clone()).collect(),
            permission_mode: SmolStr::new_static(self.gate.mode.name()),
            is_resumed,
            version: version.to_owned(),
        }));
        for warning in damage_warnings(session.problems(), id) {
            (self.sink)(Event::Warning(warning));
        }
        if let Some(left_out) = session.left_out() {
            (self.sink)(Event::Warning(left_out.to_string()));
        }
    }

    fn begin_prompt(&mut self) {
        // Who wanted the last prompt to stop too late does not mean this one.
        let waiting: Vec<Signal> = self.signals.try_iter().collect();
        for signal in waiting {
            match signal {
                Signal::Said(Input::Interrupt) if !self.handle.is_closed() => {}
                other => self.handle.send(other),
            }
        }
        self.handle.renew();
        self.granted.clear();
        self.took_provider = Duration::ZERO;
        self.denials.clear();
    }
}

/// What the user is told of damage to the log: the first places, and where to see all of them.
fn damage_warnings(problems: &[pal_store::Problem], id: &str) -> Vec<String> {
    let mut warnings: Vec<String> =
        problems.iter().take(DAMAGE_SHOWN_MAX).map(|problem| format!("damaged log: {problem}")).collect();
    if !problems.is_empty() {
        let more = match problems.len().saturating_sub(DAMAGE_SHOWN_MAX) {
            0 => String::new(),
            more => format!("{more} more; "),
        };
        warnings.push(format!(
            "damaged log: {more}everything that is intact was read; `pal check {id}` lists the damage, \
             `pal check {id} --repair` repairs it by appending"
        ));
    }
    warnings
}

fn workspace(options: &Options, session: &Session, log: &std::path::Path, is_foreign: bool) -> Workspace {
    let search = &options.sources.search;
    let mut roots = vec![search.directory.clone()];
    roots.extend(search.added.iter().cloned());
    let roots = roots.into_iter().map(|root| root.canonicalize().unwrap_or(root)).collect();
    let state = session.view().state();
    let seen: BTreeMap<PathBuf, FileSeen> =
        state.seen_files.iter().map(|(path, seen)| (PathBuf::from(path), seen.clone())).collect();
    let can = &options.lens.card.can;
    let abilities = Abilities { images: can.images, documents: can.documents };
    let folder = log.parent().unwrap_or(log).to_owned();
    let mut workspace = Workspace::new(roots, folder, search.home.clone(), abilities, seen);
    workspace.hidden = Some(crate::gate::hidden(&options.rules, &options.home, &workspace));
    workspace.program_home = Some(options.home.clone());
    workspace.allows_private_addresses = options.allows_private_addresses;
    // The directory that commands worked in last, if it is still there. A foreign log does not say where commands run.
    if let Some(directory) =
        state.directory.as_ref().map(PathBuf::from).filter(|directory| !is_foreign && directory.is_dir())
    {
        workspace.change_directory(&directory);
    }
    workspace
}

/// The file that a session was opened from.
fn log_name(beginning: &Beginning, log: &std::path::Path) -> String {
    match beginning {
        Beginning::Resumed(of) | Beginning::Forked(of, _) | Beginning::Branched { of, .. } => {
            of.display().to_string()
        }
        Beginning::New(_) => log.display().to_string(),
    }
}
