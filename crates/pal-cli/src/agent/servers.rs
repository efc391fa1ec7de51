//! Which MCP servers a session has: those of settings, of the project's `.mcp.json` and of `--mcp-config`, near over far.

use std::path::Path;

use pal_agent::Serving;
use pal_mcp::{ConfigError, Parsed, parse_file, parse_servers};
use pal_settings::Switch;

use crate::arguments::Print;
use crate::aside;
use crate::failure::Failure;
use crate::settings::{Settings, variable};

/// The project's file.
const FILE: &str = ".mcp.json";

/// The servers of a session. What the user is to know of those that are not started is told as settings are.
pub(super) fn serving(print: &Print, settings: &Settings) -> Result<Serving, Failure> {
    let mut serving = Serving {
        servers: Vec::new(),
        start_limit: settings.mcp.start_limit,
        call_limit: settings.mcp.call_limit,
        allows_plain_http: settings.endpoints.allows_plain_http,
    };
    if settings.switches.is_off(Switch::Mcp) {
        return Ok(serving);
    }
    if !print.strict_mcp_config && !print.bare {
        for said in &settings.mcp.said {
            let parsed = parse_servers(&said.value, &format!("{}: mcp_servers", said.origin), &variable);
            add(&mut serving, parsed.map_err(|error| wrong(&error))?);
        }
        of_project(settings, &mut serving);
    }
    for given in &print.mcp_config {
        add(&mut serving, of_flag(given)?);
    }
    Ok(serving)
}

fn add(serving: &mut Serving, parsed: Parsed) {
    serving.servers.extend(parsed.servers);
    parsed.warnings.iter().for_each(|warning| warn(warning));
}

/// What the project's own file names, if the project is trusted: its servers are programs that run here. A mistake in it is
/// told of, and nobody is kept from working by it.
fn of_project(settings: &Settings, serving: &mut Serving) {
    let Some(file) = settings.project.top.as_ref().map(|top| top.join(FILE)) else { return };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return warn(&format!("{}: {error}", file.display())),
    };
    let place = file.display().to_string();
    if !settings.project.is_trusted {
        return warn(&settings.project.ignored(&place, &["the MCP servers in it"]));
    }
    match parse_file(&text, &place, &variable) {
        Ok(parsed) => add(serving, parsed),
        Err(error) => warn(&format!("{error}; its servers are not started")),
    }
}

/// What a flag gives: a file, or JSON itself.
fn of_flag(given: &str) -> Result<Parsed, Failure> {
    let parsed = if given.trim_start().starts_with('{') {
        parse_file(given, "--mcp-config", &variable)
    } else {
        let path = Path::new(given);
        let text = std::fs::read_to_string(path).map_err(|error| Failure::of_file(path, &error))?;
        parse_file(&text, given, &variable)
    };
    parsed.map_err(|error| wrong(&error))
}

fn wrong(error: &ConfigError) -> Failure {
    Failure::wrong_use(error.to_string(), "correct it; docs/mcp.md shows the form")
}

fn warn(what: &str) {
    aside::tell(what);
}
