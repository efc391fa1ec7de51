//! A host that opens agents of an [`AgentWorld`], with two slash commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_acp::{
    AgentHost, CommandReply, EditorCommand, EditorCommands, EventObserver, HostError, ListedSession,
    SessionRequest, SessionSetup,
};
use pal_agent::{Agent, SessionOrigin};
use pal_agent_testkit::AgentWorld;
use pal_events::AgentEvent;
use pal_model::Content;

/// Opens agents of a world with the same settings each.
pub(crate) struct TestHost {
    pub(crate) world: Arc<AgentWorld>,
    pub(crate) settings: &'static str,
}

impl TestHost {
    /// Logs of all sessions.
    fn logs(&self) -> Vec<PathBuf> {
        let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
        let projects = folders(self.world.pal_home().join("projects"));
        let sessions = projects.flat_map(|project| folders(project.path().join("sessions")));
        sessions.map(|session| session.path().join("log.jsonl")).collect()
    }
}

fn session_id(log: &Path) -> String {
    log.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

impl AgentHost for TestHost {
    fn prepare(&self, request: &SessionRequest) -> Result<SessionSetup, HostError> {
        let model = request.model.as_ref().map_or(String::new(), |model| format!("model = \"{model}\"\n"));
        let mut options = self.world.options(&format!("{model}{}", self.settings));
        if let Some(mode) = request.mode {
            (options.permissions.mode, options.permissions.is_mode_chosen) = (mode, true);
        }
        if let Some(id) = &request.session {
            let log = self.logs().into_iter().find(|log| session_id(log) == *id);
            let log = log.ok_or_else(|| HostError {
                what: format!("no session has the id `{id}`"),
                hint: Some(String::from("look at the list")),
            })?;
            options.origin = SessionOrigin::Resumed(log);
        }
        Ok(SessionSetup {
            options,
            commands: Box::new(TestCommands),
            models: vec![String::from("claude-opus-5-5"), String::from("claude-opus-5")],
            permissions_file: Some(self.world.pal_home().join("allowed.toml")),
            observer: Box::new(SilentObserver),
        })
    }

    fn list_sessions(&self, _directory: Option<&Path>) -> Result<Vec<ListedSession>, HostError> {
        let listed = self.logs().into_iter().map(|log| ListedSession {
            id: session_id(&log),
            directory: self.world.project(),
            title: Some(String::from("a title")),
            updated_at: String::from("2030-01-07T00:00:00Z"),
        });
        Ok(listed.collect())
    }

    fn version(&self) -> String {
        String::from("1.2.3")
    }
}

/// `/compact`, and `/sum`, which is a prompt.
struct TestCommands;

impl EditorCommands for TestCommands {
    fn list(&self) -> Vec<EditorCommand> {
        let command = |name: &str, about: &str, arguments: &str| EditorCommand {
            name: name.to_owned(),
            about: about.to_owned(),
            arguments: arguments.to_owned(),
        };
        vec![command("compact", "Compacts", ""), command("sum", "Adds up", "numbers")]
    }

    fn run(&mut self, name: &str, arguments: &str, agent: &mut Agent<'static>) -> CommandReply {
        match name {
            "compact" => match agent.compact(None) {
                Ok(()) => CommandReply::Text(String::from("Compacted.")),
                Err(error) => CommandReply::Failed(error.to_string()),
            },
            "sum" => CommandReply::Prompt(Content::from_text(&format!("Add {arguments}."))),
            _ => CommandReply::Unknown,
        }
    }
}

struct SilentObserver;

impl EventObserver for SilentObserver {
    fn opened(&mut self, _agent: &Agent<'_>) {}

    fn event(&mut self, _event: &AgentEvent) -> Option<String> {
        None
    }
}
