//! Where the agent is joined to the command line: what was typed and set becomes what an agent is made of.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pal_agent::{
    Agent, AgentError, Beginning, Clock, Event, Fencing, GateSettings, Handle, Learning, Line, Options, Post,
};
use pal_context::NotesCadence;
use pal_model::{Body, Card, Content, DecisionKind, Entry, EntryId, Text};
use pal_permissions::{Mode, Placed, Rule, Rules};
use pal_prompt::Prompts;
use pal_sandbox::{Fence, SandboxProbe};
use pal_session::{ProgressLimits, RunSettings};
use pal_settings::{NotesBy, Resolved, SandboxWhen, Switch};
use pal_store::Reader;
use pal_view::{Limits, Scope};
use smol_str::SmolStr;

use super::Show;
use super::input::{Given, listen};
use super::models::models;
use super::signals::interrupt_on_signals;
use crate::arguments::{Print, ProviderName};
use crate::books::newest;
use crate::failure::Failure;
use crate::progress::ReadingLog;
use crate::provider::{endpoint, provider_policy, runtime, simulator, usual_dialect, usual_provider};
use crate::session::{card, lens};
use crate::settings::Settings;
use crate::stored::{cache_settings, find, policy};
use crate::surroundings::{Start, memory_place, sources_at, today, with_embeddings};
use crate::telemetry::Export;

/// The model that is asked where nobody names one.
const MODEL: &str = "claude-opus-5-5";

/// What an answer may have where the first limit was not enough (§2.10).
const OUTPUT_TOKENS_MOST: u64 = 64_000;

/// What the agent shall do.
pub(crate) enum Task {
    /// One prompt.
    Prompt(String),
    /// The lines of standard input, as long as it is open: [`super::listen`] reads them.
    Lines,
}

/// Lets the agent work on a task and tells everything that happens to `show`; the exit code follows from the last
/// [`pal_agent::Ended`] that it was told.
pub(crate) fn work(
    task: &Task,
    print: &Print,
    settings: &Settings,
    show: &mut dyn Show,
) -> Result<(), Failure> {
    let options = options(print, settings)?;
    let show = RefCell::new(show);
    let failed = RefCell::new(None);
    let handle: RefCell<Option<Handle>> = RefCell::new(None);
    let export = RefCell::new(Export::begin(settings));
    // The first failure to show something ends the program: nobody pays for what nobody sees.
    let shown = |event: &Event| {
        if failed.borrow().is_none()
            && let Err(failure) = show.borrow_mut().event(event)
        {
            *failed.borrow_mut() = Some(failure);
            if let Some(handle) = &*handle.borrow() {
                handle.interrupt();
            }
        }
    };
    let sink = Box::new(|event: Event| {
        export.borrow_mut().event(&event);
        // Before the event, since nothing comes behind the last one.
        if let Some(trouble) = export.borrow_mut().trouble() {
            shown(&Event::Notice(trouble));
        }
        shown(&event);
    });
    let worked = work_with(task, options, sink, (&show, settings.remembering.waits), &failed, &handle);
    export.into_inner().finish();
    worked
}

/// Lets an agent work that is made of these options.
fn work_with<'a>(
    task: &Task,
    options: Options,
    sink: Box<dyn FnMut(Event) + 'a>,
    (show, waits): (&RefCell<&mut dyn Show>, Duration),
    failed: &RefCell<Option<Failure>>,
    handle: &RefCell<Option<Handle>>,
) -> Result<(), Failure> {
    let (home, project) = (options.home.clone(), options.sources.search.directory.clone());
    let mut agent = Agent::start(options, sink).map_err(|error| Failure::new(error.to_string()))?;
    let post = Post::open(&home, &agent, &project);
    *handle.borrow_mut() = Some(agent.handle());
    let (sender, next) = mpsc::channel();
    let lines = Arc::new(Lines::default());
    interrupt_on_signals(
        agent.handle(),
        (agent.shell(), agent.servers()),
        Arc::clone(&lines),
        sender.clone(),
    );
    match task {
        Task::Prompt(prompt) => {
            let prompt = Next::Prompt { number: 1, content: Content::of_text(prompt) };
            // The receiver is right here.
            let _ = sender.send(prompt).and_then(|()| sender.send(Next::End));
        }
        Task::Lines => read_lines(agent.handle(), &lines, sender),
    }
    let mut outcome = Ok(());
    for next in next {
        match next {
            Next::End => break,
            Next::Bad { number, why } => {
                if let Err(failure) = show.borrow_mut().bad_line(number, &why) {
                    failed.borrow_mut().get_or_insert(failure);
                }
            }
            Next::Prompt { number, content } => outcome = worked(&mut agent, &lines, number, content),
        }
        if outcome.is_err() || failed.borrow().is_some() {
            break;
        }
    }
    drop(post);
    if outcome.is_ok() && failed.borrow().is_none() {
        outcome = agent.wait_for_memories(waits);
    }
    agent.finish("other");
    match failed.borrow_mut().take() {
        Some(failure) => Err(failure),
        None => outcome.map_err(|error| Failure::new(error.to_string())),
    }
}

/// Works on a prompt, and on whatever was said too late to go along with it.
fn worked(agent: &mut Agent<'_>, lines: &Lines, number: u64, content: Content) -> Result<(), AgentError> {
    lines.is_working.store(true, Ordering::SeqCst);
    let is_given_up = number <= lines.given_up.load(Ordering::SeqCst);
    let ended = if is_given_up { agent.prompt_given_up(content) } else { agent.prompt(content) };
    let outcome = ended.and_then(|_| heed(agent));
    lines.is_working.store(false, Ordering::SeqCst);
    outcome
}

/// Works on whatever was said too late, and on what agents say that are still at work: nobody else waits for them.
fn heed(agent: &mut Agent<'_>) -> Result<(), AgentError> {
    loop {
        agent.heed()?;
        // Who has just ended has said so before.
        if !agent.awaits() {
            return agent.heed().map(|_| ());
        }
        if !agent.rest()? {
            return Ok(());
        }
    }
}

/// What comes next.
pub(super) enum Next {
    /// A prompt, and how many were read before it.
    Prompt { number: u64, content: Content },
    /// A line that makes no sense.
    Bad { number: u64, why: String },
    /// Nothing more.
    End,
}

/// How far the lines of standard input are.
#[derive(Default)]
pub(super) struct Lines {
    /// Whether a prompt is being worked on.
    is_working: AtomicBool,
    /// The last prompt that was read before somebody wanted everything to stop.
    given_up: AtomicU64,
}

/// Reads lines: prompts wait for their turn; what steers or interrupts goes straight to the agent.
fn read_lines(handle: Handle, lines: &Arc<Lines>, sender: mpsc::Sender<Next>) {
    let shared = Arc::clone(lines);
    std::thread::spawn(move || {
        let mut read = 0;
        for line in listen(std::io::BufReader::new(std::io::stdin())) {
            let next = match line.given {
                Ok(Given::Interrupt) => {
                    // Prompts that were read and wait are meant, too.
                    shared.given_up.store(read, Ordering::SeqCst);
                    handle.interrupt();
                    continue;
                }
                Ok(Given::Prompt { content, is_steering }) => {
                    let content = Content::parse(&Text::from(content));
                    if is_steering && shared.is_working.load(Ordering::SeqCst) {
                        handle.steer(content);
                        continue;
                    }
                    read += 1;
                    Next::Prompt { number: read, content }
                }
                Err(why) => Next::Bad { number: line.number, why },
            };
            if sender.send(next).is_err() {
                return;
            }
        }
        let _ = sender.send(Next::End);
    });
}

impl Lines {
    /// Gives up whatever waits, and whatever comes.
    pub(super) fn give_up(&self) {
        self.given_up.store(u64::MAX, Ordering::SeqCst);
    }
}

/// What an agent is made of, as it was typed and set. Nobody is asked anything.
pub(crate) fn options(print: &Print, settings: &Settings) -> Result<Options, Failure> {
    let directory = std::env::current_dir().and_then(|directory| directory.canonicalize());
    let directory = directory.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    options_at(&directory, print, settings)
}

/// The same for an agent that works in another directory; `settings` are those of that directory.
pub(crate) fn options_at(directory: &Path, print: &Print, settings: &Settings) -> Result<Options, Failure> {
    let home = settings.home.clone().ok_or_else(|| {
        Failure::with_hint(
            "there is no place for sessions: neither PAL_HOME nor HOME is set",
            "set one of them",
        )
    })?;
    let beginning = beginning(print, settings)?;
    let card = model(print, settings, &beginning)?;
    let lens = lens(&card, settings.estimator, Scope::Current);
    let mode = mode(settings)?;
    let added: Vec<PathBuf> = print.added.iter().chain(&settings.permissions.directories).cloned().collect();
    let start = Start {
        directory,
        added: &added,
        is_bare: print.bare,
        with_instructions: true,
        with_git: true,
        estimator: lens.estimator,
    };
    let rules = rules(print, settings)?;
    let mut sources = sources_at(&start, settings);
    sources.search.rules = rules.clone();
    let hooks = match print.bare {
        true => Vec::new(),
        false => settings.hooks.iter().map(|hooks| hooks.value.clone()).collect(),
    };
    Ok(Options {
        memory: memory_place(&home, directory, print.bare, settings)
            .map(|place| with_embeddings(place, settings)),
        home,
        beginning,
        limits: Limits::new(&card, &settings.window_for(&card.model)),
        policy: policy(settings),
        cache: cache_settings(settings, &card),
        line: Arc::new(line(print, settings, &card)?),
        sources,
        prompts: Prompts {
            custom: print.system_prompt.clone(),
            appended: print.append_system_prompt.clone(),
            ..Prompts::default()
        },
        attribution: format!("Palimpsest {}", env!("CARGO_PKG_VERSION")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        today,
        run: run_settings(settings, &card),
        outputs: settings.output_limits,
        rules,
        asking: None,
        hooks,
        without_tools: without_tools(settings),
        deferred_tools: settings.deferred_tools.iter().map(SmolStr::from).collect(),
        fence: fence(settings),
        is_mode_chosen: print.permission_mode.is_some(),
        mode,
        serving: super::servers::serving(print, settings)?,
        secret_variables: settings.secret_variables.clone(),
        allows_private_addresses: settings.web_private_addresses,
        switches: settings.switches.clone(),
        clock: Clock { ahead: settings.clock_ahead },
        folder: None,
        depth: 0,
        agent: None,
        shared_servers: None,
        above: None,
        begins_planning: false,
        memory_tools: Vec::new(),
        memory_bytes_max: settings.memory_bytes_max,
        notes: notes(settings),
        background_tokens_daily: settings.background_tokens_daily,
        learning: settings
            .remembering
            .draws
            .then_some(Learning { tokens_least: settings.remembering.tokens_least }),
        dreaming: Some(dream_gates(settings)),
        teammates: Some(super::teammate::starting()),
        models: models(settings, &card, print.provider.unwrap_or_else(|| usual_provider(&card))),
        progress_every: (!settings.switches.is_off(Switch::Progress)).then_some(settings.progress_every),
        lens,
    })
}

/// Who keeps notes of the session, and when.
fn notes(settings: &Settings) -> Option<(NotesBy, NotesCadence)> {
    let set = &settings.notes;
    let by = set.by.filter(|_| !settings.switches.is_off(Switch::Notes))?;
    let cadence = NotesCadence {
        first: set.first_tokens,
        growth: set.growth_tokens,
        share: set.growth_share,
        calls: set.calls,
        ..NotesCadence::default()
    };
    Some((by, cadence))
}

/// When memories are put in order.
pub(crate) fn dream_gates(settings: &Settings) -> GateSettings {
    let is_off = |switch| settings.switches.is_off(switch);
    GateSettings {
        is_on: settings.remembering.dreams && !is_off(Switch::Dreaming) && !is_off(Switch::Memory),
        every: settings.remembering.dream_every,
        sessions: settings.remembering.dream_sessions,
    }
}

/// How the session begins.
fn beginning(print: &Print, settings: &Settings) -> Result<Beginning, Failure> {
    let id: Option<EntryId> = print.session_id.as_ref().and_then(|id| id.parse().ok());
    let log = match &print.resume {
        Some(name) => find(name, settings)?,
        None if print.is_continued => newest(settings)?,
        None => return Ok(Beginning::New(id)),
    };
    Ok(if print.fork_session { Beginning::Forked(log, id) } else { Beginning::Resumed(log) })
}

/// The model that is asked: the one that was typed, the session's own, the one that is set.
fn model(print: &Print, settings: &Settings, beginning: &Beginning) -> Result<Card, Failure> {
    if let Some(model) = &print.model {
        return Ok(card(settings, model));
    }
    let known = match beginning {
        Beginning::Resumed(log) | Beginning::Forked(log, _) | Beginning::Branched { of: log, .. } => {
            model_of(log)?
        }
        Beginning::New(_) => None,
    };
    let model = known.or_else(|| settings.model.as_ref().map(ToString::to_string));
    Ok(card(settings, model.as_deref().unwrap_or(MODEL)))
}

/// The model that a session asked last. Only the end of the log is read, however long it is.
fn model_of(log: &Path) -> Result<Option<String>, Failure> {
    let failure = |error: pal_store::OpenError| Failure::new(error.to_string());
    let model = |entry: &Entry| match &entry.body {
        Body::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
            Some(request.model.to_string())
        }
        Body::Boundary(boundary) => boundary.snapshot.model.as_ref().map(ToString::to_string),
        _ => match entry.decision() {
            Some(DecisionKind::Model { model }) => Some(model.to_string()),
            _ => None,
        },
    };
    let _reading = ReadingLog::new(log);
    Reader::open(log).and_then(|reader| reader.find_newest(model)).map_err(failure)
}

fn line(print: &Print, settings: &Settings, card: &Card) -> Result<Line, Failure> {
    let name = print.provider.unwrap_or_else(|| usual_provider(card));
    let runtime = runtime()?;
    let endpoint = match name {
        // The simulator's task lives as long as the runtime.
        ProviderName::Sim => runtime.block_on(simulator(settings, usual_dialect(card)))?.0,
        _ => endpoint(name, settings)?,
    };
    let mut policy = provider_policy(&endpoint, settings);
    policy.retries.retries = settings.retries_max;
    Line::new(runtime, endpoint, policy).map_err(Failure::new)
}

pub(super) fn run_settings(settings: &Settings, card: &Card) -> RunSettings {
    let spending = &settings.spending;
    let output_tokens = spending.output_tokens_max.min(card.max_output);
    RunSettings {
        output_tokens,
        output_tokens_most: OUTPUT_TOKENS_MOST.max(output_tokens).min(card.max_output),
        turns_max: spending.turns_max,
        tokens_max: spending.tokens_max,
        cost_max: spending.cost_usd_max,
        progress: ProgressLimits {
            stalled_turns_max: spending.stalled_turns_max,
            fruitless_turns_max: spending.fruitless_turns_max,
        },
    }
}

fn mode(settings: &Settings) -> Result<Mode, Failure> {
    let name = settings.permissions.mode.as_str();
    let name = if name.is_empty() { Mode::Default.name() } else { name };
    name.parse().map_err(|error: pal_permissions::UnknownMode| {
        Failure::with_hint(error.to_string(), "correct permissions.mode in the settings")
    })
}

/// The rules of all places and of the command line.
fn rules(print: &Print, settings: &Settings) -> Result<Rules, Failure> {
    let typed = |rules: Vec<String>| -> Result<Vec<Placed>, Failure> {
        rules.iter().map(|rule| placed(rule, "command line")).collect()
    };
    let mut rules = settings_rules(settings)?;
    rules.allow.extend(typed(print.allowed())?);
    rules.deny.extend(typed(print.disallowed())?);
    Ok(rules)
}

/// The rules that settings give.
pub(crate) fn settings_rules(settings: &Settings) -> Result<Rules, Failure> {
    let permissions = &settings.permissions;
    let set = |rules: &[Resolved<String>]| -> Result<Vec<Placed>, Failure> {
        rules.iter().map(|rule| placed(&rule.value, &rule.origin.to_string())).collect()
    };
    let mut rules = Rules::default();
    rules.allow = set(&permissions.allow)?;
    rules.ask = set(&permissions.ask)?;
    rules.deny = set(&permissions.deny)?;
    Ok(rules)
}

fn placed(rule: &str, origin: &str) -> Result<Placed, Failure> {
    let parsed: Result<Rule, _> = rule.parse();
    let parsed =
        parsed.map_err(|error| Failure::wrong_use(format!("{origin}: {error}"), "correct the rule"))?;
    Ok(Placed { rule: parsed, origin: origin.to_owned() })
}

/// Tools that are switched off.
fn without_tools(settings: &Settings) -> Vec<SmolStr> {
    let by_switch: [(Switch, &[&'static str]); 4] = [
        (Switch::Agents, &["Agent", "SendMessage"]),
        (Switch::WebFetch, &["WebFetch"]),
        (Switch::Background, &["BashOutput", "KillBash"]),
        (Switch::Skills, &["Skill"]),
    ];
    let off = by_switch.into_iter().filter(|(switch, _)| settings.switches.is_off(*switch));
    off.flat_map(|(_, names)| names.iter().map(|name| SmolStr::new_static(name))).collect()
}

/// The sandbox of commands, unless a person switched it off.
fn fence(settings: &Settings) -> Option<Fencing> {
    let sandbox = &settings.sandbox;
    let is_wanted = sandbox.when != SandboxWhen::Off;
    is_wanted.then(|| {
        // Without our own program there is no sandbox, and then no command in one either.
        let (probe, program) = match std::env::current_exe() {
            Ok(program) => (SandboxProbe::default(), program),
            Err(error) => {
                let why = format!("pal does not find itself: {error}");
                (Fence::None { why }.into(), PathBuf::new())
            }
        };
        let is_for_all = sandbox.when == SandboxWhen::On;
        Fencing { probe, is_for_all, network: sandbox.network, writable: sandbox.writable.clone(), program }
    })
}
