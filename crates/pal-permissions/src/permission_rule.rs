//! Permission rules: a tool name with an optional pattern, as written in settings.

mod command_pattern;
mod path_pattern;
mod rule_error;

use std::fmt;
use std::str::FromStr;

pub(crate) use command_pattern::{CommandPattern, PatternMatch};
pub(crate) use path_pattern::PathPattern;
pub use rule_error::RuleError;

/// Tools that read files: a rule for `Read` covers all of them.
const READERS: [&str; 5] = ["Read", "Grep", "Glob", "LS", "NotebookRead"];

/// Tools that change files: a rule for one covers all of them.
const WRITERS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// Tools that use something by its name.
const NAMERS: [&str; 2] = ["Skill", "Agent"];

/// Permission rule: a tool, or a tool and a pattern for its input.
///
/// ```
/// let rule: pal_permissions::PermissionRule = "Bash(git status:*)".parse()?;
/// assert_eq!(rule.tool(), "Bash");
/// assert_eq!(rule.to_string(), "Bash(git status:*)");
/// # Ok::<(), pal_permissions::RuleError>(())
/// ```
///
/// | rule | covers |
/// | --- | --- |
/// | `Bash` | every command |
/// | `Bash(cargo test)` | exactly this command |
/// | `Bash(git status:*)`, `Bash(npm run *)` | commands that start with these words |
/// | `Read(src/**)` | reading files with any tool or command, relative to the first root |
/// | `Edit(src/**)`, `Write(src/**)` | changing files, both equivalent |
/// | `Read(~/notes/**)`, `Read(/etc/hosts)`, `Read(//etc/hosts)` | files in the home directory; absolute paths |
/// | `WebFetch(domain:example.com)` | pages of a host; `*.example.com` for its subdomains |
/// | `mcp__server`, `mcp__server__tool` | all tools of an MCP server; one of them |
/// | `Skill(review)`, `Agent(scout)`, `Task(scout)` | a skill; a kind of agent |
#[derive(Clone, Debug)]
pub struct PermissionRule {
    text: String,
    tool: String,
    pattern: Option<RulePattern>,
}

/// Pattern in the parentheses of a rule.
#[derive(Clone, Debug)]
pub(crate) enum RulePattern {
    Command(CommandPattern),
    Path(Box<PathPattern>),
    Domain(String),
    /// Name of a skill or a kind of agent; `*` at the end stands for any rest.
    Name(String),
}

impl PermissionRule {
    /// Tool name of the rule.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            Some(RulePattern::Command(pattern)) => Some(pattern),
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> Option<&PathPattern> {
        match &self.pattern {
            Some(RulePattern::Path(pattern)) => Some(pattern),
            _ => None,
        }
    }

    /// Returns whether it has no pattern.
    pub(crate) fn is_bare(&self) -> bool {
        self.pattern.is_none()
    }

    /// Returns whether it covers reading files with this tool.
    pub(crate) fn is_about_reading(&self, tool: &str) -> bool {
        self.tool == "Read" || (READERS.contains(&self.tool.as_str()) && self.tool == tool)
    }

    /// Returns whether it covers changing files.
    pub(crate) fn is_about_writing(&self) -> bool {
        WRITERS.contains(&self.tool.as_str())
    }

    /// Returns whether it covers a whole tool, by its name or its MCP server.
    pub(crate) fn is_about_tool(&self, tool: &str) -> bool {
        if !self.is_bare() {
            return false;
        }
        let below = tool.strip_prefix(self.tool.as_str());
        let is_server = self.tool.starts_with("mcp__") && !self.tool["mcp__".len()..].contains("__");
        below.is_some_and(|rest| rest.is_empty() || (is_server && rest.starts_with("__")))
    }

    /// Returns whether it covers a skill or a kind of agent. A strict rule ignores case.
    pub(crate) fn is_about_name(&self, tool: &str, name: &str, is_strict: bool) -> bool {
        let Some(RulePattern::Name(pattern)) = &self.pattern else { return false };
        let fold = |text: &str| if is_strict { text.to_lowercase() } else { text.to_owned() };
        let (pattern, name) = (fold(pattern), fold(name.trim()));
        let is_it = match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start.strip_suffix(':').unwrap_or(start)),
            None => name == pattern,
        };
        self.tool == tool && is_it
    }

    /// Returns whether it covers pages of a host. A strict rule covers all subdomains, too.
    pub(crate) fn is_about_host(&self, host: &str, is_strict: bool) -> bool {
        match &self.pattern {
            _ if self.tool != "WebFetch" => false,
            None => true,
            Some(RulePattern::Domain(domain)) => {
                let name = domain.strip_prefix("*.").unwrap_or(domain);
                let is_below = host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
                if domain.starts_with("*.") { is_below } else { host == name || (is_strict && is_below) }
            }
            Some(_) => false,
        }
    }
}

impl PartialEq for PermissionRule {
    fn eq(&self, other: &PermissionRule) -> bool {
        self.text == other.text
    }
}

impl Eq for PermissionRule {}

impl fmt::Display for PermissionRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for PermissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<PermissionRule, RuleError> {
        let text = crate::shell::trimmed(text);
        let (tool, inside) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let inside = rest.strip_suffix(')').ok_or_else(|| RuleError::open(text))?;
                (tool, Some(inside))
            }
        };
        let tool = tool.strip_suffix("__*").filter(|tool| tool.starts_with("mcp__")).unwrap_or(tool);
        let is_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(RuleError::name(text));
        }
        // Claude Code's older name of the tool that starts agents.
        let tool = if tool == "Task" { "Agent" } else { tool };
        let pattern = inside.map(|inside| pattern(text, tool, inside)).transpose()?.flatten();
        Ok(PermissionRule { text: String::from(text), tool: String::from(tool), pattern })
    }
}

/// Parses the text in the parentheses; `None` if it matches everything.
fn pattern(text: &str, tool: &str, inside: &str) -> Result<Option<RulePattern>, RuleError> {
    if crate::shell::trimmed(inside).is_empty() {
        return Err(RuleError::empty(text));
    }
    if tool == "Bash" {
        return match inside {
            "*" => Ok(None),
            _ => CommandPattern::parse(text, inside).map(|pattern| Some(RulePattern::Command(pattern))),
        };
    }
    if READERS.contains(&tool) || WRITERS.contains(&tool) {
        return PathPattern::parse(text, inside.trim())
            .map(|pattern| Some(RulePattern::Path(Box::new(pattern))));
    }
    if NAMERS.contains(&tool) {
        return match inside.trim() {
            "*" => Ok(None),
            name => Ok(Some(RulePattern::Name(name.to_owned()))),
        };
    }
    if tool != "WebFetch" {
        return Err(RuleError::takes_none(text, tool));
    }
    let domain =
        inside.trim().strip_prefix("domain:").map(|domain| domain.trim_end_matches('.').to_lowercase());
    let name = domain.as_deref().map(|domain| domain.strip_prefix("*.").unwrap_or(domain));
    let is_host = |character: char| character.is_alphanumeric() || "-.:[]".contains(character);
    match name {
        Some(name) if !name.is_empty() && name.chars().all(is_host) => Ok(domain.map(RulePattern::Domain)),
        _ => Err(RuleError::domain(text)),
    }
}
