//! The tools that send agents and speak to them.

use std::sync::Arc;
use std::sync::mpsc::channel;

use pal_model::Content;
use pal_permissions::Need;
use pal_process::Cancel;
use pal_tools::{AgentInfo, Input, Output, Running, Tool, Workspace};
use serde::Deserialize;

use super::child::{Errand, Reported};
use super::mail::{LEAD, Purpose};
use super::progress;
use super::team::{Team, spelled};
use super::teammate::{Teammate, listen};
use super::wire::Assignment;
use crate::clock;
use crate::options::Above;
use crate::post;

/// The tool that sends an agent.
pub(crate) const AGENT: &str = "Agent";

/// The tool that speaks to one.
const SEND_MESSAGE: &str = "SendMessage";

/// The kind of agent that goes on from the conversation.
const FORK: &str = "fork";

/// The kind of agent that needs no definition.
const GENERAL: &str = "general";

/// What stands before the name of another session.
const SESSION: &str = "uds:";

/// Sends an agent for a part of the work.
pub(crate) struct AgentTool(pub(crate) Arc<Team>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
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

impl Tool for AgentTool {
    fn name(&self) -> &'static str {
        AGENT
    }

    fn only_looks(&self, _: &Input) -> bool {
        // What it does is judged call by call; several agents work beside each other.
        true
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read::<Fields>().map(|_| Vec::new())
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        self.send(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

impl AgentTool {
    fn send(&self, input: &Input, running: &Running<'_>) -> Result<Output, String> {
        let fields: Fields = input.read()?;
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
        let reported = errand.run(&self.0, running.cancel, &|line| (running.progress)(line));
        Ok(if reported.is_error { Output::error(&reported.text) } else { Output::text(&reported.text) })
    }

    /// The definition of a kind; none for the general one.
    fn definition(&self, kind: &str) -> Result<Option<AgentInfo>, String> {
        let known = &self.0.known;
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

    fn errand(&self, fields: &Fields, running: &Running<'_>) -> Result<Errand, String> {
        let team = &self.0;
        let kind = fields.subagent_type.as_deref().map_or(GENERAL, str::trim);
        let is_fork = kind == FORK && !team.known.iter().any(|known| known.name == kind);
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
        Ok(Errand { name: team.name(wanted), prompt: fields.prompt.clone(), definition, forks, is_isolated })
    }

    /// Lets it work in the background: the model goes on and is told of the end.
    fn send_away(&self, errand: Errand) -> Result<Output, String> {
        let team = Arc::clone(&self.0);
        let name = errand.name.clone();
        let file = team.folder.join(&name).join("output.txt");
        let told = format!(
            "The agent `{name}` is at work in the background. You will be told when it has ended; what it does stands in {}. \
             SendMessage speaks to it.",
            file.display()
        );
        let work = move || {
            let name = errand.name.clone();
            let progress = |line: &str| append(&file, line);
            let run = || errand.run(&team, &Cancel::new(), &progress);
            let broken =
                |_| Reported::failed(String::from("It broke off: there is a fault in this program."));
            // Whoever waits for it hears of its end, whatever it was.
            let reported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(broken);
            append(&file, &reported.text);
            let report = format!(
                "[The agent `{name}`, which was at work in the background, has ended. It reports:]\n{}",
                reported.text
            );
            team.sender.message(Content::of_text(&report));
            drop(reported.joined);
        };
        let spawned = std::thread::Builder::new().name(name).spawn(work);
        spawned.map_err(|error| format!("The agent could not be started: {error}."))?;
        Ok(Output::text(&told))
    }

    /// Starts a teammate, or goes on with one of this name that has ended.
    fn send_teammate(&self, fields: &Fields) -> Result<Output, String> {
        let team = &self.0;
        let Some(starting) = &team.template.teammates else {
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
        let assignment = Assignment {
            name: name.clone(),
            definition,
            prompt: directive(&name, fields),
            lead: team.log.parent().unwrap_or(&team.log).to_owned(),
            model: team.template.lens.card.model.to_string(),
            mode: mode.name().to_owned(),
            allowed: rules.for_session().map(ToString::to_string).collect(),
            plans_first: fields.plan_first,
            can_ask: team.template.asking.is_some(),
            depth: team.depth + 1,
        };
        let begun = Teammate::start(starting(), &assignment).and_then(|(teammate, output)| {
            let teammate = Arc::new(teammate);
            team.started(&name, Arc::clone(&teammate));
            listen(teammate, output, name.clone(), Arc::clone(team))
        });
        begun.inspect_err(|_| team.left(&name))?;
        Ok(Output::text(&format!(
            "The teammate `{name}` is at work in a process of its own. You are told when it has something to say and when it has \
             nothing left to do; SendMessage speaks to it. It stays until you ask it to end."
        )))
    }
}

/// What a teammate is told of its place, and of its task.
fn directive(name: &str, fields: &Fields) -> String {
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

/// Adds to a file for whoever watches; that it cannot be written ends nothing.
fn append(file: &std::path::Path, text: &str) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    if let Ok(mut file) = options.append(true).create(true).mode(0o600).open(file) {
        let _ = file.write_all(text.as_bytes());
    }
}

impl Team {
    /// Tells whoever watches what the agents do, every so often, from the first one on.
    fn begin_watching(self: &Arc<Team>) {
        let Some(every) = self.template.progress_every else { return };
        let mut watching = self.watching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if watching.is_none() {
            let (stop, stopped) = channel();
            let team = Arc::downgrade(self);
            let work = move || progress::watch(&team, every, &stopped);
            // Without it nobody is told, and everything else works.
            if std::thread::Builder::new().name("pal-progress".into()).spawn(work).is_ok() {
                *watching = Some(stop);
            }
        }
    }
}

/// Speaks to an agent.
pub(crate) struct SendMessage(pub(crate) Arc<Team>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    to: String,
    message: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    accepted: Option<bool>,
}

impl Message {
    fn purpose(&self) -> Result<Purpose, String> {
        let accepted = self.accepted.ok_or("It wants `accepted`: true or false.");
        match self.kind.as_deref() {
            None | Some("message") => Ok(Purpose::Text),
            Some("shutdown_request") => Ok(Purpose::ShutdownRequest),
            Some("shutdown_response") => Ok(Purpose::ShutdownResponse(accepted?)),
            Some("plan_approval") => Ok(Purpose::PlanApproval(accepted?)),
            Some(other) => Err(format!(
                "`kind` is message, shutdown_request, shutdown_response or plan_approval, not `{other}`."
            )),
        }
    }
}

impl Tool for SendMessage {
    fn name(&self) -> &'static str {
        SEND_MESSAGE
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    /// Within the team everybody may speak. Who writes to another session of the user needs leave.
    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        let message: Message = input.read()?;
        Ok(if message.to.trim().starts_with(SESSION) { vec![Need::Use] } else { Vec::new() })
    }

    fn run(&self, input: &Input, _: &Running<'_>) -> Output {
        let told = input.read().and_then(|message: Message| {
            let to = message.to.trim();
            let heard = match to.strip_prefix(SESSION) {
                Some(session) => self.0.say_to_session(session, &message.message)?,
                None => self.0.speak(to, message.purpose()?, (&message.summary, &message.message))?,
            };
            Ok(format!("Said to {}; heard with the next results.", heard.join(", ")))
        });
        told.map_or_else(|wrong: String| Output::error(&wrong), |text| Output::text(&text))
    }
}

impl Team {
    /// What others on this machine know the session by that a person talks with, or the teammate.
    fn public_name(&self) -> Result<pal_messages::Name, String> {
        match &self.template.above {
            Some(Above(above)) => above.public_name(),
            None => {
                let agent = self.template.agent.as_ref().map(|(name, _)| name.as_str());
                post::called(&self.log, agent, &self.template.sources.search.directory)
            }
        }
    }

    /// Says something to another session that runs on this machine, by its name.
    fn say_to_session(&self, to: &str, text: &str) -> Result<Vec<String>, String> {
        let from = self.public_name()?;
        let (mut ids, now) = (clock::ids(), self.template.clock.now());
        match post::send(&self.template.home, &from, to, text, (&mut ids, now)) {
            Ok(said) => {
                let told = |sent: post::Sent| match sent.outcome {
                    Ok(()) => sent.to.to_string(),
                    Err(why) => format!("(not {}: {why})", sent.to),
                };
                if let [post::Sent { outcome: Err(why), .. }] = said.as_slice() {
                    return Err(why.clone());
                }
                Ok(said.into_iter().map(told).collect())
            }
            Err(post::SendError::Unreadable(why)) => Err(why),
            Err(post::SendError::NotOne(names)) if names.is_empty() => {
                Err(String::from("No other session runs on this machine."))
            }
            Err(post::SendError::NotOne(names)) => {
                let names: Vec<String> = names.iter().map(|name| format!("{SESSION}{name}")).collect();
                Err(format!("There is no session `{to}`. There are: {}.", names.join(", ")))
            }
        }
    }
}
