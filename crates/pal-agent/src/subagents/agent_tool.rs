//! The tools that start subagents and send messages to them.

use std::sync::Arc;
use std::sync::mpsc::channel;

use pal_background::random_ids;
use pal_model::Content;
use pal_permissions::ToolAccess;
use pal_process::CancelToken;
use pal_tools::{AgentDefinition, ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use serde::Deserialize;

use super::AGENT;
use super::subagent_progress;
use super::subagent_registry::{Subagents, spelled};
use super::subagent_task::{SubagentReport, SubagentTask};
use super::team_mailbox::LEAD;
use super::teammate_listener::listen;
use super::teammate_process::TeammateProcess;
use super::teammate_protocol::TeammateAssignment;
use crate::parent_agent::MessagePurpose;
use crate::session_presence;

/// Name of the message tool.
const SEND_MESSAGE: &str = "SendMessage";

/// Kind of a fork of the conversation.
const FORK: &str = "fork";

/// Kind without a definition.
const GENERAL: &str = "general";

/// Prefix of the name of another session.
const SESSION: &str = "uds:";

/// Starts a subagent for part of the work.
pub(crate) struct AgentTool(pub(crate) Arc<Subagents>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentToolInput {
    description: String,
    prompt: String,
    #[serde(default)]
    subagent_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    run_in_background: Option<bool>,
    #[serde(default)]
    isolation: Option<String>,
    #[serde(default)]
    teammate: bool,
    #[serde(default)]
    plan_first: bool,
}

impl ToolHandler for AgentTool {
    fn name(&self) -> &'static str {
        AGENT
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        // Its calls are authorized one by one; several subagents run in parallel.
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: AgentToolInput = input.read()?;
        let kind = fields.subagent_type.unwrap_or_else(|| String::from("general"));
        Ok(vec![ToolAccess::Named(kind)])
    }

    fn run(&self, input: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
        self.send(input, running).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

impl AgentTool {
    fn send(&self, input: &ToolInput, running: &ToolContext<'_>) -> Result<ToolOutput, String> {
        let fields: AgentToolInput = input.read()?;
        self.0.begin_watching();
        if fields.teammate {
            return self.send_teammate(&fields);
        }
        if fields.plan_first {
            return Err(String::from("Only a teammate plans first and has its plan approved."));
        }
        let errand = self.errand(&fields, running)?;
        let is_background = fields
            .run_in_background
            .unwrap_or_else(|| errand.definition.as_ref().is_some_and(|definition| definition.is_background));
        if is_background {
            return self.send_away(errand);
        }
        let slot = self.0.register(&errand.name, errand.kind())?;
        let reported = errand.run(&self.0, &slot, running.cancel, &|line| (running.progress)(line));
        Ok(if reported.is_error {
            ToolOutput::error(&reported.text)
        } else {
            ToolOutput::text(&reported.text)
        })
    }

    /// Definition of a kind; none for the general one.
    fn definition(&self, kind: &str) -> Result<Option<AgentDefinition>, String> {
        let known = self.0.known();
        match known.iter().find(|known| known.name == kind) {
            Some(definition) => Ok(Some(definition.clone())),
            None if kind == GENERAL => Ok(None),
            None => {
                let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
                Err(format!(
                    "There is no agent of the kind `{kind}`. There are: {}.",
                    [&[GENERAL, FORK][..], &names].concat().join(", ")
                ))
            }
        }
    }

    fn errand(&self, fields: &AgentToolInput, running: &ToolContext<'_>) -> Result<SubagentTask, String> {
        let team = &self.0;
        let kind = fields.subagent_type.as_deref().map_or(GENERAL, str::trim);
        let is_fork = kind == FORK && !team.known().iter().any(|known| known.name == kind);
        if is_fork && team.is_fork {
            return Err(String::from("You are a fork, and forks do not fork: do it yourself."));
        }
        let definition = if is_fork { None } else { self.definition(kind)? };
        let forks = is_fork.then(|| running.call.clone());
        let is_isolated = match fields.isolation.as_deref() {
            None => definition.as_ref().is_some_and(|definition| definition.is_isolated),
            Some("worktree") => true,
            Some(other) => return Err(format!("`isolation` is `worktree` or left out, not `{other}`.")),
        };
        if is_isolated && forks.is_some() {
            return Err(String::from("A fork works where the conversation works: leave `isolation` out."));
        }
        let wanted = fields.name.as_deref().unwrap_or(&fields.description);
        Ok(SubagentTask {
            name: team.name(wanted),
            prompt: fields.prompt.clone(),
            definition,
            forks,
            is_isolated,
        })
    }

    /// Runs a task in the background; the model is told when it ends.
    fn send_away(&self, errand: SubagentTask) -> Result<ToolOutput, String> {
        let team = Arc::clone(&self.0);
        let name = errand.name.clone();
        let file = team.folder.join(&name).join("output.txt");
        let told = format!(
            "The agent `{name}` is at work in the background. You will be told when it has ended; what it does stands in {}. \
             SendMessage speaks to it.",
            file.display()
        );
        let slot = team.register(&name, errand.kind())?;
        let work = move || {
            let name = errand.name.clone();
            let progress = |line: &str| append(&file, line);
            let run = || errand.run(&team, &slot, &CancelToken::new(), &progress);
            let broken =
                |_| SubagentReport::failed(String::from("It broke off: there is a fault in this program."));
            // Waiting threads see the end in any case.
            let reported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(broken);
            append(&file, &reported.text);
            let report = format!(
                "[The agent `{name}`, which was at work in the background, has ended. It reports:]\n{}",
                reported.text
            );
            team.sender.message(Content::from_text(&report));
            drop(slot);
        };
        let spawned = std::thread::Builder::new().name(name).spawn(work);
        spawned.map_err(|error| format!("The agent could not be started: {error}."))?;
        Ok(ToolOutput::text(&told))
    }

    /// Starts a teammate, or restarts one of this name that has ended.
    fn send_teammate(&self, fields: &AgentToolInput) -> Result<ToolOutput, String> {
        let team = &self.0;
        let Some(starting) = &team.template.subagent.teammate_command else {
            return Err(String::from("Only the session that the user talks with has teammates."));
        };
        if fields.isolation.is_some() {
            return Err(String::from("A teammate works where you work: leave `isolation` out."));
        }
        let kind = fields.subagent_type.as_deref().map_or(GENERAL, str::trim);
        if kind == FORK {
            return Err(String::from(
                "A teammate knows nothing of this conversation, so it cannot be a fork.",
            ));
        }
        let definition = self.definition(kind)?;
        let name = spelled(fields.name.as_deref().unwrap_or(&fields.description));
        if name.is_empty() || name == LEAD {
            return Err(String::from("A teammate wants a `name` of letters and digits, and `lead` is you."));
        }
        team.lead()?;
        team.reserve(&name, kind)?;
        let (mode, rules) = team.may();
        let assignment = TeammateAssignment {
            name: name.clone(),
            definition,
            prompt: directive(&name, fields),
            lead: team.log.parent().unwrap_or(&team.log).to_owned(),
            model: team.template.model.lens.card.name.to_string(),
            mode: mode.name().to_owned(),
            allowed: rules.for_session().map(ToString::to_string).collect(),
            plans_first: fields.plan_first,
            can_ask: team.template.permissions.asker.is_some(),
            depth: team.template.subagent.depth + 1,
        };
        let begun = TeammateProcess::start(starting(), &assignment).and_then(|(teammate, output)| {
            let teammate = Arc::new(teammate);
            team.started(&name, Arc::clone(&teammate));
            listen(teammate, output, name.clone(), Arc::clone(team))
        });
        begun.inspect_err(|_| team.left(&name))?;
        Ok(ToolOutput::text(&format!(
            "The teammate `{name}` is at work in a process of its own. You are told when it has something to say and when it has \
             nothing left to do; SendMessage speaks to it. It stays until you ask it to end."
        )))
    }
}

/// Prompt of a teammate. Text for the model.
fn directive(name: &str, fields: &AgentToolInput) -> String {
    let plan = match fields.plan_first {
        false => "",
        true => {
            " You begin by planning: look around and change nothing. When you have a plan, call ExitPlanMode with it; `lead` \
             approves it or says what to change."
        }
    };
    format!(
        "[You are `{name}`, a teammate of the agent `lead`, who works in the same project as you. Your last message of each \
         prompt goes to `lead` by itself. SendMessage speaks to `lead` and to other teammates while you work. Others may change \
         files, too: keep to your task.{plan}]\n\n{}",
        fields.prompt
    )
}

/// Appends to the progress file; failures are ignored.
fn append(file: &std::path::Path, text: &str) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    if let Ok(mut file) = options.append(true).create(true).mode(0o600).open(file) {
        let _ = file.write_all(text.as_bytes());
    }
}

impl Subagents {
    /// Starts the progress thread with the first subagent.
    fn begin_watching(self: &Arc<Subagents>) {
        let Some(every) = self.template.subagent.progress_every else { return };
        let mut watching = self.watching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if watching.is_none() {
            let (stop, stopped) = channel();
            let team = Arc::downgrade(self);
            let work = move || subagent_progress::watch(&team, every, &stopped);
            // Without the thread there are no progress lines.
            if std::thread::Builder::new().name("pal-progress".into()).spawn(work).is_ok() {
                *watching = Some(stop);
            }
        }
    }
}

/// Sends a message to an agent.
pub(crate) struct SendMessageTool(pub(crate) Arc<Subagents>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendMessageInput {
    to: String,
    message: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    accepted: Option<bool>,
}

impl SendMessageInput {
    fn purpose(&self) -> Result<MessagePurpose, String> {
        let accepted = self.accepted.ok_or("It wants `accepted`: true or false.");
        match self.kind.as_deref() {
            None | Some("message") => Ok(MessagePurpose::Text),
            Some("shutdown_request") => Ok(MessagePurpose::ShutdownRequest),
            Some("shutdown_response") => Ok(MessagePurpose::ShutdownResponse(accepted?)),
            Some("plan_approval") => Ok(MessagePurpose::PlanApproval(accepted?)),
            Some(other) => Err(format!(
                "`kind` is message, shutdown_request, shutdown_response or plan_approval, not `{other}`."
            )),
        }
    }
}

impl ToolHandler for SendMessageTool {
    fn name(&self) -> &'static str {
        SEND_MESSAGE
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    /// Messages within the team need no permission; messages to other sessions do.
    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let message: SendMessageInput = input.read()?;
        Ok(if message.to.trim().starts_with(SESSION) { vec![ToolAccess::Use] } else { Vec::new() })
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        let told = input.read().and_then(|message: SendMessageInput| {
            let to = message.to.trim();
            let heard = match to.strip_prefix(SESSION) {
                Some(session) => self.0.say_to_session(session, &message.message)?,
                None => self.0.speak(to, message.purpose()?, (&message.summary, &message.message))?,
            };
            Ok(format!("Said to {}; heard with the next results.", heard.join(", ")))
        });
        told.map_or_else(|wrong: String| ToolOutput::error(&wrong), |text| ToolOutput::text(&text))
    }
}

impl Subagents {
    /// Sends a text to another running session by name.
    fn say_to_session(&self, to: &str, text: &str) -> Result<Vec<String>, String> {
        let from = self.public_name()?;
        let (mut ids, now) = (random_ids(), self.template.clock.now());
        match session_presence::send(&self.template.home, &from, to, text, (&mut ids, now)) {
            Ok(said) => {
                let told = |sent: session_presence::SendReceipt| match sent.outcome {
                    Ok(()) => sent.to.to_string(),
                    Err(why) => format!("(not {}: {why})", sent.to),
                };
                if let [session_presence::SendReceipt { outcome: Err(why), .. }] = said.as_slice() {
                    return Err(why.clone());
                }
                Ok(said.into_iter().map(told).collect())
            }
            Err(session_presence::SendError::Unreadable(why)) => Err(why),
            Err(session_presence::SendError::NotOne(names)) if names.is_empty() => {
                Err(String::from("No other session runs on this machine."))
            }
            Err(session_presence::SendError::NotOne(names)) => {
                let names: Vec<String> = names.iter().map(|name| format!("{SESSION}{name}")).collect();
                Err(format!("There is no session `{to}`. There are: {}.", names.join(", ")))
            }
        }
    }
}
