//! Which servers there are: the shape of `.mcp.json`, which settings and `--mcp-config` share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::expand::{Environment, expanded};

/// Most letters of a server's name.
const NAME_MOST: usize = 64;

/// A server, and how it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerConfig {
    /// Its name, under which its tools are called.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// For how long it may take to come up, if not as long as others.
    pub start_limit: Option<Duration>,
    /// For how long a call may take, if not as long as others.
    pub call_limit: Option<Duration>,
    /// The file or flag that describes it.
    pub place: String,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is a program that is started here and spoken to through its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables that it gets besides those of all servers.
        variables: BTreeMap<String, String>,
        /// Where it works, if not where the session does.
        directory: Option<PathBuf>,
    },
    /// It listens somewhere.
    Address {
        /// Where.
        url: String,
        /// What every request carries.
        headers: BTreeMap<String, String>,
        /// Whether it is said to speak the older way, which begins with an event stream.
        is_event_stream: bool,
    },
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Program { command, arguments, .. } => {
                write!(formatter, "{command}")?;
                arguments.iter().try_for_each(|argument| write!(formatter, " {argument}"))
            }
            Reach::Address { url, .. } => write!(formatter, "{url}"),
        }
    }
}

/// Variables and headers often hold keys, so that their values are shown to nobody.
impl fmt::Debug for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = match self {
            Reach::Program { variables, .. } => variables,
            Reach::Address { headers, .. } => headers,
        };
        let names: Vec<&String> = names.keys().collect();
        formatter.debug_struct("Reach").field("to", &self.to_string()).field("with", &names).finish()
    }
}

/// What a file said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parsed {
    /// The servers, by name.
    pub servers: Vec<ServerConfig>,
    /// What was not understood and does no harm.
    pub warnings: Vec<String>,
}

/// What is wrong with the description of a server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {}{what}", path(server.as_deref(), key.as_deref()))]
pub struct ConfigError {
    /// The file or flag.
    pub place: String,
    /// The server, where it is about one.
    pub server: Option<String>,
    /// The key, where it is about one.
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

/// Reads the text of a file: `{"mcpServers": {name: {…}}}`. `environment` says what variables are.
pub fn parse_file(
    text: &str,
    place: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Parsed, ConfigError> {
    let wrong = |key: Option<&str>, what: String| ConfigError {
        place: place.to_owned(),
        server: None,
        key: key.map(str::to_owned),
        what,
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| wrong(None, format!("it is no JSON: {error}")))?;
    match value.get("mcpServers") {
        Some(servers) => parse_servers(servers, place, environment),
        None => Err(wrong(Some("mcpServers"), String::from("it is missing; it holds the servers by name"))),
    }
}

/// Reads servers by name: `{name: {…}}`.
pub fn parse_servers(
    servers: &Value,
    place: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Parsed, ConfigError> {
    let Some(servers) = servers.as_object() else {
        return Err(ConfigError {
            place: place.to_owned(),
            server: None,
            key: None,
            what: String::from("servers stand in an object, by name"),
        });
    };
    let mut parsed = Parsed::default();
    for (name, value) in servers {
        let reading = Reading { place, server: name, environment };
        reading.check_name()?;
        let Some(fields) = value.as_object() else {
            return Err(reading.wrong(None, "it wants an object"));
        };
        if reading.flag(fields, "disabled")? {
            continue;
        }
        parsed.warnings.extend(reading.unknown(fields));
        parsed.servers.push(reading.server(fields)?);
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

/// One server as it is read.
struct Reading<'a> {
    place: &'a str,
    server: &'a str,
    environment: Environment<'a>,
}

impl Reading<'_> {
    fn wrong(&self, key: Option<&str>, what: impl Into<String>) -> ConfigError {
        ConfigError {
            place: self.place.to_owned(),
            server: Some(self.server.to_owned()),
            key: key.map(str::to_owned),
            what: what.into(),
        }
    }

    /// Rules name tools as `mcp__server__tool`, so a server's name holds nothing that could be taken for another part.
    fn check_name(&self) -> Result<(), ConfigError> {
        let name = self.server;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. /@".contains(letter);
        if name.trim().is_empty() || name.len() > NAME_MOST || !name.chars().all(is_plain) {
            let what = format!(
                "its name wants 1 to {NAME_MOST} letters, digits, dashes, underscores, dots, slashes or spaces"
            );
            return Err(self.wrong(None, what));
        }
        if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            let what =
                "its name may not begin or end with `_` or hold `__`, which parts server and tool in rules";
            return Err(self.wrong(None, what));
        }
        Ok(())
    }

    fn unknown(&self, fields: &Map<String, Value>) -> Vec<String> {
        let unknown = fields.keys().filter(|key| !KNOWN.contains(&key.as_str()));
        unknown
            .map(|key| format!("{}: server `{}`: `{key}` is not known and ignored", self.place, self.server))
            .collect()
    }

    fn server(&self, fields: &Map<String, Value>) -> Result<ServerConfig, ConfigError> {
        let kind = self.text(fields, "type")?;
        let reach = match (kind.as_deref(), fields.contains_key("command"), fields.contains_key("url")) {
            (_, true, true) => {
                return Err(self.wrong(None, "it has a `command` and a `url`; one of them is enough"));
            }
            (None | Some("stdio"), true, false) => self.program(fields)?,
            (None | Some("http" | "streamable-http"), false, true) => self.address(fields, false)?,
            (Some("sse"), false, true) => self.address(fields, true)?,
            (None, false, false) => return Err(self.wrong(None, "it has neither a `command` nor a `url`")),
            (Some("stdio"), ..) => return Err(self.wrong(Some("command"), "it is missing")),
            (Some("http" | "streamable-http" | "sse"), ..) => {
                return Err(self.wrong(Some("url"), "it is missing"));
            }
            (Some(_), ..) => return Err(self.wrong(Some("type"), "it wants `stdio`, `http` or `sse`")),
        };
        Ok(ServerConfig {
            name: self.server.to_owned(),
            reach,
            start_limit: self.milliseconds(fields, "startup_timeout")?,
            call_limit: self.milliseconds(fields, "timeout")?,
            place: self.place.to_owned(),
        })
    }

    fn program(&self, fields: &Map<String, Value>) -> Result<Reach, ConfigError> {
        let command = self.text(fields, "command")?.unwrap_or_default();
        if command.trim().is_empty() {
            return Err(self.wrong(Some("command"), "it is empty"));
        }
        let arguments = match fields.get("args") {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.string(item, "args")).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(self.wrong(Some("args"), "it wants a list of texts")),
        };
        let directory = self.text(fields, "cwd")?.map(PathBuf::from);
        Ok(Reach::Program { command, arguments, variables: self.table(fields, "env")?, directory })
    }

    fn address(&self, fields: &Map<String, Value>, is_event_stream: bool) -> Result<Reach, ConfigError> {
        let url = self.text(fields, "url")?.unwrap_or_default();
        let is_address = reqwest::Url::parse(&url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty())
        });
        if !is_address {
            return Err(self.wrong(Some("url"), "it wants an address that begins with https:// or http://"));
        }
        Ok(Reach::Address { url, headers: self.table(fields, "headers")?, is_event_stream })
    }

    fn text(&self, fields: &Map<String, Value>, key: &str) -> Result<Option<String>, ConfigError> {
        fields.get(key).map(|value| self.string(value, key)).transpose()
    }

    fn table(&self, fields: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, ConfigError> {
        match fields.get(key) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(table)) => {
                let pair = |(name, value): (&String, &Value)| {
                    Ok((name.clone(), self.string(value, &format!("{key}.{name}"))?))
                };
                table.iter().map(pair).collect()
            }
            Some(_) => Err(self.wrong(Some(key), "it wants an object of texts")),
        }
    }

    fn string(&self, value: &Value, key: &str) -> Result<String, ConfigError> {
        let Some(text) = value.as_str() else { return Err(self.wrong(Some(key), "it wants a text")) };
        if text.contains('\0') {
            return Err(self.wrong(Some(key), "it holds a zero byte"));
        }
        expanded(text, self.environment).map_err(|name| {
            let what = format!("the variable {name} is not set; `${{{name}:-…}}` says what holds without it");
            self.wrong(Some(key), what)
        })
    }

    fn flag(&self, fields: &Map<String, Value>, key: &str) -> Result<bool, ConfigError> {
        match fields.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(Some(key), "it wants true or false")),
        }
    }

    fn milliseconds(&self, fields: &Map<String, Value>, key: &str) -> Result<Option<Duration>, ConfigError> {
        match fields.get(key).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(milliseconds)) if milliseconds > 0 => Ok(Some(Duration::from_millis(milliseconds))),
            Some(_) => Err(self.wrong(Some(key), "it wants a number of milliseconds")),
        }
    }
}
