//! The agents that were sent: who works, who has ended, who can be spoken to.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_model::{Content, Usage};
use pal_permissions::{Mode, Rules};
use pal_prompt::Offered;
use pal_tools::AgentInfo;
use smol_str::SmolStr;

use super::child::TOO_MANY;
use super::mail::{LEAD, Mail, Purpose};
use super::teammate::{ERRORS, Teammate};
use super::tool::AGENT;
use crate::handle::{Handle, Signal};
use crate::options::{Above, Options};

/// How many may work at the same time.
pub(crate) const AT_ONCE_MOST: usize = 8;

/// How deep agents may send agents.
pub(crate) const DEPTH_MOST: usize = 3;

/// How long those that are stopped have to end what they do.
const END_TIME: Duration = Duration::from_secs(5);

/// How many of the last things that an agent did are kept for whoever watches.
const DONE_MOST: usize = 12;

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
    /// How the session speaks to other processes of its team, once there is one.
    mail: Mutex<Option<Arc<Mail>>>,
    members: Mutex<Vec<Member>>,
    /// Told when one has ended.
    ended: Condvar,
    /// What the session may do by now, and so may they.
    may: Mutex<(Mode, Rules)>,
    sent: AtomicUsize,
    is_ending: AtomicBool,
    /// Who watches them; ends when this is dropped.
    pub(super) watching: Mutex<Option<Sender<()>>>,
}

/// One that works or has worked.
struct Member {
    name: String,
    kind: String,
    since: Instant,
    place: Place,
    tokens: u64,
    cost: f64,
    /// What it did last, and how much it has done.
    done: Vec<String>,
    steps: u64,
    /// What it does, in the words of whoever watches.
    doing: String,
}

/// Where it works.
enum Place {
    /// On a thread of this process.
    Here(Handle),
    /// In a process of its own.
    Away(Arc<Teammate>),
    /// In one that is being started.
    Starting,
    /// Nowhere any more.
    Ended,
}

/// An agent at work, for whoever looks.
#[derive(Clone, PartialEq, Debug)]
pub struct AtWork {
    /// What it is called.
    pub name: String,
    /// What it is: `general`, `fork`, or a definition's name.
    pub kind: String,
    /// Whether it is a teammate, with a process of its own.
    pub is_teammate: bool,
    /// Whether it has nothing to do right now.
    pub rests: bool,
    /// For how long it has been there.
    pub lasted: Duration,
    /// Tokens that it took, those of agents that it sent included.
    pub tokens: u64,
    /// What it cost, in US dollars.
    pub cost: f64,
    /// What it does, in a few words.
    pub doing: String,
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

    /// Those that are there, in the order in which they were sent.
    pub fn at_work(&self) -> Vec<AtWork> {
        self.0.at_work()
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
            mail: Mutex::default(),
            members: Mutex::default(),
            ended: Condvar::new(),
            may,
            sent: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
            watching: Mutex::default(),
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
        let name = spelled(wanted);
        let is_taken = |name: &str| {
            name == LEAD
                || self.folder.join(name).exists()
                || self.members().iter().any(|member| member.name == name)
        };
        match name.as_str() {
            "" => format!("agent-{number}"),
            name if is_taken(name) => {
                let free = (number..).map(|number| format!("{name}-{number}")).find(|name| !is_taken(name));
                free.unwrap_or_default()
            }
            name => name.to_owned(),
        }
    }

    /// An agent begins to work in this process; none if too many do.
    pub(crate) fn joins(self: &Arc<Team>, name: &str, kind: &str, handle: Handle) -> Option<Joined> {
        self.add(name, kind, Place::Here(handle))
            .then(|| Joined { team: Arc::clone(self), name: name.to_owned() })
    }

    /// Keeps a name and a place for a teammate that is about to be started; why not, if that cannot be.
    pub(super) fn reserve(&self, name: &str, kind: &str) -> Result<(), String> {
        let is_other = self.folder.join(name).exists() && !self.folder.join(name).join(ERRORS).exists();
        match () {
            () if self.has(name) => {
                Err(format!("The agent `{name}` is there already: SendMessage speaks to it."))
            }
            () if is_other => {
                Err(format!("An agent of the name `{name}` was sent before: take another name."))
            }
            () if !self.add(name, kind, Place::Starting) => Err(String::from(TOO_MANY)),
            () => Ok(()),
        }
    }

    /// The teammate whose name was kept is there.
    pub(super) fn started(&self, name: &str, teammate: Arc<Teammate>) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.place = Place::Away(teammate);
        }
    }

    fn add(&self, name: &str, kind: &str, place: Place) -> bool {
        let mut members = self.members();
        let is_taken = members.iter().any(|member| member.name == name && member.is_there());
        if is_taken || members.iter().filter(|member| member.is_there()).count() >= AT_ONCE_MOST {
            return false;
        }
        members.retain(|member| member.name != name);
        members.push(Member {
            name: name.to_owned(),
            kind: kind.to_owned(),
            since: Instant::now(),
            place,
            tokens: 0,
            cost: 0.0,
            done: Vec::new(),
            steps: 0,
            doing: String::new(),
        });
        true
    }

    /// One has ended.
    pub(super) fn left(&self, name: &str) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.place = Place::Ended;
        }
        self.ended.notify_all();
        // A subagent that ends well sends no further message: its waiters stop waiting.
        self.sender.send(Signal::AgentLeft);
    }

    /// Whether there is one of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members().iter().any(|member| member.name == name && member.is_there())
    }

    /// Whether somebody is at work who will say something.
    pub(crate) fn is_at_work(&self) -> bool {
        self.members().iter().any(|member| match &member.place {
            Place::Here(_) | Place::Starting => true,
            Place::Away(teammate) => teammate.is_at_work(),
            Place::Ended => false,
        })
    }

    /// Those that are there.
    pub(crate) fn at_work(&self) -> Vec<AtWork> {
        let at_work = |member: &Member| {
            let (is_teammate, rests) = match &member.place {
                Place::Here(_) => (false, false),
                Place::Away(teammate) => (true, !teammate.is_at_work()),
                Place::Starting => (true, false),
                Place::Ended => return None,
            };
            let doing = match member.doing.as_str() {
                "" => member.done.last().cloned().unwrap_or_default(),
                doing => doing.to_owned(),
            };
            Some(AtWork {
                name: member.name.clone(),
                kind: member.kind.clone(),
                is_teammate,
                rests,
                lasted: member.since.elapsed(),
                tokens: member.tokens,
                cost: member.cost,
                doing,
            })
        };
        self.members().iter().filter_map(at_work).collect()
    }

    /// One of them was answered by the provider.
    pub(crate) fn took(&self, name: &str, usage: Option<&Usage>, cost: Option<f64>) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.tokens += usage.map_or(0, |usage| usage.prompt_tokens() + usage.output_tokens);
            member.cost += cost.unwrap_or(0.0);
        }
    }

    /// One does something.
    pub(super) fn does(&self, name: &str, what: &str) {
        let mut members = self.members();
        let Some(member) = members.iter_mut().find(|member| member.name == name) else { return };
        if member.done.len() >= DONE_MOST {
            member.done.remove(0);
        }
        member.done.push(what.trim_end().to_owned());
        member.steps += 1;
    }

    /// What each that is there did last, and how much it has done.
    pub(super) fn steps(&self) -> Vec<(String, u64, Vec<String>)> {
        let members = self.members();
        let there = members.iter().filter(|member| member.is_there());
        there.map(|member| (member.name.clone(), member.steps, member.done.clone())).collect()
    }

    /// What one does, in the words of whoever watches.
    pub(super) fn set_doing(&self, name: &str, doing: &str) {
        let mut members = self.members();
        let Some(member) = members.iter_mut().find(|member| member.name == name) else { return };
        doing.clone_into(&mut member.doing);
        if let Place::Away(teammate) = &member.place {
            teammate.say(&super::wire::Down::Doing(doing.to_owned()));
        }
        drop(members);
        self.sender.send(Signal::Doing { agent: name.to_owned(), doing: doing.to_owned() });
    }

    /// Says something to one that can be reached, or to all (`*`): those that were sent, whoever sent this one, and the others
    /// of the team. Who hears it.
    pub(super) fn speak(
        &self,
        to: &str,
        purpose: Purpose,
        words: (&str, &str),
    ) -> Result<Vec<String>, String> {
        let me = self.template.agent.as_ref().map_or(LEAD, |(name, _)| name.as_str());
        let own = self.say(me, to, purpose, words);
        let Some(Above(above)) = &self.template.above else { return own };
        let mut heard = match (own, to) {
            (Ok(heard), "*") => heard,
            (Ok(heard), _) => return Ok(heard),
            (Err(_), _) => Vec::new(),
        };
        // What ends agents and approves plans is between those who lead and those who are led, and an agent in between is neither.
        if purpose != Purpose::Text {
            return Err(format!("`{to}` is none of yours: only a message can be sent to it."));
        }
        if matches!(to, LEAD | "*") {
            above.sender.message(Content::of_text(&told(me, purpose, words.1)));
            heard.push(LEAD.to_owned());
        }
        if to == LEAD {
            return Ok(heard);
        }
        let text = format!("[Said by `{me}`, an agent that works for the one that sends this.]\n{}", words.1);
        match above.say(me, to, purpose, (words.0, &text)) {
            Ok(others) => heard.extend(others),
            Err(nobody) if heard.is_empty() => return Err(nobody),
            Err(_) => {}
        }
        Ok(heard)
    }

    /// Joins the team of another process.
    pub(super) fn take_seat(&self, seat: Arc<Mail>) {
        *self.mail.lock().unwrap_or_else(PoisonError::into_inner) = Some(seat);
    }

    /// Says something to one that is there, or to all (`*`). Who hears it.
    fn say(
        &self,
        from: &str,
        to: &str,
        purpose: Purpose,
        (summary, text): (&str, &str),
    ) -> Result<Vec<String>, String> {
        let is_meant = |name: &str| name != from && (to == "*" || to == name);
        let (mut heard, mut failed) = (Vec::new(), Vec::new());
        let mut away = Vec::new();
        for member in self.members().iter().filter(|member| is_meant(&member.name)) {
            match &member.place {
                Place::Here(handle) => {
                    handle.message(Content::of_text(&told(from, purpose, text)));
                    heard.push(member.name.clone());
                }
                Place::Away(teammate) => away.push((member.name.clone(), Arc::clone(teammate))),
                Place::Starting | Place::Ended => {}
            }
        }
        let mail = self.mail();
        if let Some(mail) = &mail {
            let mut others: Vec<_> =
                mail.others().into_iter().filter(|name| is_meant(name.as_str())).collect();
            // One that was just started is not seen by others yet.
            let known: Vec<_> = away.iter().filter_map(|(name, _)| name.parse().ok()).collect();
            others.extend(known);
            others.sort();
            others.dedup();
            for name in others {
                let teammate = away.iter().find(|(known, _)| known == name.as_str());
                match mail.say(&name, purpose, (summary, text), teammate.map(|(_, teammate)| &**teammate)) {
                    Ok(()) => heard.push(name.to_string()),
                    Err(why) => failed.push(why),
                }
            }
        }
        match (heard.is_empty(), failed.is_empty()) {
            (true, true) => Err(self.nobody(to)),
            (true, false) => Err(failed.join(" ")),
            // Who has heard it is not to hear it once more.
            (false, _) => {
                heard.extend(failed.iter().map(|why| format!("(not to all: {why})")));
                Ok(heard)
            }
        }
    }

    fn nobody(&self, to: &str) -> String {
        let mut names: Vec<String> = self.at_work().into_iter().map(|agent| agent.name).collect();
        let others = self.mail().map(|mail| mail.others()).unwrap_or_default();
        names.extend(others.iter().map(ToString::to_string));
        names.sort();
        names.dedup();
        match names.as_slice() {
            [] => format!("There is no agent `{to}` at work. Nobody is."),
            names => format!("There is no agent `{to}` at work. There are: {}.", names.join(", ")),
        }
    }

    /// The post between the processes of the team, if there is one.
    pub(crate) fn mail(&self) -> Option<Arc<Mail>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the post of the team that this session leads, if it is not open.
    pub(crate) fn lead(&self) -> Result<Arc<Mail>, String> {
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mail) = &*mail {
            return Ok(Arc::clone(mail));
        }
        let session = self.log.parent().unwrap_or(&self.log);
        let opened = Mail::open(session, LEAD, self.sender.clone(), self.template.clock, self.log.clone())?;
        Ok(Arc::clone(mail.insert(opened)))
    }

    /// Hands over at once what lies in the mailbox.
    pub(super) fn look_at_mail(&self) {
        if let Some(mail) = self.mail() {
            mail.look_now();
        }
    }

    /// What the session may do has changed: it plans, or somebody allowed more.
    pub(crate) fn set_may(&self, mode: Mode, rules: &Rules) {
        *self.may.lock().unwrap_or_else(PoisonError::into_inner) = (mode, rules.clone());
    }

    /// What agents that are sent now may do.
    pub(crate) fn may(&self) -> (Mode, Rules) {
        self.may.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Stops all of them and waits for their end: they do not outlive the session, nor does what they started.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let members = self.members();
        let mut away = Vec::new();
        for member in members.iter() {
            match &member.place {
                Place::Here(handle) => handle.interrupt(),
                Place::Away(teammate) => {
                    teammate.close();
                    away.push(Arc::clone(teammate));
                }
                Place::Starting | Place::Ended => {}
            }
        }
        let is_at_work =
            |members: &mut Vec<Member>| members.iter().any(|member| matches!(member.place, Place::Here(_)));
        let waited = self.ended.wait_timeout_while(members, END_TIME, is_at_work);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        for teammate in away {
            teammate.end();
        }
        if let Some(mail) = self.mail() {
            mail.end();
        }
    }
}

impl Member {
    fn is_there(&self) -> bool {
        !matches!(self.place, Place::Ended)
    }
}

/// A name as folders and mailboxes can have it.
pub(super) fn spelled(wanted: &str) -> String {
    let letters = wanted.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let name: String = letters.take(40).collect();
    name.trim_matches('-').to_owned()
}

/// What an agent of this process reads of a message.
fn told(from: &str, purpose: Purpose, text: &str) -> String {
    let head = format!("[A message from `{from}`, an agent that works with you; not from the user.]");
    match purpose {
        Purpose::ShutdownRequest => {
            format!(
                "{head}\nIt asks you to end: leave everything in good order, and say where you stand.\n{text}"
            )
        }
        _ => format!("{head}\n{text}"),
    }
}

/// An agent at work; it has ended when this is dropped.
pub(crate) struct Joined {
    team: Arc<Team>,
    name: String,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.team.left(&self.name);
    }
}
