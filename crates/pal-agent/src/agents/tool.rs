//! The tools that send agents and speak to them.

use std::sync::Arc;

use pal_permissions::Need;
use pal_process::Cancel;
use pal_tools::{Input, Output, Running, Tool, Workspace};
use serde::Deserialize;

use super::child::Errand;
use super::team::Team;

/// The tool that sends an agent.
pub(crate) const AGENT: &str = "Agent";

/// The tool that speaks to one.
pub(crate) const SEND_MESSAGE: &str = "SendMessage";

/// The kind of agent that goes on from the conversation.
const FORK: &str = "fork";

/// The kind of agent that needs no definition.
const GENERAL: &str = "general";

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

    fn errand(&self, fields: &Fields, running: &Running<'_>) -> Result<Errand, String> {
        let team = &self.0;
        let kind = fields.subagent_type.as_deref().map_or(GENERAL, str::trim);
        let definition = team.known.iter().find(|known| known.name == kind).cloned();
        let forks = match (kind, &definition) {
            (FORK, None) if team.is_fork => {
                return Err(String::from("You are a fork, and forks do not fork: do it yourself."));
            }
            (FORK, None) => Some(running.call.clone()),
            (GENERAL, None) | (_, Some(_)) => None,
            (kind, None) => {
                let names: Vec<&str> = team.known.iter().map(|known| known.name.as_str()).collect();
                return Err(format!(
                    "There is no agent of the kind `{kind}`. There are: {}.",
                    [&[GENERAL, FORK][..], &names].concat().join(", ")
                ));
            }
        };
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
            let reported = errand.run(&team, &Cancel::new(), &progress);
            append(&file, &reported.text);
            team.note(format!(
                "The agent `{name}`, which was at work in the background, has ended. It reports:\n{}",
                reported.text
            ));
        };
        let spawned = std::thread::Builder::new().name(name).spawn(work);
        spawned.map_err(|error| format!("The agent could not be started: {error}."))?;
        Ok(Output::text(&told))
    }
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

/// Speaks to an agent that works.
pub(crate) struct SendMessage(pub(crate) Arc<Team>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    to: String,
    message: String,
    #[serde(default, rename = "summary")]
    _summary: Option<String>,
}

impl Tool for SendMessage {
    fn name(&self) -> &'static str {
        SEND_MESSAGE
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read::<Message>().map(|_| Vec::new())
    }

    fn run(&self, input: &Input, _: &Running<'_>) -> Output {
        let told = input.read().and_then(|Message { to, message, .. }| {
            let heard =
                self.0.tell(to.trim(), &format!("[A message from the agent that sent you.]\n{message}"))?;
            Ok(format!("Said to {heard}; heard with the next results."))
        });
        told.map_or_else(|wrong| Output::error(&wrong), |text| Output::text(&text))
    }
}
