//! MCP servers, and whether the project's own file may name some.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::setting_values::SettingValues;
use crate::sources::{ResolvedSetting, SettingsSource};
use crate::trust::{ProjectTrust, notice};

/// MCP servers.
#[derive(Clone, PartialEq, Debug)]
pub struct McpSettings {
    /// Servers by name from each source, in increasing precedence, in the shape of `.mcp.json`.
    pub said: Vec<ResolvedSetting<Value>>,
    /// Names of servers that are not started.
    pub disabled: Vec<String>,
    /// Timeout for the start of a server.
    pub start_limit: Duration,
    /// Timeout for a call.
    pub call_limit: Duration,
}

impl McpSettings {
    pub(crate) fn new(values: &SettingValues<'_>) -> McpSettings {
        let said =
            values.parts("mcp_servers").iter().filter(|part| part.origin.place != SettingsSource::Default);
        let seconds = |name| Duration::from_secs(values.count(name).unwrap_or(60));
        McpSettings {
            said: said.cloned().collect(),
            disabled: values.texts("mcp_disabled"),
            start_limit: seconds("mcp_start_timeout_s"),
            call_limit: seconds("mcp_call_timeout_s"),
        }
    }
}

/// The project that is worked on, and whether the user trusts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectSettings {
    /// Its top, if there is a project.
    pub top: Option<PathBuf>,
    /// True if the project's own files may run commands.
    pub is_trusted: bool,
    pub(crate) trust: ProjectTrust,
}

impl ProjectSettings {
    /// Trust in the project, with the files that changed since.
    pub fn trust(&self) -> &ProjectTrust {
        &self.trust
    }

    /// Notice that parts of a project's file are ignored until the project is trusted.
    pub fn ignored(&self, file: &str, what: &[&str]) -> String {
        let top = self.top.as_deref().unwrap_or(Path::new("."));
        notice(file, what, top, &self.trust)
    }
}
