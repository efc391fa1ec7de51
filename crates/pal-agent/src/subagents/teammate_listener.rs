//! Listens to teammates, on behalf of the agent that leads them.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::Arc;

use pal_events::PermissionAnswer;
use pal_model::Content;

use super::subagent_registry::Subagents;
use super::teammate_process::{ERRORS, TeammateProcess};
use super::teammate_protocol::{LeadMessage, TeammateMessage, exchanged};
use crate::agent_handle::AgentSignal;

impl TeammateProcess {
    /// Reads its messages until it exits; returns how, unless successfully.
    pub(crate) fn hear(&self, output: ChildStdout, name: &str, team: &Subagents) -> Option<String> {
        for said in BufReader::new(output).lines().map_while(Result::ok) {
            // Other output is ignored.
            if let Ok(up) = serde_json::from_str(&said) {
                self.take_in(up, name, team);
            }
        }
        self.close();
        let status = self.process().wait();
        match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("it ended with {status}")),
            Err(error) => Some(format!("its end is not known: {error}")),
        }
    }

    fn take_in(&self, up: TeammateMessage, name: &str, team: &Subagents) {
        match up {
            TeammateMessage::Spent { got, provider, took_ms } => {
                team.took(name, Some(&got.usage), got.cost);
                let exchanged = exchanged(name, *got, &provider, took_ms);
                team.sender.send(AgentSignal::Exchanged(Box::new(exchanged)));
            }
            TeammateMessage::Does(what) => team.does(name, &what),
            TeammateMessage::Asks { id, mut asked } => {
                asked.agent.get_or_insert_with(|| name.to_owned());
                let answer = team
                    .template
                    .permissions
                    .asker
                    .as_ref()
                    .map_or(PermissionAnswer::Unavailable, |asking| asking(&asked));
                self.say(&LeadMessage::Answers { id, answer });
            }
            TeammateMessage::Rests { heard } => {
                // Its message is in the mailbox and must be read before it counts as idle.
                team.poll_mail();
                let mut state = self.state();
                state.rests = true;
                state.unheard.retain(|id| !heard.contains(id));
            }
            TeammateMessage::Works => self.state().rests = false,
        }
    }
}

/// Listens on a thread, and tells the lead if the teammate exits unexpectedly.
pub(crate) fn listen(
    teammate: Arc<TeammateProcess>,
    output: ChildStdout,
    name: String,
    team: Arc<Subagents>,
) -> Result<(), String> {
    let listening = move || {
        let wrong = teammate.hear(output, &name, &team);
        if let Some(wrong) = wrong.filter(|_| !team.is_ending()) {
            team.sender.message(Content::from_text(&format!(
                "[The teammate `{name}` is gone: {wrong}. What it printed last stands in {}. Sent again under the same name, it \
                 goes on where it was.]",
                team.folder.join(&name).join(ERRORS).display()
            )));
        }
        // Its message has been delivered by now.
        team.left(&name);
    };
    let spawned = std::thread::Builder::new().name("pal-teammate".into()).spawn(listening);
    spawned.map(|_| ()).map_err(|error| format!("The teammate could not be listened to: {error}."))
}
