//! A teammate from inside: our own program, sent by another process of it to work beside it (§8.3).

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pal_messages::{Kind, quote_headers};
use pal_model::{Content, defuse};

use super::child::{reported, shaped};
use super::mail::Mail;
use super::wire::{Assignment, Down, Up, line};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::event::{Event, in_short};
use crate::gate::{Answer, Asked, Asking, EXIT_PLAN};
use crate::handle::Handle;
use crate::options::{Beginning, Options};
use crate::post::Post;

/// How often whoever waits for an answer looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The lines to the lead.
struct Pipe {
    output: Mutex<Box<dyn Write + Send>>,
    /// Who waits for an answer.
    waiting: Mutex<Vec<(u64, Sender<Answer>)>>,
    questions: AtomicU64,
    /// Whether the lead is gone, or wants this one to end.
    is_closed: AtomicBool,
    mail: OnceLock<Arc<Mail>>,
    handle: OnceLock<Handle>,
    can_ask: bool,
}

/// Works as a teammate until its lead is gone or asks it to end. `options` is what an agent of this project is made of; the
/// assignment says the rest. Lines of the lead come from `input`; lines for it go to `output`.
pub fn work_as_teammate(
    mut options: Options,
    assignment: &Assignment,
    input: impl BufRead + Send + 'static,
    output: Box<dyn Write + Send>,
) -> Result<(), AgentError> {
    let pipe = Arc::new(Pipe {
        output: Mutex::new(output),
        waiting: Mutex::default(),
        questions: AtomicU64::new(0),
        is_closed: AtomicBool::new(false),
        mail: OnceLock::new(),
        handle: OnceLock::new(),
        can_ask: assignment.can_ask,
    });
    let agents = assignment.lead.join("agents");
    let folder = agents.join(&assignment.name);
    let kind =
        assignment.definition.as_ref().map_or("general", |definition| definition.name.as_str()).to_owned();
    let log = pal_store::log_path(&folder);
    options.beginning = if log.exists() { Beginning::Resumed(log.clone()) } else { Beginning::New(None) };
    options.folder = Some(folder);
    options.agent = Some((assignment.name.clone(), kind));
    options.depth = assignment.depth;
    options.is_mode_chosen = true;
    options.begins_planning = assignment.plans_first;
    options.asking = Some(asking(Arc::clone(&pipe)));
    options.teammates = None;
    for rule in assignment.allowed.iter().filter_map(|rule| rule.parse().ok()) {
        options.rules.allow_for_session(rule);
    }
    let project = options.sources.search.directory.clone();
    shaped(&mut options, assignment.definition.as_ref(), &project);
    let (home, directory) = (options.home.clone(), options.sources.search.directory.clone());
    let clock = options.clock;
    let mut agent = Agent::start(options, Box::new(sink(Arc::clone(&pipe))))?;
    let handle = agent.handle();
    let mail = Mail::open(&assignment.lead, &assignment.name, handle.clone(), clock, log);
    let mail = mail.map_err(AgentError::Other)?;
    agent.desk.team.take_seat(Arc::clone(&mail));
    let _ = (pipe.mail.set(Arc::clone(&mail)), pipe.handle.set(handle));
    let post = Post::open(&home, &agent, &directory);
    listen(Arc::clone(&pipe), input, post)?;
    let mut next = Some(assignment.prompt.clone()).filter(|_| !pipe.is_closed());
    loop {
        let ended = match next.take() {
            // The words of the lead's model, which quote whatever it read: they never speak for the system.
            Some(prompt) => Some(agent.prompt(Content::of_text(&defuse(&prompt)))?),
            None => None,
        };
        let ended = agent.heed()?.or(ended);
        if let Some(ended) = ended {
            let said = reported(&assignment.name, &ended, &agents);
            mail.tell_lead("rests", &format!("I have nothing left to do. My last words:\n{}", said.text));
        }
        if pipe.is_closed() || mail.is_asked_to_end() {
            break;
        }
        // Who waits for others of its own is not at rest.
        if !agent.awaits() {
            pipe.say(&Up::Rests { heard: mail.take_heard() });
        }
        // Interrupted without anything to heed: either it is to end, or there was nothing to interrupt.
        agent.rest()?;
        pipe.say(&Up::Works);
    }
    mail.agree_to_end();
    mail.end();
    agent.finish("other");
    Ok(())
}

impl Pipe {
    /// False if nobody is there any more.
    fn say(&self, up: &Up) -> bool {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line(up).as_bytes()).and_then(|()| output.flush()).is_ok()
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Asks the person at the lead.
    fn ask(&self, asked: &Asked) -> Answer {
        if !self.can_ask {
            return Answer::Nobody;
        }
        let id = self.questions.fetch_add(1, Ordering::SeqCst);
        let (sender, answer) = channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((id, sender));
        if !self.say(&Up::Asks { id, asked: asked.clone() }) {
            return Answer::Nobody;
        }
        self.wait(&answer, || false).unwrap_or(Answer::Nobody)
    }

    /// Has the lead approve a plan.
    fn approve(&self, asked: &Asked) -> Answer {
        let Some(mail) = self.mail.get() else { return Answer::Nobody };
        let input: serde_json::Value = serde_json::from_str(&asked.input).unwrap_or_default();
        let plan = input.get("plan").and_then(serde_json::Value::as_str).unwrap_or(&asked.input);
        let (request, answer) = match mail.ask_for_approval(plan) {
            Ok(asked) => asked,
            Err(why) => return Answer::Refused(format!("the plan could not be put to `lead`: {why}")),
        };
        // Nobody is to wait for who waits itself.
        self.say(&Up::Rests { heard: mail.take_heard() });
        let answer = self.wait(&answer, || mail.is_asked_to_end() || mail.has_words_of_lead());
        self.say(&Up::Works);
        mail.forget(request);
        match answer.map(|message| message.kind) {
            Some(Kind::PlanApproval { accepted: true, feedback }) => {
                if let (Some(feedback), Some(handle)) = (feedback, self.handle.get()) {
                    handle.message(Content::of_text(&format!(
                        "[`lead` says of the plan, which it approves:]\n{}",
                        quote_headers(&feedback)
                    )));
                }
                Answer::Once
            }
            Some(Kind::PlanApproval { feedback, .. }) => {
                let words = feedback.as_deref().unwrap_or("nothing more");
                Answer::Refused(format!("`lead` did not approve the plan. It says: {words}"))
            }
            _ => Answer::Refused(String::from(
                "`lead` has not answered whether the plan is approved; read what it says",
            )),
        }
    }

    /// Waits for an answer as long as it is wanted.
    fn wait<T>(&self, answer: &Receiver<T>, is_off: impl Fn() -> bool) -> Option<T> {
        loop {
            match answer.recv_timeout(LOOK_EVERY) {
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

fn asking(pipe: Arc<Pipe>) -> Asking {
    Arc::new(move |asked| match asked.tool.as_str() {
        EXIT_PLAN => pipe.approve(asked),
        _ => pipe.ask(asked),
    })
}

/// What the lead is told of what happens.
fn sink(pipe: Arc<Pipe>) -> impl FnMut(Event) {
    move |event| {
        let up = match &event {
            Event::ToolBegan { name, input, .. } => Some(Up::Does(in_short(name, input))),
            Event::Exchanged(exchanged) => Up::spent(exchanged),
            _ => None,
        };
        if let Some(up) = up {
            // A lead that is gone is noticed by whoever reads its lines.
            pipe.say(&up);
        }
    }
}

/// Reads the lines of the lead; when they end, so does this one.
fn listen(
    pipe: Arc<Pipe>,
    input: impl BufRead + Send + 'static,
    mut post: Option<Post>,
) -> Result<(), AgentError> {
    let read = move || {
        for said in input.lines().map_while(Result::ok) {
            match serde_json::from_str(&said) {
                Ok(Down::Answers { id, answer }) => {
                    let mut waiting = pipe.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(at) = waiting.iter().position(|(known, _)| *known == id) {
                        let _ = waiting.swap_remove(at).1.send(answer);
                    }
                }
                Ok(Down::Doing(doing)) => {
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
