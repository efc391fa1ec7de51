//! The teammate's side of a team: this program, started by its lead (§8.3).

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pal_events::{AgentEvent, PermissionAnswer, PermissionAsker, PermissionQuestion, summarize_call};
use pal_mailbox::{MessageKind, quote_headers};
use pal_model::{Content, escape_tags};

use crate::agent::Agent;
use crate::agent_handle::AgentHandle;
use crate::error::AgentError;
use crate::options::{AgentOptions, SessionOrigin};
use crate::permission_checker::EXIT_PLAN;
use crate::session_presence::SessionPresence;
use crate::subagents::{AGENTS_FOLDER, TeamMailbox};
use crate::subagents::{LeadMessage, TeammateAssignment, TeammateMessage, line};
use crate::subagents::{reported, shaped};

/// Interval for checking whether an answer is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Pipe to the lead.
struct LeadPipe {
    output: Mutex<Box<dyn Write + Send>>,
    /// Receivers of answers.
    waiting: Mutex<Vec<(u64, Sender<PermissionAnswer>)>>,
    questions: AtomicU64,
    /// Whether the lead is gone or ended this teammate.
    is_closed: AtomicBool,
    mail: OnceLock<Arc<TeamMailbox>>,
    handle: OnceLock<AgentHandle>,
    can_ask: bool,
}

/// Works as a teammate until the lead is gone or asks it to end. `options` are those of an agent of this
/// project; the assignment adds the rest. `input` carries lines of the lead, `output` lines for it.
pub fn work_as_teammate(
    mut options: AgentOptions,
    assignment: &TeammateAssignment,
    input: impl BufRead + Send + 'static,
    output: Box<dyn Write + Send>,
) -> Result<(), AgentError> {
    let pipe = Arc::new(LeadPipe {
        output: Mutex::new(output),
        waiting: Mutex::default(),
        questions: AtomicU64::new(0),
        is_closed: AtomicBool::new(false),
        mail: OnceLock::new(),
        handle: OnceLock::new(),
        can_ask: assignment.can_ask,
    });
    let agents = assignment.lead.join(AGENTS_FOLDER);
    let folder = agents.join(&assignment.name);
    let kind =
        assignment.definition.as_ref().map_or("general", |definition| definition.name.as_str()).to_owned();
    let log = pal_store::log_path(&folder);
    options.origin =
        if log.exists() { SessionOrigin::Resumed(log.clone()) } else { SessionOrigin::New(None) };
    options.subagent.folder = Some(folder);
    options.subagent.identity = Some((assignment.name.clone(), kind));
    options.subagent.depth = assignment.depth;
    options.permissions.is_mode_chosen = true;
    options.permissions.begins_planning = assignment.plans_first;
    options.permissions.asker = Some(asking(Arc::clone(&pipe)));
    options.subagent.teammate_command = None;
    for rule in assignment.allowed.iter().filter_map(|rule| rule.parse().ok()) {
        options.permissions.rules.allow_for_session(rule);
    }
    let project = options.sources.search.directory.clone();
    shaped(&mut options, assignment.definition.as_ref(), &project);
    let (home, directory) = (options.home.clone(), options.sources.search.directory.clone());
    let clock = options.clock;
    let mut agent = Agent::start(options, Box::new(sink(Arc::clone(&pipe))))?;
    let handle = agent.handle();
    let mail = TeamMailbox::open(&assignment.lead, &assignment.name, handle.clone(), clock, log);
    let mail = mail.map_err(AgentError::Other)?;
    agent.runtime.subagents.join_team(Arc::clone(&mail));
    let _ = (pipe.mail.set(Arc::clone(&mail)), pipe.handle.set(handle));
    let post = SessionPresence::open(&home, &agent, &directory);
    listen(Arc::clone(&pipe), input, post)?;
    let mut next = Some(assignment.prompt.clone()).filter(|_| !pipe.is_closed());
    loop {
        let ended = match next.take() {
            // The prompt was written by a model and may quote anything, so it must not speak for the system.
            Some(prompt) => Some(agent.prompt(Content::from_text(&escape_tags(&prompt)))?),
            None => None,
        };
        let ended = agent.run_queued_messages()?.or(ended);
        if let Some(ended) = ended {
            let said = reported(&assignment.name, &ended, &agents);
            mail.notify_lead("rests", &format!("I have nothing left to do. My last words:\n{}", said.text));
        }
        if pipe.is_closed() || mail.is_asked_to_end() {
            break;
        }
        // A teammate with running subagents is not idle.
        if !agent.has_running_subagents() {
            pipe.say(&TeammateMessage::Rests { heard: mail.take_received() });
        }
        // An interrupt while idle either ends it or has no effect.
        agent.wait_for_message()?;
        pipe.say(&TeammateMessage::Works);
    }
    mail.approve_shutdown();
    mail.end();
    agent.finish("other");
    Ok(())
}

impl LeadPipe {
    /// Returns false if the lead is gone.
    fn say(&self, up: &TeammateMessage) -> bool {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line(up).as_bytes()).and_then(|()| output.flush()).is_ok()
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Asks the user through the lead.
    fn ask(&self, asked: &PermissionQuestion) -> PermissionAnswer {
        if !self.can_ask {
            return PermissionAnswer::Unavailable;
        }
        let id = self.questions.fetch_add(1, Ordering::SeqCst);
        let (sender, answer) = channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((id, sender));
        if !self.say(&TeammateMessage::Asks { id, asked: asked.clone() }) {
            return PermissionAnswer::Unavailable;
        }
        self.wait(&answer, || false).unwrap_or(PermissionAnswer::Unavailable)
    }

    /// Asks the lead to approve a plan.
    fn approve(&self, asked: &PermissionQuestion) -> PermissionAnswer {
        let Some(mail) = self.mail.get() else { return PermissionAnswer::Unavailable };
        let input: serde_json::Value = serde_json::from_str(&asked.input).unwrap_or_default();
        let plan = input.get("plan").and_then(serde_json::Value::as_str).unwrap_or(&asked.input);
        let (request, answer) = match mail.ask_for_approval(plan) {
            Ok(asked) => asked,
            Err(why) => {
                return PermissionAnswer::Refused(format!("the plan could not be put to `lead`: {why}"));
            }
        };
        // The lead must not wait for a teammate that waits for it.
        self.say(&TeammateMessage::Rests { heard: mail.take_received() });
        let answer = self.wait(&answer, || mail.is_asked_to_end() || mail.has_lead_message());
        self.say(&TeammateMessage::Works);
        mail.forget(request);
        match answer.map(|message| message.kind) {
            Some(MessageKind::PlanApproval { accepted: true, feedback }) => {
                if let (Some(feedback), Some(handle)) = (feedback, self.handle.get()) {
                    handle.message(Content::from_text(&format!(
                        "[`lead` says of the plan, which it approves:]\n{}",
                        quote_headers(&feedback)
                    )));
                }
                PermissionAnswer::Once
            }
            Some(MessageKind::PlanApproval { feedback, .. }) => {
                let words = feedback.as_deref().unwrap_or("nothing more");
                PermissionAnswer::Refused(format!("`lead` did not approve the plan. It says: {words}"))
            }
            _ => PermissionAnswer::Refused(String::from(
                "`lead` has not answered whether the plan is approved; read what it says",
            )),
        }
    }

    /// Waits for an answer while it is wanted.
    fn wait<T>(&self, answer: &Receiver<T>, is_off: impl Fn() -> bool) -> Option<T> {
        loop {
            match answer.recv_timeout(POLL_INTERVAL) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    let is_cancelled = self.handle.get().is_some_and(|handle| handle.cancel().is_cancelled());
                    if is_cancelled || self.is_closed() || is_off() {
                        return None;
                    }
                }
            }
        }
    }
}

fn asking(pipe: Arc<LeadPipe>) -> PermissionAsker {
    Arc::new(move |asked| match asked.tool.as_str() {
        EXIT_PLAN => pipe.approve(asked),
        _ => pipe.ask(asked),
    })
}

/// Forwards events to the lead.
fn sink(pipe: Arc<LeadPipe>) -> impl FnMut(AgentEvent) {
    move |event| {
        let up = match &event {
            AgentEvent::ToolStarted { name, input, .. } => {
                Some(TeammateMessage::Does(summarize_call(name, input)))
            }
            AgentEvent::ExchangeEnded(exchanged) => TeammateMessage::spent(exchanged),
            _ => None,
        };
        if let Some(up) = up {
            // The reader thread notices that the lead is gone.
            pipe.say(&up);
        }
    }
}

/// Reads the lead's lines; their end ends the teammate.
fn listen(
    pipe: Arc<LeadPipe>,
    input: impl BufRead + Send + 'static,
    mut post: Option<SessionPresence>,
) -> Result<(), AgentError> {
    let read = move || {
        for said in input.lines().map_while(Result::ok) {
            match serde_json::from_str(&said) {
                Ok(LeadMessage::Answers { id, answer }) => {
                    let mut waiting = pipe.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(at) = waiting.iter().position(|(known, _)| *known == id) {
                        let _ = waiting.swap_remove(at).1.send(answer);
                    }
                }
                Ok(LeadMessage::Doing(doing)) => {
                    if let Some(post) = &mut post {
                        post.update(&doing);
                    }
                }
                Err(_) => {}
            }
        }
        pipe.is_closed.store(true, Ordering::SeqCst);
        if let Some(handle) = pipe.handle.get() {
            handle.close();
        }
    };
    let spawned = std::thread::Builder::new().name("pal-lead".into()).spawn(read);
    spawned.map(|_| ()).map_err(|error| AgentError::Other(error.to_string()))
}
