//! One subagent, from its first request to its report.

use std::path::Path;
use std::sync::Arc;

use pal_events::{AgentEvent, PromptEnd, PromptResult, summarize_call};
use pal_mailbox::quote_headers;
use pal_memory::{MemoryLocation, MemoryScope};
use pal_model::{Content, RequestSource, ToolUseId, escape_tags};
use pal_process::CancelToken;
use pal_prompt::{AgentPrompt, PromptOverrides};
use pal_tools::AgentDefinition;
use smol_str::SmolStr;

use super::AGENT;
use super::FORKED;
use super::subagent_registry::{DEPTH_MAX, SubagentSlot, Subagents};
use super::worktree::Worktree;
use crate::agent_handle::AgentSignal;
use crate::options::{AgentOptions, SessionOrigin};
use crate::parent_agent::ParentAgent;

/// Tools that a subagent with a memory always has, if only for its memory.
const MEMORY_TOOLS: [&str; 3] = ["Edit", "Read", "Write"];

/// Task of a subagent.
pub(crate) struct SubagentTask {
    /// Unique name.
    pub(crate) name: String,
    /// Prompt.
    pub(crate) prompt: String,
    /// Definition; none for the general kind.
    pub(crate) definition: Option<AgentDefinition>,
    /// Call that starts it, if it is a fork of the conversation.
    pub(crate) forks: Option<ToolUseId>,
    /// Whether it works in its own git worktree.
    pub(crate) is_isolated: bool,
}

/// Report of a subagent.
pub(crate) struct SubagentReport {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl SubagentReport {
    pub(super) fn failed(text: String) -> SubagentReport {
        SubagentReport { text, is_error: true }
    }
}

impl SubagentTask {
    /// Runs the subagent on the calling thread; `progress` receives lines about its work.
    pub(super) fn run(
        self,
        team: &Arc<Subagents>,
        slot: &SubagentSlot,
        cancel: &CancelToken,
        progress: &dyn Fn(&str),
    ) -> SubagentReport {
        let directory = &team.template.sources.search.directory;
        let worktree = match self.is_isolated.then(|| Worktree::add(directory, &self.name)) {
            None => None,
            Some(Ok(worktree)) => Some(worktree),
            Some(Err(why)) => return SubagentReport::failed(why),
        };
        let options = self.options(team, worktree.as_ref().map(Worktree::path));
        let told = |event: AgentEvent| self.hear(team, event, progress);
        let mut agent = match (team.start)(options, Box::new(told)) {
            Ok(agent) => agent,
            Err(error) => {
                return SubagentReport::failed(format!("The agent could not be started: {error}"));
            }
        };
        let handle = agent.handle();
        slot.started(&handle);
        let _watch = cancel.watch(move || handle.interrupt());
        // The prompt was written by a model and may quote anything, so it must not speak for the system.
        let ended = agent.prompt(Content::from_text(&escape_tags(&self.directive())));
        agent.finish("other");
        let mut reported = match ended {
            Ok(ended) => reported(&self.name, &ended, &team.folder),
            Err(error) => SubagentReport::failed(format!("The agent `{}` broke off: {error}", self.name)),
        };
        if let Some(worktree) = worktree {
            reported.text.push_str(&worktree.end());
        }
        reported
    }

    /// Prompt of the subagent. A fork is told that it is one, so that it does not continue the conversation.
    fn directive(&self) -> String {
        match &self.forks {
            None => self.prompt.clone(),
            Some(_) => format!(
                "{FORKED}\nThe agent itself goes on elsewhere. You know everything that was said, and you have one task, which is \
                 yours alone; do nothing besides it, and ask no questions. Only your last message is read: make it \
                 a report with what was asked for.\n\nThe task: {}",
                self.prompt
            ),
        }
    }

    fn options(&self, team: &Arc<Subagents>, directory: Option<&Path>) -> AgentOptions {
        let mut options = team.template.clone();
        options.subagent.parent = Some(Arc::clone(team) as Arc<dyn ParentAgent>);
        options.subagent.teammate_command = None;
        // `mode` below already includes planning.
        options.permissions.begins_planning = false;
        (options.permissions.mode, options.permissions.rules) = team.may();
        options.permissions.is_mode_chosen = true;
        options.subagent.depth = team.template.subagent.depth + 1;
        options.subagent.folder = Some(team.folder.join(&self.name));
        options.subagent.identity = Some((self.name.clone(), self.kind().to_owned()));
        options.origin = match &self.forks {
            Some(call) => SessionOrigin::Branched { of: team.log.clone(), call: call.clone() },
            None => SessionOrigin::New(None),
        };
        let limits = [options.model.run.cost_max, options.subagent.cost_max];
        options.model.run.cost_max = limits.into_iter().flatten().reduce(f64::min);
        if let Some(directory) = directory {
            options.sources.search.directory = directory.to_owned();
        }
        // A fork shares the conversation's prefix, so its options must not differ.
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

    /// Forwards progress to the call, and usage to the parent.
    fn hear(&self, team: &Subagents, event: AgentEvent, progress: &dyn Fn(&str)) {
        match event {
            AgentEvent::ToolStarted { name, input, .. } => {
                let what = summarize_call(&name, &input);
                team.does(&self.name, &what);
                progress(&format!("{what}\n"));
            }
            AgentEvent::Notice(line) | AgentEvent::Warning(line) => progress(&format!("{line}\n")),
            AgentEvent::ExchangeEnded(mut exchanged) => {
                team.took(&self.name, exchanged.usage.as_ref(), exchanged.cost);
                exchanged.source = RequestSource::from_name(&format!("subagent:{}", self.name));
                team.sender.send(AgentSignal::Exchanged(exchanged));
            }
            _ => {}
        }
    }
}

/// Applies prompt, tools, model and memory of a definition. `project` is the parent's directory: memory belongs
/// to it even if the subagent works in a worktree.
pub(crate) fn shaped(options: &mut AgentOptions, definition: Option<&AgentDefinition>, project: &Path) {
    options.prompt.prompts = PromptOverrides::default();
    // The parent reads the report, not the user.
    options.prompt.output_style = None;
    options.memory.place =
        options.memory.place.take().and_then(|place| {
            Some(memory_of(definition?, options, project)?.with_embeddings(place.embeddings))
        });
    if let Some(definition) = definition {
        let text = definition.prompt.clone();
        options.prompt.prompts.agent = Some(AgentPrompt { text, is_proactive: false });
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
                options.memory.place.is_some() && MEMORY_TOOLS.contains(&name.as_str()) && !is_without(name)
            });
        options.memory.tools = for_memory;
        options.tools.without.extend(without);
        // A model that this connection does not reach is ignored.
        if let Some(known) = definition.model.as_deref().and_then(|model| (options.model.lookup)(Some(model)))
        {
            (options.model.lens, options.model.limits) = (known.lens, known.limits);
            (options.model.cache, options.model.run) = (known.cache, known.run);
        }
    }
    if options.subagent.depth >= DEPTH_MAX {
        options.tools.without.push(SmolStr::new_static(AGENT));
    }
}

/// Memory directory of a definition; none if it has no memory.
fn memory_of(definition: &AgentDefinition, options: &AgentOptions, project: &Path) -> Option<MemoryLocation> {
    let scope = MemoryScope::from_name(definition.memory.as_deref()?)?;
    let (user_home, root) = (options.sources.search.home.as_deref(), pal_project::find_project_root(project));
    // A name that is no valid directory name has no memory.
    MemoryLocation::of_agent(&definition.name, scope, &options.home, user_home, &root).ok()
}

pub(crate) fn reported(name: &str, ended: &PromptResult, folder: &Path) -> SubagentReport {
    // The report is placed between lines of this program.
    let said = quote_headers(ended.text.trim());
    let (text, is_error) = match &ended.end {
        PromptEnd::Done if said.is_empty() => (String::from("The agent ended without a word."), true),
        PromptEnd::Done => (said.into_owned(), false),
        PromptEnd::Interrupted => (format!("[Interrupted. So far it said: {said}]"), true),
        PromptEnd::Limit(why) | PromptEnd::Failed(why) | PromptEnd::Refused(why) => {
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
    SubagentReport { text: text + &took, is_error }
}
