//! Configuration of servers: the format of `.mcp.json`, shared by settings and `--mcp-config`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::variables::{VariableLookup, expand_variables};

/// Maximum characters of a server's name.
const NAME_MAX: usize = 64;

/// A configured server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServerConfig {
    /// Name, which prefixes its tools.
    pub name: String,
    /// Transport.
    pub transport: ServerTransport,
    /// Start timeout, if not the default.
    pub start_limit: Option<Duration>,
    /// Call timeout, if not the default.
    pub call_limit: Option<Duration>,
    /// File or flag that configures it.
    pub source: String,
}

/// Transport to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program that is started here and uses standard input and output.
    Stdio {
        /// Program to run.
        command: String,
        /// Arguments.
        arguments: Vec<String>,
        /// Additional environment variables.
        variables: BTreeMap<String, String>,
        /// Working directory, if not the session's.
        directory: Option<PathBuf>,
    },
    /// An HTTP server.
    Http {
        /// Address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// Configured as `sse`, the older protocol.
        is_event_stream: bool,
    },
    /// A server inside the program that drives this one (`sdk`).
    Host,
}

impl fmt::Display for ServerTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerTransport::Stdio { command, arguments, .. } => {
                write!(formatter, "{command}")?;
                arguments.iter().try_for_each(|argument| write!(formatter, " {argument}"))
            }
            ServerTransport::Http { url, .. } => write!(formatter, "{url}"),
            ServerTransport::Host => formatter.write_str("in the program that drives pal"),
        }
    }
}

/// Hides the values of variables and headers, which often hold keys.
impl fmt::Debug for ServerTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = match self {
            ServerTransport::Stdio { variables, .. } => variables.keys().collect(),
            ServerTransport::Http { headers, .. } => headers.keys().collect(),
            ServerTransport::Host => Vec::new(),
        };
        formatter
            .debug_struct("ServerTransport")
            .field("to", &self.to_string())
            .field("with", &names)
            .finish()
    }
}

/// Parsed configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParsedConfig {
    /// Servers, by name.
    pub servers: Vec<McpServerConfig>,
    /// Unknown keys, which are ignored.
    pub warnings: Vec<String>,
}

/// Invalid server configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {}{what}", path(server.as_deref(), key.as_deref()))]
pub struct McpConfigError {
    /// File or flag.
    pub place: String,
    /// Server concerned, if any.
    pub server: Option<String>,
    /// Key concerned, if any.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
}

fn path(server: Option<&str>, key: Option<&str>) -> String {
    match (server, key) {
        (Some(server), Some(key)) => format!("server `{server}`, `{key}`: "),
        (Some(server), None) => format!("server `{server}`: "),
        (None, Some(key)) => format!("`{key}`: "),
        (None, None) => String::new(),
    }
}

/// Parses a file: `{"mcpServers": {name: {…}}}`. `environment` looks up variables.
pub fn parse_file(
    text: &str,
    place: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ParsedConfig, McpConfigError> {
    let config_error = |key: Option<&str>, what: String| McpConfigError {
        place: place.to_owned(),
        server: None,
        key: key.map(str::to_owned),
        what,
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| config_error(None, format!("not valid JSON: {error}")))?;
    match value.get("mcpServers") {
        Some(servers) => parse_servers(servers, place, environment),
        None => Err(config_error(
            Some("mcpServers"),
            String::from("it is missing; it maps server names to servers"),
        )),
    }
}

/// Parses servers by name: `{name: {…}}`.
pub fn parse_servers(
    servers: &Value,
    place: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ParsedConfig, McpConfigError> {
    let Some(servers) = servers.as_object() else {
        return Err(McpConfigError {
            place: place.to_owned(),
            server: None,
            key: None,
            what: String::from("expected an object of servers by name"),
        });
    };
    let mut parsed = ParsedConfig::default();
    for (name, value) in servers {
        let parser = ServerParser { place, server: name, environment };
        parser.check_name()?;
        let Some(fields) = value.as_object() else {
            return Err(parser.error(None, "expected an object"));
        };
        if parser.flag(fields, "disabled")? {
            continue;
        }
        parsed.warnings.extend(parser.unknown(fields));
        parsed.servers.push(parser.server(fields)?);
    }
    parsed.servers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(parsed)
}

const KNOWN: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "disabled",
    "timeout",
    "startup_timeout",
    // For people, and for other programs that read the same file.
    "description",
    "name",
    "autoApprove",
    "alwaysAllow",
    "alwaysLoad",
];

/// Parser of one server.
struct ServerParser<'a> {
    place: &'a str,
    server: &'a str,
    environment: VariableLookup<'a>,
}

impl ServerParser<'_> {
    fn error(&self, key: Option<&str>, what: impl Into<String>) -> McpConfigError {
        McpConfigError {
            place: self.place.to_owned(),
            server: Some(self.server.to_owned()),
            key: key.map(str::to_owned),
            what: what.into(),
        }
    }

    /// Checks the name. Rules write tools as `mcp__server__tool`, so a name must not contain the separator.
    fn check_name(&self) -> Result<(), McpConfigError> {
        let name = self.server;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. /@:".contains(letter);
        if name.trim().is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
            let what = format!(
                "its name must have 1 to {NAME_MAX} letters, digits, dashes, underscores, dots, slashes, colons or spaces"
            );
            return Err(self.error(None, what));
        }
        if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            let what =
                "its name may not begin or end with `_` or hold `__`, which parts server and tool in rules";
            return Err(self.error(None, what));
        }
        Ok(())
    }

    fn unknown(&self, fields: &Map<String, Value>) -> Vec<String> {
        let unknown = fields.keys().filter(|key| !KNOWN.contains(&key.as_str()));
        unknown
            .map(|key| format!("{}: server `{}`: unknown key `{key}` is ignored", self.place, self.server))
            .collect()
    }

    fn server(&self, fields: &Map<String, Value>) -> Result<McpServerConfig, McpConfigError> {
        let kind = self.text(fields, "type")?;
        let transport = match (kind.as_deref(), fields.contains_key("command"), fields.contains_key("url")) {
            (_, true, true) => {
                return Err(self.error(None, "it has both a `command` and a `url`; give only one"));
            }
            (None | Some("stdio"), true, false) => self.program(fields)?,
            (None | Some("http" | "streamable-http"), false, true) => self.address(fields, false)?,
            (Some("sse"), false, true) => self.address(fields, true)?,
            (Some("sdk"), false, false) => ServerTransport::Host,
            (None, false, false) => return Err(self.error(None, "it has neither a `command` nor a `url`")),
            (Some("stdio"), ..) => return Err(self.error(Some("command"), "it is missing")),
            (Some("http" | "streamable-http" | "sse"), ..) => {
                return Err(self.error(Some("url"), "it is missing"));
            }
            (Some(_), ..) => return Err(self.error(Some("type"), "expected `stdio`, `http`, `sse` or `sdk`")),
        };
        Ok(McpServerConfig {
            name: self.server.to_owned(),
            transport,
            start_limit: self.milliseconds(fields, "startup_timeout")?,
            call_limit: self.milliseconds(fields, "timeout")?,
            source: self.place.to_owned(),
        })
    }

    fn program(&self, fields: &Map<String, Value>) -> Result<ServerTransport, McpConfigError> {
        let command = self.text(fields, "command")?.unwrap_or_default();
        if command.trim().is_empty() {
            return Err(self.error(Some("command"), "it is empty"));
        }
        let arguments = match fields.get("args") {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.string(item, "args")).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(self.error(Some("args"), "expected a list of strings")),
        };
        let directory = self.text(fields, "cwd")?.map(PathBuf::from);
        Ok(ServerTransport::Stdio {
            command,
            arguments,
            variables: self.string_map(fields, "env")?,
            directory,
        })
    }

    fn address(
        &self,
        fields: &Map<String, Value>,
        is_event_stream: bool,
    ) -> Result<ServerTransport, McpConfigError> {
        let url = self.text(fields, "url")?.unwrap_or_default();
        let is_address = reqwest::Url::parse(&url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty())
        });
        if !is_address {
            return Err(self.error(Some("url"), "expected an address that starts with https:// or http://"));
        }
        Ok(ServerTransport::Http { url, headers: self.string_map(fields, "headers")?, is_event_stream })
    }

    fn text(&self, fields: &Map<String, Value>, key: &str) -> Result<Option<String>, McpConfigError> {
        fields.get(key).map(|value| self.string(value, key)).transpose()
    }

    fn string_map(
        &self,
        fields: &Map<String, Value>,
        key: &str,
    ) -> Result<BTreeMap<String, String>, McpConfigError> {
        match fields.get(key) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(table)) => {
                let pair = |(name, value): (&String, &Value)| {
                    Ok((name.clone(), self.string(value, &format!("{key}.{name}"))?))
                };
                table.iter().map(pair).collect()
            }
            Some(_) => Err(self.error(Some(key), "expected an object of strings")),
        }
    }

    fn string(&self, value: &Value, key: &str) -> Result<String, McpConfigError> {
        let Some(text) = value.as_str() else { return Err(self.error(Some(key), "expected a string")) };
        if text.contains('\0') {
            return Err(self.error(Some(key), "it contains a NUL byte"));
        }
        expand_variables(text, self.environment).map_err(|name| {
            let what =
                format!("the variable {name} is not set; set it, or give a default with `${{{name}:-…}}`");
            self.error(Some(key), what)
        })
    }

    fn flag(&self, fields: &Map<String, Value>, key: &str) -> Result<bool, McpConfigError> {
        match fields.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.error(Some(key), "expected true or false")),
        }
    }

    fn milliseconds(
        &self,
        fields: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Duration>, McpConfigError> {
        match fields.get(key).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(milliseconds)) if milliseconds > 0 => Ok(Some(Duration::from_millis(milliseconds))),
            Some(_) => Err(self.error(Some(key), "expected a positive number of milliseconds")),
        }
    }
}
