//! Registry of subagents: running, ended, and how to reach them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_model::{Content, Usage};
use pal_permissions::{PermissionMode, RuleSet};
use pal_prompt::Capability;
use pal_tools::AgentDefinition;
use smol_str::SmolStr;

use super::running_agent::StartAgent;
use super::team_mailbox::{LEAD, TeamMailbox};
use super::teammate_process::{ERRORS, TeammateProcess};
use super::{AGENT, AGENTS_FOLDER};
use crate::agent_handle::{AgentHandle, AgentSignal};
use crate::options::AgentOptions;
use crate::parent_agent::{MessagePurpose, ParentAgent};

/// Result when the limit of running subagents is reached. Text for the model.
pub(super) const TOO_MANY: &str = "Too many agents are at work already. Wait until one has ended.";

/// Maximum number of running subagents.
pub(crate) const AT_ONCE_MAX: usize = 8;

/// Maximum nesting depth of subagents.
pub(crate) const DEPTH_MAX: usize = 3;

/// Grace period of subagents when the session ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Number of recent calls kept for progress lines.
const DONE_MAX: usize = 12;

/// Subagents of a session.
pub(crate) struct Subagents {
    /// Options that all of them share.
    pub(crate) template: AgentOptions,
    /// Log of the parent session.
    pub(crate) log: PathBuf,
    /// Directory of their sessions.
    pub(crate) folder: PathBuf,
    /// Agent definitions, as they are on disk now.
    known: Mutex<Vec<AgentDefinition>>,
    /// Handle of the parent.
    pub(crate) sender: AgentHandle,
    /// Whether the parent is a fork itself.
    pub(crate) is_fork: bool,
    /// Starts an agent.
    pub(super) start: StartAgent,
    /// Mailbox of the team, once there is one.
    mail: Mutex<Option<Arc<TeamMailbox>>>,
    members: Mutex<Vec<SubagentEntry>>,
    /// Notified when one has ended.
    ended: Condvar,
    /// Current permission mode and rules of the parent.
    may: Mutex<(PermissionMode, RuleSet)>,
    counts: SubagentCounts,
    is_ending: AtomicBool,
    /// Stops the progress thread when dropped.
    pub(super) watching: Mutex<Option<Sender<()>>>,
}

/// Counts of subagents.
#[derive(Default)]
struct SubagentCounts {
    /// Names given so far.
    named: AtomicUsize,
}

/// A running or ended subagent.
struct SubagentEntry {
    name: String,
    kind: String,
    since: Instant,
    place: SubagentLocation,
    tokens: u64,
    cost: f64,
    /// Recent calls, and the number of all.
    done: Vec<String>,
    steps: u64,
    /// Progress line.
    doing: String,
}

/// Location of a subagent.
enum SubagentLocation {
    /// Thread of this process.
    Here(AgentHandle),
    /// Its own process.
    Away(Arc<TeammateProcess>),
    /// A thread of this process, or a teammate's process, that is starting.
    Starting { is_teammate: bool },
    /// Ended.
    Ended,
}

/// State of a running subagent, for display.
#[derive(Clone, PartialEq, Debug)]
pub struct SubagentStatus {
    /// Name.
    pub name: String,
    /// Kind: `general`, `fork`, or a definition's name.
    pub kind: String,
    /// Whether it is a teammate process.
    pub is_teammate: bool,
    /// Whether it is idle.
    pub rests: bool,
    /// Time since its start.
    pub lasted: Duration,
    /// Tokens used, including its own subagents.
    pub tokens: u64,
    /// Price in US dollars.
    pub cost: f64,
    /// Current activity.
    pub doing: String,
}

/// Access to the subagents of a session from other threads.
#[derive(Clone)]
pub struct SubagentsHandle(pub(crate) Arc<Subagents>);

impl SubagentsHandle {
    /// Agent definitions.
    pub fn known(&self) -> Vec<AgentDefinition> {
        self.0.known()
    }

    /// Returns whether the session can start subagents.
    pub fn can_send(&self) -> bool {
        !self.0.template.tools.without.iter().any(|name| name == AGENT)
    }

    /// Running subagents in order of their start.
    pub fn at_work(&self) -> Vec<SubagentStatus> {
        self.0.at_work()
    }
}

/// Definitions of the options, then those of files whose names are not taken.
fn with_given(given: &[AgentDefinition], files: Vec<AgentDefinition>) -> Vec<AgentDefinition> {
    let is_free = |file: &AgentDefinition| given.iter().all(|given| given.name != file.name);
    given.iter().cloned().chain(files.into_iter().filter(is_free)).collect()
}

impl Subagents {
    pub(crate) fn new(
        template: AgentOptions,
        log: PathBuf,
        known: Vec<AgentDefinition>,
        sender: AgentHandle,
        (is_fork, start): (bool, StartAgent),
    ) -> Subagents {
        let folder = log.parent().map(|folder| folder.join(AGENTS_FOLDER)).unwrap_or_default();
        let may = Mutex::new((template.permissions.mode, template.permissions.rules.clone()));
        Subagents {
            log,
            folder,
            known: Mutex::new(with_given(&template.subagent.definitions, known)),
            sender,
            is_fork,
            start,
            mail: Mutex::default(),
            members: Mutex::default(),
            ended: Condvar::new(),
            may,
            counts: SubagentCounts::default(),
            is_ending: AtomicBool::new(false),
            template,
            watching: Mutex::default(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<SubagentEntry>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Definitions as announced to the model.
    pub(crate) fn offered(&self) -> Vec<Capability> {
        let offered = |agent: &AgentDefinition| Capability {
            name: SmolStr::new(&agent.name),
            about: agent.description.clone(),
        };
        self.known().iter().map(offered).collect()
    }

    /// Agent definitions.
    pub(crate) fn known(&self) -> Vec<AgentDefinition> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the agent definitions.
    pub(crate) fn set_known(&self, known: Vec<AgentDefinition>) {
        let known = with_given(&self.template.subagent.definitions, known);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Returns a free name: `wanted`, with a number if taken.
    pub(crate) fn name(&self, wanted: &str) -> String {
        let number = self.counts.named.fetch_add(1, Ordering::Relaxed) + 1;
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

    /// Registers a subagent of this process before it starts, so that a session that lists its subagents or waits for
    /// them does not miss one whose agent has not started yet.
    pub(super) fn register(self: &Arc<Subagents>, name: &str, kind: &str) -> Result<SubagentSlot, String> {
        match self.add(name, kind, SubagentLocation::Starting { is_teammate: false }) {
            true => Ok(SubagentSlot { team: Arc::clone(self), name: name.to_owned() }),
            false => Err(String::from(TOO_MANY)),
        }
    }

    /// Reserves a name for a teammate about to start.
    pub(super) fn reserve(&self, name: &str, kind: &str) -> Result<(), String> {
        let is_other = self.folder.join(name).exists() && !self.folder.join(name).join(ERRORS).exists();
        match () {
            () if self.has(name) => {
                Err(format!("The agent `{name}` is there already: SendMessage speaks to it."))
            }
            () if is_other => {
                Err(format!("An agent of the name `{name}` was sent before: take another name."))
            }
            () if !self.add(name, kind, SubagentLocation::Starting { is_teammate: true }) => {
                Err(String::from(TOO_MANY))
            }
            () => Ok(()),
        }
    }

    /// Registers the started teammate.
    pub(super) fn started(&self, name: &str, teammate: Arc<TeammateProcess>) {
        self.set_location(name, SubagentLocation::Away(teammate));
    }

    fn set_location(&self, name: &str, place: SubagentLocation) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.place = place;
        }
    }

    fn add(&self, name: &str, kind: &str, place: SubagentLocation) -> bool {
        let mut members = self.members();
        let is_taken = members.iter().any(|member| member.name == name && member.is_there());
        if is_taken || members.iter().filter(|member| member.is_there()).count() >= AT_ONCE_MAX {
            return false;
        }
        members.retain(|member| member.name != name);
        members.push(SubagentEntry {
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

    /// Marks a subagent as ended.
    pub(super) fn left(&self, name: &str) {
        self.set_location(name, SubagentLocation::Ended);
        self.ended.notify_all();
        // A subagent that ends well sends no further message: its waiters stop waiting.
        self.sender.send(AgentSignal::AgentLeft);
    }

    /// Returns whether a subagent of this name is running.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members().iter().any(|member| member.name == name && member.is_there())
    }

    /// Returns whether a subagent is working and will report.
    pub(crate) fn is_at_work(&self) -> bool {
        self.members().iter().any(|member| match &member.place {
            SubagentLocation::Here(_) | SubagentLocation::Starting { .. } => true,
            SubagentLocation::Away(teammate) => teammate.is_at_work(),
            SubagentLocation::Ended => false,
        })
    }

    /// Running subagents.
    pub(crate) fn at_work(&self) -> Vec<SubagentStatus> {
        let at_work = |member: &SubagentEntry| {
            let (is_teammate, rests) = match &member.place {
                SubagentLocation::Here(_) => (false, false),
                SubagentLocation::Away(teammate) => (true, !teammate.is_at_work()),
                SubagentLocation::Starting { is_teammate } => (*is_teammate, false),
                SubagentLocation::Ended => return None,
            };
            let doing = match member.doing.as_str() {
                "" => member.done.last().cloned().unwrap_or_default(),
                doing => doing.to_owned(),
            };
            Some(SubagentStatus {
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

    /// Adds usage of a subagent.
    pub(crate) fn took(&self, name: &str, usage: Option<&Usage>, cost: Option<f64>) {
        if let Some(member) = self.members().iter_mut().find(|member| member.name == name) {
            member.tokens += usage.map_or(0, |usage| usage.prompt_tokens() + usage.output_tokens);
            member.cost += cost.unwrap_or(0.0);
        }
    }

    /// Adds a call of a subagent.
    pub(super) fn does(&self, name: &str, what: &str) {
        let mut members = self.members();
        let Some(member) = members.iter_mut().find(|member| member.name == name) else { return };
        if member.done.len() >= DONE_MAX {
            member.done.remove(0);
        }
        member.done.push(what.trim_end().to_owned());
        member.steps += 1;
    }

    /// Recent calls and their number, per running subagent.
    pub(super) fn steps(&self) -> Vec<(String, u64, Vec<String>)> {
        let members = self.members();
        let there = members.iter().filter(|member| member.is_there());
        there.map(|member| (member.name.clone(), member.steps, member.done.clone())).collect()
    }

    /// Sets the progress line of a subagent.
    pub(super) fn set_doing(&self, name: &str, doing: &str) {
        let mut members = self.members();
        let Some(member) = members.iter_mut().find(|member| member.name == name) else { return };
        doing.clone_into(&mut member.doing);
        if let SubagentLocation::Away(teammate) = &member.place {
            teammate.say(&super::teammate_protocol::LeadMessage::Doing(doing.to_owned()));
        }
        drop(members);
        self.sender.send(AgentSignal::Doing { agent: name.to_owned(), doing: doing.to_owned() });
    }

    /// Sends a message to one agent or to all (`*`): own subagents, the parent, and the team. Returns the
    /// recipients.
    pub(super) fn speak(
        &self,
        to: &str,
        purpose: MessagePurpose,
        words: (&str, &str),
    ) -> Result<Vec<String>, String> {
        let me = self.template.subagent.identity.as_ref().map_or(LEAD, |(name, _)| name.as_str());
        let own = self.say(me, to, purpose, words);
        let Some(above) = &self.template.subagent.parent else { return own };
        let mut heard = match (own, to) {
            (Ok(heard), "*") => heard,
            (Ok(heard), _) => return Ok(heard),
            (Err(_), _) => Vec::new(),
        };
        // Shutdown and plan approval are between a lead and its teammates only.
        if purpose != MessagePurpose::Text {
            return Err(format!("`{to}` is none of yours: only a message can be sent to it."));
        }
        if matches!(to, LEAD | "*") {
            above.message(Content::from_text(&told(me, purpose, words.1)));
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

    /// Uses the mailbox of another process's team.
    pub(crate) fn join_team(&self, seat: Arc<TeamMailbox>) {
        *self.mail.lock().unwrap_or_else(PoisonError::into_inner) = Some(seat);
    }

    /// Sends a message to one running subagent or to all (`*`). Returns the recipients.
    fn say(
        &self,
        from: &str,
        to: &str,
        purpose: MessagePurpose,
        (summary, text): (&str, &str),
    ) -> Result<Vec<String>, String> {
        let is_meant = |name: &str| name != from && (to == "*" || to == name);
        let (mut heard, mut failed) = (Vec::new(), Vec::new());
        let mut away = Vec::new();
        for member in self.members().iter().filter(|member| is_meant(&member.name)) {
            match &member.place {
                SubagentLocation::Here(handle) => {
                    handle.message(Content::from_text(&told(from, purpose, text)));
                    heard.push(member.name.clone());
                }
                SubagentLocation::Away(teammate) => away.push((member.name.clone(), Arc::clone(teammate))),
                SubagentLocation::Starting { is_teammate: false } => {
                    let name = &member.name;
                    failed.push(format!("The agent `{name}` is still starting: send the message again."));
                }
                SubagentLocation::Starting { is_teammate: true } | SubagentLocation::Ended => {}
            }
        }
        let mail = self.mail();
        if let Some(mail) = &mail {
            let mut others: Vec<_> =
                mail.others().into_iter().filter(|name| is_meant(name.as_str())).collect();
            // A teammate that just started is not listed yet.
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
            // Recipients must not get it twice.
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
            [] => format!("There is no agent `{to}` at work, and no other either."),
            names => format!("There is no agent `{to}` at work. There are: {}.", names.join(", ")),
        }
    }

    /// Mailbox of the team, if there is one.
    pub(crate) fn mail(&self) -> Option<Arc<TeamMailbox>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the mailbox of the team that this session leads.
    pub(crate) fn lead(&self) -> Result<Arc<TeamMailbox>, String> {
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mail) = &*mail {
            return Ok(Arc::clone(mail));
        }
        let session = self.log.parent().unwrap_or(&self.log);
        let opened =
            TeamMailbox::open(session, LEAD, self.sender.clone(), self.template.clock, self.log.clone())?;
        Ok(Arc::clone(mail.insert(opened)))
    }

    /// Polls the mailbox now.
    pub(super) fn poll_mail(&self) {
        if let Some(mail) = self.mail() {
            mail.poll_now();
        }
    }

    /// Updates the permissions of the parent.
    pub(crate) fn set_may(&self, mode: PermissionMode, rules: &RuleSet) {
        *self.may.lock().unwrap_or_else(PoisonError::into_inner) = (mode, rules.clone());
    }

    /// Permissions of subagents that start now.
    pub(crate) fn may(&self) -> (PermissionMode, RuleSet) {
        self.may.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Stops all subagents and waits for them: they do not outlive the session.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        let members = self.members();
        let mut away = Vec::new();
        for member in members.iter() {
            match &member.place {
                SubagentLocation::Here(handle) => handle.interrupt(),
                SubagentLocation::Away(teammate) => {
                    teammate.close();
                    away.push(Arc::clone(teammate));
                }
                SubagentLocation::Starting { .. } | SubagentLocation::Ended => {}
            }
        }
        let is_at_work = |members: &mut Vec<SubagentEntry>| {
            members.iter().any(|member| matches!(member.place, SubagentLocation::Here(_)))
        };
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

impl SubagentEntry {
    fn is_there(&self) -> bool {
        !matches!(self.place, SubagentLocation::Ended)
    }
}

/// Normalizes a name for directories and mailboxes.
pub(super) fn spelled(wanted: &str) -> String {
    let letters = wanted.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let name: String = letters.take(40).collect();
    name.trim_matches('-').to_owned()
}

/// Text of a message for a subagent of this process.
fn told(from: &str, purpose: MessagePurpose, text: &str) -> String {
    let head = format!("[A message from `{from}`, an agent that works with you; not from the user.]");
    match purpose {
        MessagePurpose::ShutdownRequest => {
            format!(
                "{head}\nIt asks you to end: leave everything in good order, and say where you stand.\n{text}"
            )
        }
        _ => format!("{head}\n{text}"),
    }
}

/// Slot of a starting or running subagent; dropping it marks the end.
pub(super) struct SubagentSlot {
    team: Arc<Subagents>,
    name: String,
}

impl SubagentSlot {
    /// Registers the agent that has started. A session that is ending stops it at once.
    pub(super) fn started(&self, handle: &AgentHandle) {
        self.team.set_location(&self.name, SubagentLocation::Here(handle.clone()));
        if self.team.is_ending() {
            handle.interrupt();
        }
    }
}

impl Drop for SubagentSlot {
    fn drop(&mut self) {
        self.team.left(&self.name);
    }
}

impl Subagents {
    /// Public name of the session that the user talks with, or of the teammate.
    pub(super) fn public_name(&self) -> Result<pal_mailbox::AgentName, String> {
        match &self.template.subagent.parent {
            Some(above) => above.public_name(),
            None => {
                let agent = self.template.subagent.identity.as_ref().map(|(name, _)| name.as_str());
                crate::session_presence::public_name(
                    &self.log,
                    agent,
                    &self.template.sources.search.directory,
                )
            }
        }
    }
}

impl ParentAgent for Subagents {
    fn message(&self, content: Content) {
        self.sender.message(content);
    }

    fn say(
        &self,
        from: &str,
        to: &str,
        purpose: MessagePurpose,
        words: (&str, &str),
    ) -> Result<Vec<String>, String> {
        Subagents::say(self, from, to, purpose, words)
    }

    fn public_name(&self) -> Result<pal_mailbox::AgentName, String> {
        Subagents::public_name(self)
    }
}
