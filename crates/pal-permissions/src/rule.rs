//! Rules by tool and pattern, as they are written in settings.

mod command;
mod error;
mod path;

use std::fmt;
use std::str::FromStr;

pub(crate) use command::{CommandPattern, Match};
pub use error::RuleError;
pub(crate) use path::PathPattern;

/// Tools that look at files: a rule for `Read` is about all of them.
const READERS: [&str; 5] = ["Read", "Grep", "Glob", "LS", "NotebookRead"];

/// Tools that change files: a rule for one of them is about all of them.
const WRITERS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// A rule: a tool, or a tool and a pattern of what it is called with.
///
/// ```
/// let rule: pal_permissions::Rule = "Bash(git status:*)".parse()?;
/// assert_eq!(rule.tool(), "Bash");
/// assert_eq!(rule.to_string(), "Bash(git status:*)");
/// # Ok::<(), pal_permissions::RuleError>(())
/// ```
///
/// | rule | is about |
/// | --- | --- |
/// | `Bash` | every command |
/// | `Bash(cargo test)` | this command and nothing else |
/// | `Bash(git status:*)`, `Bash(npm run *)` | commands that begin with these words |
/// | `Read(src/**)` | looking at files, whichever tool or command does it; from the first root |
/// | `Edit(src/**)`, `Write(src/**)` | changing files, both the same |
/// | `Read(~/notes/**)`, `Read(/etc/hosts)`, `Read(//etc/hosts)` | files in the home; absolute paths |
/// | `WebFetch(domain:example.com)` | pages of a host; `*.example.com` for those below it |
/// | `mcp__server`, `mcp__server__tool` | all tools of a server; one of them |
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Option<Pattern>,
}

/// What stands in the parentheses of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Command(CommandPattern),
    Path(Box<PathPattern>),
    Domain(String),
}

impl Rule {
    /// The tool that it is about.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            Some(Pattern::Command(pattern)) => Some(pattern),
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> Option<&PathPattern> {
        match &self.pattern {
            Some(Pattern::Path(pattern)) => Some(pattern),
            _ => None,
        }
    }

    /// Whether it is about everything that its tool does.
    pub(crate) fn is_bare(&self) -> bool {
        self.pattern.is_none()
    }

    /// Whether it is about looking at files for this tool.
    pub(crate) fn is_about_reading(&self, tool: &str) -> bool {
        self.tool == "Read" || (READERS.contains(&self.tool.as_str()) && self.tool == tool)
    }

    /// Whether it is about changing files.
    pub(crate) fn is_about_writing(&self) -> bool {
        WRITERS.contains(&self.tool.as_str())
    }

    /// Whether it is about a tool as a whole, by its name or that of its server.
    pub(crate) fn is_about_tool(&self, tool: &str) -> bool {
        if !self.is_bare() {
            return false;
        }
        let below = tool.strip_prefix(self.tool.as_str());
        let is_server = self.tool.starts_with("mcp__") && !self.tool["mcp__".len()..].contains("__");
        below.is_some_and(|rest| rest.is_empty() || (is_server && rest.starts_with("__")))
    }

    /// Whether a page of a host is meant. One that denies is about all hosts below, too.
    pub(crate) fn is_about_host(&self, host: &str, is_strict: bool) -> bool {
        match &self.pattern {
            _ if self.tool != "WebFetch" => false,
            None => true,
            Some(Pattern::Domain(domain)) => {
                let name = domain.strip_prefix("*.").unwrap_or(domain);
                let is_below = host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
                if domain.starts_with("*.") { is_below } else { host == name || (is_strict && is_below) }
            }
            Some(_) => false,
        }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
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
        let pattern = inside.map(|inside| pattern(text, tool, inside)).transpose()?.flatten();
        Ok(Rule { text: String::from(text), tool: String::from(tool), pattern })
    }
}

/// Reads what stands in the parentheses; nothing if it means everything.
fn pattern(text: &str, tool: &str, inside: &str) -> Result<Option<Pattern>, RuleError> {
    if inside.trim().is_empty() {
        return Err(RuleError::empty(text));
    }
    if tool == "Bash" {
        return match inside {
            "*" => Ok(None),
            _ => CommandPattern::parse(text, inside).map(|pattern| Some(Pattern::Command(pattern))),
        };
    }
    if READERS.contains(&tool) || WRITERS.contains(&tool) {
        return PathPattern::parse(text, inside.trim()).map(|pattern| Some(Pattern::Path(Box::new(pattern))));
    }
    if tool != "WebFetch" {
        return Err(RuleError::takes_none(text, tool));
    }
    let domain =
        inside.trim().strip_prefix("domain:").map(|domain| domain.trim_end_matches('.').to_lowercase());
    let name = domain.as_deref().map(|domain| domain.strip_prefix("*.").unwrap_or(domain));
    let is_host = |character: char| character.is_alphanumeric() || "-.:[]".contains(character);
    match name {
        Some(name) if !name.is_empty() && name.chars().all(is_host) => Ok(domain.map(Pattern::Domain)),
        _ => Err(RuleError::domain(text)),
    }
}
