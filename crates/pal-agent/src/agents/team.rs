//! The agents that were sent: who works, who has ended, and what all of them took.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_model::{Content, Usage};
use pal_permissions::{Mode, Rules};
use pal_prompt::Offered;
use pal_tools::AgentInfo;
use smol_str::SmolStr;

use super::tool::AGENT;
use crate::handle::Handle;
use crate::options::Options;

/// How many may work at the same time.
pub(crate) const AT_ONCE_MOST: usize = 8;

/// How deep agents may send agents.
pub(crate) const DEPTH_MOST: usize = 3;

/// How long those that are stopped have to end what they do.
const END_TIME: Duration = Duration::from_secs(5);

/// The agents that a session sent.
pub(crate) struct Team {
    /// What they are made of, besides what each is told.
    pub(crate) template: Options,
    /// The log of the session that sends them.
    pub(crate) log: PathBuf,
    /// Where their own sessions are.
    pub(crate) folder: PathBuf,
    /// The definitions that there are.
    pub(crate) known: Vec<AgentInfo>,
    /// Whoever sends them.
    pub(crate) sender: Handle,
    /// How many stand above them.
    pub(crate) depth: usize,
    /// Whether the session is a fork itself.
    pub(crate) is_fork: bool,
    members: Mutex<Vec<Member>>,
    /// Told when one has ended.
    ended: Condvar,
    /// What the session may do by now, and so may they.
    may: Mutex<(Mode, Rules)>,
    sent: AtomicUsize,
    notes: Mutex<Vec<String>>,
}

/// One that works or has worked.
struct Member {
    name: String,
    kind: String,
    since: Instant,
    tokens: u64,
    cost: f64,
    /// None once it has ended.
    handle: Option<Handle>,
}

/// An agent that works.
#[derive(Clone, PartialEq, Debug)]
pub struct AtWork {
    /// What it is called.
    pub name: String,
    /// What it was sent as.
    pub kind: String,
    /// For how long it has worked.
    pub lasted: Duration,
    /// Tokens that it took, those of agents that it sent included.
    pub tokens: u64,
    /// What it cost, in US dollars.
    pub cost: f64,
}

/// The agents of a session, for whoever shows them from another thread.
#[derive(Clone)]
pub struct Agents(pub(crate) Arc<Team>);

impl Agents {
    /// The definitions that there are.
    pub fn known(&self) -> &[AgentInfo] {
        &self.0.known
    }

    /// Whether the session can send any.
    pub fn can_send(&self) -> bool {
        !self.0.template.without_tools.iter().any(|name| name == AGENT)
    }

    /// Those that work, in the order in which they were sent.
    pub fn at_work(&self) -> Vec<AtWork> {
        let members = self.0.members();
        let at_work = members.iter().filter(|member| member.handle.is_some()).map(|member| AtWork {
            name: member.name.clone(),
            kind: member.kind.clone(),
            lasted: member.since.elapsed(),
            tokens: member.tokens,
            cost: member.cost,
        });
        at_work.collect()
    }
}

impl Team {
    pub(crate) fn new(
        template: Options,
        log: PathBuf,
        known: Vec<AgentInfo>,
        sender: Handle,
        is_fork: bool,
    ) -> Team {
        let folder = log.parent().map(|folder| folder.join("agents")).unwrap_or_default();
        let depth = template.depth;
        let may = Mutex::new((template.mode, template.rules.clone()));
        Team {
            template,
            log,
            folder,
            known,
            sender,
            depth,
            is_fork,
            members: Mutex::default(),
            ended: Condvar::new(),
            may,
            sent: AtomicUsize::new(0),
            notes: Mutex::default(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kinds that the model is told of.
    pub(crate) fn offered(&self) -> Vec<Offered> {
        let offered =
            |agent: &AgentInfo| Offered { name: SmolStr::new(&agent.name), about: agent.description.clone() };
        self.known.iter().map(offered).collect()
    }

    /// A name that nobody has yet: the one that is wanted, or one with a number behind it.
    pub(crate) fn name(&self, wanted: &str) -> String {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let letters = wanted.chars().map(|letter| match letter {
            'a'..='z' | '0'..='9' => letter,
            'A'..='Z' => letter.to_ascii_lowercase(),
            _ => '-',
        });
        let name: String = letters.take(40).collect();
        let name = name.trim_matches('-');
        let is_taken = |name: &str| {
            self.folder.join(name).exists() || self.members().iter().any(|member| member.name == name)
        };
        match name {
            "" => format!("agent-{number}"),
            name if is_taken(name) => {
                let free = (number..).map(|number| format!("{name}-{number}")).find(|name| !is_taken(name));
                free.unwrap_or_default()
            }
            name => name.to_owned(),
        }
    }

    /// An agent begins to work; none if too many do.
    pub(crate) fn joins(self: &Arc<Team>, name: &str, kind: &str, handle: Handle) -> Option<Joined> {
        let mut members = self.members();
        if members.iter().filter(|member| member.handle.is_some()).count() >= AT_ONCE_MOST {
            return None;
        }
        members.retain(|member| member.name != name);
        members.push(Member {
            name: name.to_owned(),
            kind: kind.to_owned(),
            since: Instant::now(),
            tokens: 0,
            cost: 0.0,
            handle: Some(handle),
        });
        Some(Joined { team: Arc::clone(self), name: name.to_owned() })
    }

    /// One of them was answered by the provider.
    pub(crate) fn took(&self, name: &str, usage: Option<&Usage>, cost: Option<f64>) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.tokens += usage.map_or(0, |usage| usage.prompt_tokens() + usage.output_tokens);
            member.cost += cost.unwrap_or(0.0);
        }
    }

    /// Says something to one that works.
    pub(crate) fn tell(&self, name: &str, text: &str) -> Result<usize, String> {
        let members = self.members();
        let working: Vec<(&str, &Handle)> = members
            .iter()
            .filter_map(|member| Some((member.name.as_str(), member.handle.as_ref()?)))
            .collect();
        let wanted: Vec<&Handle> = working
            .iter()
            .filter(|(known, _)| name == "*" || *known == name)
            .map(|(_, handle)| *handle)
            .collect();
        if wanted.is_empty() {
            let names: Vec<&str> = working.iter().map(|(name, _)| *name).collect();
            let others = match names.as_slice() {
                [] => String::from("Nobody works right now."),
                names => format!("At work are: {}.", names.join(", ")),
            };
            return Err(format!("There is no agent `{name}` at work. {others}"));
        }
        for handle in &wanted {
            handle.steer(Content::of_text(text));
        }
        Ok(wanted.len())
    }

    /// What the session may do has changed: it plans, or somebody allowed more.
    pub(crate) fn set_may(&self, mode: Mode, rules: &Rules) {
        *self.may.lock().unwrap_or_else(PoisonError::into_inner) = (mode, rules.clone());
    }

    /// What agents that are sent now may do.
    pub(crate) fn may(&self) -> (Mode, Rules) {
        self.may.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what the model is to be told with the next request.
    pub(crate) fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// What the model is to be told.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops all of them and waits for their end: they do not outlive the session, nor does what they started.
    pub(crate) fn end(&self) {
        let members = self.members();
        for handle in members.iter().filter_map(|member| member.handle.as_ref()) {
            handle.interrupt();
        }
        let is_at_work = |members: &mut Vec<Member>| members.iter().any(|member| member.handle.is_some());
        let waited = self.ended.wait_timeout_while(members, END_TIME, is_at_work);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// An agent at work; it has ended when this is dropped.
pub(crate) struct Joined {
    team: Arc<Team>,
    name: String,
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(member) = self.team.members().iter_mut().find(|member| member.name == self.name) {
            member.handle = None;
        }
        self.team.ended.notify_all();
    }
}
