//! MCP servers, and whether the project's own file may name some.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::place::{Place, Resolved, Sources};
use crate::trust::{ProjectTrust, notice, trust_of};
use crate::values::Values;

/// MCP servers.
#[derive(Clone, PartialEq, Debug)]
pub struct Servers {
    /// What each place says of them, far to near: servers by name, in the shape of `.mcp.json`.
    pub said: Vec<Resolved<Value>>,
    /// How long one may take to come up.
    pub start_limit: Duration,
    /// How long a call may take.
    pub call_limit: Duration,
}

impl Servers {
    pub(crate) fn new(values: &Values<'_>) -> Servers {
        let said = values.parts("mcp_servers").iter().filter(|part| part.origin.place != Place::Default);
        let seconds = |name| Duration::from_secs(values.count(name).unwrap_or(60));
        Servers {
            said: said.cloned().collect(),
            start_limit: seconds("mcp_start_limit_s"),
            call_limit: seconds("mcp_call_limit_s"),
        }
    }
}

/// The project that is worked on, and whether the user trusts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Project {
    /// Its top, if there is a project.
    pub top: Option<PathBuf>,
    /// Whether what came with it may run commands.
    pub is_trusted: bool,
    trust: ProjectTrust,
}

impl Project {
    pub(crate) fn new(sources: &Sources, values: &Values<'_>) -> Project {
        let trusted = values.paths("trusted");
        let home = sources.home.as_deref();
        let must_be_listed = values.origin("trusted").is_some_and(|origin| origin.place == Place::Managed);
        let of_project = |project: &PathBuf| trust_of(project, &trusted, must_be_listed, home);
        let trust = sources.project.as_ref().map_or(ProjectTrust::No, of_project);
        Project { top: sources.project.clone(), is_trusted: trust == ProjectTrust::Yes, trust }
    }

    /// What is told of a file of the project that is ignored as long as the project is not trusted: what in it, and what to do.
    pub fn ignored(&self, file: &str, what: &[&str]) -> String {
        let top = self.top.as_deref().unwrap_or(Path::new("."));
        notice(file, what, top, &self.trust)
    }
}
