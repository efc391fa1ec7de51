//! One agent that was sent, from its first request to its last word.

use std::path::Path;
use std::sync::Arc;

use pal_memory::{Place, Scope};
use pal_messages::quote_headers;
use pal_model::{Content, Source, ToolUseId, defuse};
use pal_process::Cancel;
use pal_prompt::{AgentPrompt, Prompts};
use pal_tools::AgentInfo;
use smol_str::SmolStr;

use super::FORKED;
use super::team::{DEPTH_MOST, Joined, Team};
use super::tool::AGENT;
use super::worktree::Worktree;
use crate::agent::Agent;
use crate::event::{End, Ended, Event, in_short};
use crate::handle::Signal;
use crate::options::{Above, Beginning, Options};

/// The tools without which nobody can remember anything: who has a memory has them, if only for that.
const MEMORY_TOOLS: [&str; 3] = ["Edit", "Read", "Write"];

/// What is said where no more can be sent.
pub(super) const TOO_MANY: &str = "Too many agents are at work already. Wait until one has ended.";

/// What an agent is sent for.
pub(crate) struct Errand {
    /// What it is called, which nobody else is.
    pub(crate) name: String,
    /// What it shall do.
    pub(crate) prompt: String,
    /// Its definition; none if it has no prompt and tools of its own.
    pub(crate) definition: Option<AgentInfo>,
    /// The call that sends it, if it is to be a fork of the conversation.
    pub(crate) forks: Option<ToolUseId>,
    /// Whether it works in a worktree of its own.
    pub(crate) is_isolated: bool,
}

/// What came of it.
pub(crate) struct Reported {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// As long as this is there, it counts as at work.
    pub(crate) joined: Option<Joined>,
}

impl Reported {
    pub(super) fn failed(text: String) -> Reported {
        Reported { text, is_error: true, joined: None }
    }
}

impl Errand {
    /// Works until it is done, on the thread that calls it; `progress` hears what it does.
    pub(crate) fn run(self, team: &Arc<Team>, cancel: &Cancel, progress: &dyn Fn(&str)) -> Reported {
        let directory = &team.template.sources.search.directory;
        let worktree = match self.is_isolated.then(|| Worktree::add(directory, &self.name)) {
            None => None,
            Some(Ok(worktree)) => Some(worktree),
            Some(Err(why)) => return Reported::failed(why),
        };
        let options = self.options(team, worktree.as_ref().map(Worktree::path));
        let told = |event: Event| self.hear(team, event, progress);
        let mut agent = match Agent::start(options, Box::new(told)) {
            Ok(agent) => agent,
            Err(error) => {
                return Reported::failed(format!("The agent could not be started: {error}"));
            }
        };
        let handle = agent.handle();
        let Some(joined) = team.joins(&self.name, self.kind(), handle.clone()) else {
            let left = worktree.map(Worktree::end).unwrap_or_default();
            return Reported::failed(format!("{TOO_MANY}{left}"));
        };
        let _watch = cancel.watch(move || handle.interrupt());
        // The words of a model, which quote whatever it read: they never speak for the system.
        let ended = agent.prompt(Content::of_text(&defuse(&self.directive())));
        agent.finish("other");
        let mut reported = match ended {
            Ok(ended) => reported(&self.name, &ended, &team.folder),
            Err(error) => Reported::failed(format!("The agent `{}` broke off: {error}", self.name)),
        };
        reported.joined = Some(joined);
        if let Some(worktree) = worktree {
            reported.text.push_str(&worktree.end());
        }
        reported
    }

    /// What it is told. A fork is told that it is one, so that it does not go on with what the conversation was about.
    fn directive(&self) -> String {
        match &self.forks {
            None => self.prompt.clone(),
            Some(_) => format!(
                "{FORKED}\nThe agent itself goes on elsewhere. You know everything that was said, and you have one task, which is \
                 yours alone; do nothing besides it, and ask nobody. Your last message is all that anybody reads of you: make it \
                 a report with what was asked for.\n\nThe task: {}",
                self.prompt
            ),
        }
    }

    fn options(&self, team: &Arc<Team>, directory: Option<&Path>) -> Options {
        let mut options = team.template.clone();
        options.above = Some(Above(Arc::clone(team)));
        options.teammates = None;
        // The mode says what holds by now.
        options.begins_planning = false;
        (options.mode, options.rules) = team.may();
        options.is_mode_chosen = true;
        options.depth = team.depth + 1;
        options.folder = Some(team.folder.join(&self.name));
        options.agent = Some((self.name.clone(), self.kind().to_owned()));
        options.beginning = match &self.forks {
            Some(call) => Beginning::Branched { of: team.log.clone(), call: call.clone() },
            None => Beginning::New(None),
        };
        if let Some(directory) = directory {
            options.sources.search.directory = directory.to_owned();
        }
        // What a fork is made of must be what the conversation is made of, or it would be another one.
        if self.forks.is_some() {
            return options;
        }
        let project = &team.template.sources.search.directory;
        shaped(&mut options, self.definition.as_ref(), project);
        options
    }

    pub(super) fn kind(&self) -> &str {
        match (&self.definition, &self.forks) {
            (Some(definition), _) => &definition.name,
            (None, Some(_)) => "fork",
            (None, None) => "general",
        }
    }

    /// What it does is shown to whoever watches the call, and what it takes goes into the books of whoever sent it.
    fn hear(&self, team: &Team, event: Event, progress: &dyn Fn(&str)) {
        match event {
            Event::ToolBegan { name, input, .. } => {
                let what = in_short(&name, &input);
                team.does(&self.name, &what);
                progress(&format!("{what}\n"));
            }
            Event::Notice(line) | Event::Warning(line) => progress(&format!("{line}\n")),
            Event::Exchanged(mut exchanged) => {
                team.took(&self.name, exchanged.usage.as_ref(), exchanged.cost);
                exchanged.source = Source::named(&format!("subagent:{}", self.name));
                team.sender.send(Signal::Exchanged(exchanged));
            }
            _ => {}
        }
    }
}

/// Gives an agent that is no fork the prompt, the tools, the model and the memory of its definition. `project` is where
/// whoever sent it works: a worktree of its own goes, and what is remembered stays.
pub(super) fn shaped(options: &mut Options, definition: Option<&AgentInfo>, project: &Path) {
    options.prompts = Prompts::default();
    options.memory = options
        .memory
        .take()
        .and_then(|place| Some(memory_of(definition?, options, project)?.with_embeddings(place.embeddings)));
    if let Some(definition) = definition {
        let text = definition.prompt.clone();
        options.prompts.agent = Some(AgentPrompt { text, is_proactive: false });
        let names =
            |known: &String, name: &str| known.split('(').next().is_some_and(|known| known.trim() == name);
        let is_without = |name: &str| definition.without_tools.iter().any(|known| names(known, name));
        let has = |name: &str| {
            let tools = definition.tools.as_ref();
            tools.is_none_or(|tools| tools.iter().any(|known| names(known, name))) && !is_without(name)
        };
        let tools = pal_prompt::built_in_tools().into_iter().map(|tool| tool.name);
        let (for_memory, without): (Vec<SmolStr>, Vec<SmolStr>) =
            tools.filter(|name| !has(name)).partition(|name| {
                options.memory.is_some() && MEMORY_TOOLS.contains(&name.as_str()) && !is_without(name)
            });
        options.memory_tools = for_memory;
        options.without_tools.extend(without);
        // A model that cannot be asked over the same line is left to those who can.
        if let Some(known) = definition.model.as_deref().and_then(|model| (options.models)(Some(model))) {
            (options.lens, options.limits) = (known.lens, known.limits);
            (options.cache, options.run) = (known.cache, known.run);
        }
    }
    if options.depth >= DEPTH_MOST {
        options.without_tools.push(SmolStr::new_static(AGENT));
    }
}

/// Where an agent keeps what it remembers; none if it remembers nothing.
fn memory_of(definition: &AgentInfo, options: &Options, project: &Path) -> Option<Place> {
    let scope = Scope::named(definition.memory.as_deref()?)?;
    let (user_home, root) = (options.sources.search.home.as_deref(), pal_sources::project_root(project));
    // A name that is no name of a directory has none.
    Place::of_agent(&definition.name, scope, &options.home, user_home, &root).ok()
}

pub(super) fn reported(name: &str, ended: &Ended, folder: &Path) -> Reported {
    // Its words stand between lines of ours.
    let said = quote_headers(ended.text.trim());
    let (text, is_error) = match &ended.end {
        End::Done if said.is_empty() => (String::from("The agent ended without a word."), true),
        End::Done => (said.into_owned(), false),
        End::Interrupted => (format!("[Interrupted. So far it said: {said}]"), true),
        End::Limit(why) | End::Failed(why) | End::Refused(why) => {
            (format!("[It did not end by itself: {why}. So far it said: {said}]"), true)
        }
    };
    let took = format!(
        "\n\n[Agent `{name}`: {} answers, {} tokens, {:.0} s. Its session: {}]",
        ended.turns,
        ended.spent.tokens(),
        ended.took.as_secs_f64(),
        folder.join(name).display()
    );
    Reported { text: text + &took, is_error, joined: None }
}
