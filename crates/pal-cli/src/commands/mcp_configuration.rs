//! `pal mcp add`, `list` and `remove`: the MCP servers of the settings.

use std::io::Write;
use std::process::ExitCode;

use pal_mcp::parse_servers;
use pal_model::did_you_mean;
use pal_report::TextTable;
use pal_settings::SettingsEdit;
use serde_json::{Map, Value, json};

use super::config_change::settings_path;
use crate::agent::{ConfiguredServer, configured_servers};
use crate::arguments::{ConfigScopeArg, McpAddArgs, McpListArgs, McpRemoveArgs};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::{Settings, variable};
use crate::terminal_style::style_for;

pub(super) fn add(arguments: &McpAddArgs, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let server = server_of(arguments)?;
    let all = Value::Object(Map::from_iter([(arguments.name.clone(), server.clone())]));
    // A variable may be set later, when the server starts.
    let lookup = |name: &str| Some(variable(name).unwrap_or_default());
    parse_servers(&all, "pal mcp add", &lookup)
        .map_err(|error| Failure::usage_error(error.to_string(), "`pal mcp add --help` shows examples"))?;
    let path = settings_path(arguments.scope)?;
    let mut edit = SettingsEdit::open(&path)?;
    // Only the opened copy loses the server; the file is not written.
    if edit.remove(&["mcp_servers", &arguments.name]) {
        return Err(Failure::usage_error(
            format!("{} already has an MCP server `{}`", path.display(), arguments.name),
            match arguments.scope {
                ConfigScopeArg::User => {
                    format!("choose another name, or run `pal mcp remove {}` first", arguments.name)
                }
                ConfigScopeArg::Project => {
                    format!(
                        "choose another name, or run `pal mcp remove {} --scope project` first",
                        arguments.name
                    )
                }
                ConfigScopeArg::Local => {
                    format!(
                        "choose another name, or run `pal mcp remove {} --scope local` first",
                        arguments.name
                    )
                }
            },
        ));
    }
    edit.put(&["mcp_servers", &arguments.name], &server);
    edit.save()?;
    writeln!(out, "Added the MCP server {} to {}.", arguments.name, path.display())?;
    if arguments.scope != ConfigScopeArg::User {
        writeln!(out, "It starts once you trust the project: `pal trust`.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The server in the format of `.mcp.json`.
fn server_of(arguments: &McpAddArgs) -> Result<Value, Failure> {
    let wrong = |what: String, hint: &str| Err(Failure::usage_error(what, hint.to_owned()));
    let Some((first, rest)) = arguments.target.split_first() else {
        return wrong(String::from("a command or a URL is missing"), "add it after the name");
    };
    let is_url = first.starts_with("http://") || first.starts_with("https://");
    let is_http = match arguments.transport.as_deref() {
        None => is_url,
        Some("http" | "sse") => true,
        Some("stdio") => false,
        Some(other) => return wrong(format!("--transport {other} is unknown"), "use stdio or http"),
    };
    if is_http && (!is_url || !rest.is_empty()) {
        return wrong(
            format!("`{}` is not a URL", arguments.target.join(" ")),
            "give one URL that starts with https://",
        );
    }
    if is_http && !arguments.variables.is_empty() {
        return wrong(String::from("--env is for programs, and this server is a URL"), "use --header");
    }
    if !is_http && !arguments.headers.is_empty() {
        return wrong(String::from("--header is for URLs, and this server is a program"), "use --env");
    }
    let pairs = |items: &[String], separator: char, flag: &str| -> Result<Map<String, Value>, Failure> {
        items
            .iter()
            .map(|item| match item.split_once(separator) {
                Some((name, value)) if !name.trim().is_empty() => {
                    Ok((name.trim().to_owned(), json!(value.trim_start())))
                }
                _ => Err(Failure::usage_error(
                    format!("{flag} {item}: there is no `{separator}` after a name"),
                    if separator == '=' { "write it like NAME=VALUE" } else { "write it like 'Name: value'" },
                )),
            })
            .collect()
    };
    let mut server = Map::new();
    if is_http {
        server.insert(String::from("type"), json!("http"));
        server.insert(String::from("url"), json!(first));
        let headers = pairs(&arguments.headers, ':', "--header")?;
        server.extend((!headers.is_empty()).then(|| (String::from("headers"), Value::Object(headers))));
    } else {
        server.insert(String::from("command"), json!(first));
        server.extend((!rest.is_empty()).then(|| (String::from("args"), json!(rest))));
        let variables = pairs(&arguments.variables, '=', "--env")?;
        server.extend((!variables.is_empty()).then(|| (String::from("env"), Value::Object(variables))));
    }
    Ok(Value::Object(server))
}

pub(super) fn list(
    arguments: &McpListArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let servers = configured_servers(settings, &Notices::to_stderr())?;
    if arguments.json {
        let all: Vec<Value> = servers.iter().map(as_json).collect();
        writeln!(out, "{}", Value::from(all))?;
        return Ok(ExitCode::SUCCESS);
    }
    if servers.is_empty() {
        writeln!(out, "No MCP servers. `pal mcp add NAME -- COMMAND` adds one.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = TextTable::new(&["server", "starts", "target", "from"], &[0, 1, 2, 3]);
    for ConfiguredServer { server, is_disabled } in &servers {
        table.push_row(vec![
            server.name.clone(),
            String::from(if *is_disabled { "no" } else { "yes" }),
            server.transport.to_string(),
            server.source.clone(),
        ]);
    }
    table.write(style_for(arguments.color), out)?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(configured: &ConfiguredServer) -> Value {
    let server = &configured.server;
    json!({
        "name": server.name, "target": server.transport.to_string(), "from": server.source,
        "starts": !configured.is_disabled,
    })
}

pub(super) fn remove(
    arguments: &McpRemoveArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let (name, path) = (&arguments.name, settings_path(arguments.scope)?);
    let mut edit = SettingsEdit::open(&path)?;
    if edit.remove(&["mcp_servers", name]) {
        edit.save()?;
        writeln!(out, "Removed the MCP server {name} from {}.", path.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let servers = configured_servers(settings, &Notices::collected())?;
    match servers.iter().find(|configured| configured.server.name == *name) {
        Some(configured) => {
            let mut disabled = settings.mcp.disabled.clone();
            disabled.push(name.clone());
            edit.put(&["mcp_disabled"], &json!(disabled));
            edit.save()?;
            writeln!(
                out,
                "{name} is configured in {}, which stays as it is; pal does not start it any more (mcp_disabled in {}).",
                configured.server.source,
                path.display()
            )?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let known: Vec<&str> = servers.iter().map(|configured| configured.server.name.as_str()).collect();
            Err(Failure::usage_error(
                format!("there is no MCP server `{name}`{}", did_you_mean(name, &known)),
                "`pal mcp list` lists all servers",
            ))
        }
    }
}
