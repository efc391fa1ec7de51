//! MCP servers of a session: of the settings, the project's `.mcp.json` and `--mcp-config`, in ascending precedence.

use std::collections::BTreeMap;
use std::path::Path;

use pal_agent::McpOptions;
use pal_mcp::{McpConfigError, McpServerConfig, ParsedConfig, parse_file, parse_servers};
use pal_settings::{KillSwitch, ResolvedSetting, SettingOrigin};
use serde_json::{Map, Value};

use crate::arguments::ProjectArgs;
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::{Settings, variable};

/// File of the project that lists its MCP servers.
const PROJECT_FILE: &str = ".mcp.json";

/// MCP servers to start, with their limits. Servers that are ignored are reported as notices.
pub(super) fn mcp_servers(
    args: &ProjectArgs,
    settings: &Settings,
    notices: &Notices,
) -> Result<McpOptions, Failure> {
    let mut serving = McpOptions {
        servers: Vec::new(),
        start_limit: settings.mcp.start_limit,
        call_limit: settings.mcp.call_limit,
        allows_plain_http: settings.endpoints.allows_plain_http,
        shared: None,
        host: None,
    };
    if settings.switches.is_off(KillSwitch::Mcp) {
        return Ok(serving);
    }
    if !args.strict_mcp_config && !args.bare {
        for said in &settings.mcp.said {
            let parsed = parse_servers(&said.value, &format!("{}: mcp_servers", said.origin), &variable);
            match parsed {
                Ok(parsed) => add(&mut serving, parsed, notices),
                // A file that the user wrote for another agent does not stop a session.
                Err(error) if is_imported(&said.origin, settings) => {
                    add_readable(said, &error, &mut serving, notices)
                }
                Err(error) => return Err(config_failure(&error)),
            }
        }
        add_project_servers(settings, &mut serving, notices);
        serving.servers.retain(|server| !settings.mcp.disabled.contains(&server.name));
    }
    for given in &args.mcp_config {
        add(&mut serving, parse_flag(given)?, notices);
    }
    Ok(serving)
}

fn add(serving: &mut McpOptions, parsed: ParsedConfig, notices: &Notices) {
    serving.servers.extend(parsed.servers);
    parsed.warnings.iter().for_each(|warning| notices.add(warning));
}

/// Returns whether a setting comes from a file of another agent.
fn is_imported(origin: &SettingOrigin, settings: &Settings) -> bool {
    settings.imported.files.iter().any(|file| file.as_os_str() == origin.source.as_str())
}

/// Adds the servers of a source that can be read one by one, and reports the first that cannot.
fn add_readable(
    said: &ResolvedSetting<Value>,
    error: &McpConfigError,
    serving: &mut McpOptions,
    notices: &Notices,
) {
    notices.add(format_args!("{error}; the server is not started"));
    for (name, server) in said.value.as_object().into_iter().flatten() {
        let alone = Value::Object(Map::from_iter([(name.clone(), server.clone())]));
        if let Ok(parsed) = parse_servers(&alone, &said.origin.to_string(), &variable) {
            add(serving, parsed, notices);
        }
    }
}

/// An MCP server that a session in this directory would start.
pub(crate) struct ConfiguredServer {
    /// Its configuration.
    pub(crate) server: McpServerConfig,
    /// True if `mcp_disabled` leaves it out.
    pub(crate) is_disabled: bool,
}

/// Servers of the settings and the project, by name; a nearer source wins.
pub(crate) fn configured_servers(
    settings: &Settings,
    notices: &Notices,
) -> Result<Vec<ConfiguredServer>, Failure> {
    let args = ProjectArgs { mcp_config: Vec::new(), strict_mcp_config: false, bare: false };
    let mut all = settings.clone();
    all.mcp.disabled.clear();
    let mut by_name = BTreeMap::new();
    for server in mcp_servers(&args, &all, notices)?.servers {
        let is_disabled = settings.mcp.disabled.contains(&server.name);
        by_name.insert(server.name.clone(), ConfiguredServer { server, is_disabled });
    }
    Ok(by_name.into_values().collect())
}

/// Adds the servers of the project's file if the project is trusted, since they are programs that run on this machine. An
/// unreadable file is reported and does not stop the session.
fn add_project_servers(settings: &Settings, serving: &mut McpOptions, notices: &Notices) {
    let Some(file) = settings.project.top.as_ref().map(|top| top.join(PROJECT_FILE)) else { return };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return notices.add(format_args!("{}: {error}", file.display())),
    };
    let path = file.display().to_string();
    if !settings.project.is_trusted {
        return notices.add(settings.project.ignored(&path, &["the MCP servers in it"]));
    }
    match parse_file(&text, &path, &variable) {
        Ok(parsed) => add(serving, parsed, notices),
        Err(error) => notices.add(format_args!("{error}; its servers are not started")),
    }
}

/// Parses `--mcp-config`: a file, or JSON.
fn parse_flag(given: &str) -> Result<ParsedConfig, Failure> {
    let parsed = if given.trim_start().starts_with('{') {
        parse_file(given, "--mcp-config", &variable)
    } else {
        let path = Path::new(given);
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage_error(format!("--mcp-config {given}: {error}"), "check the path")
        })?;
        parse_file(&text, given, &variable)
    };
    parsed.map_err(|error| config_failure(&error))
}

fn config_failure(error: &McpConfigError) -> Failure {
    Failure::usage_error(error.to_string(), "correct it; `pal help mcp` describes the format")
}
