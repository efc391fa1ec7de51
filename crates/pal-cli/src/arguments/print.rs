//! What is typed to let the agent work, without a subcommand: `pal -p …`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pal_settings::Flag;
use serde_json::{Value, json};

use super::ProviderName;

/// What the agent shall do, and within which limits.
#[derive(Args, Clone)]
pub(crate) struct Print {
    /// What the agent shall do; what is piped in follows it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Work without asking anything, print the answer, and end
    #[arg(short = 'p', long = "print", help_heading = "Agent")]
    pub(crate) is_print: bool,
    /// How what happens is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Agent")]
    pub(crate) output_format: OutputFormat,
    /// What standard input holds
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Agent")]
    pub(crate) input_format: InputFormat,
    /// Print an answer while it grows, too (with stream-json)
    #[arg(long, help_heading = "Agent")]
    pub(crate) include_partial_messages: bool,
    /// Tell what tools do, even if nobody looks at a terminal
    #[arg(long, help_heading = "Agent")]
    pub(crate) verbose: bool,

    /// Talk line by line, without drawing anything anew: for screen readers
    #[arg(long, conflicts_with = "is_print", help_heading = "Agent")]
    pub(crate) plain: bool,

    /// Work as a teammate of the session that writes to standard input
    #[arg(long = "teammate", hide = true)]
    pub(crate) is_teammate: bool,

    /// Go on with the newest session of this project
    #[arg(short = 'c', long = "continue", conflicts_with = "resume", help_heading = "Session")]
    pub(crate) is_continued: bool,
    /// Go on with this session: its id or the beginning of it; without one, a list to choose from
    #[arg(short = 'r', long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Session")]
    pub(crate) resume: Option<String>,
    /// Go on in a new session and leave the old one as it is
    #[arg(long, help_heading = "Session")]
    pub(crate) fork_session: bool,
    /// Give the new session this id: a UUID
    #[arg(long, value_name = "UUID", value_parser = session_id, help_heading = "Session")]
    pub(crate) session_id: Option<String>,

    /// Ask this model (default: the session's own, else the one in the settings)
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Whom to ask (default: whoever offers the model)
    #[arg(long, value_enum, help_heading = "Model")]
    pub(crate) provider: Option<ProviderName>,
    /// Say this to the model instead of our own system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) system_prompt: Option<String>,
    /// Say this to the model behind the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) append_system_prompt: Option<String>,

    /// End after so many answers of the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_turns: Option<u64>,
    /// End once this much was spent, in US dollars
    #[arg(long, value_name = "USD", alias = "max-budget-usd", value_parser = dollars, help_heading = "Limits")]
    pub(crate) max_cost_usd: Option<f64>,
    /// End once so many tokens were used, prompts and answers together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens_total: Option<u64>,

    /// Let tools work in this directory, too; may be repeated
    #[arg(long = "add-dir", value_name = "DIR", help_heading = "Permissions")]
    pub(crate) added: Vec<PathBuf>,
    /// Allow these calls: 'Read' or 'Bash(git status:*)', several with commas between them; may be repeated
    #[arg(long, value_name = "RULES", alias = "allowedTools", help_heading = "Permissions")]
    pub(crate) allowed_tools: Vec<String>,
    /// Refuse these calls, whatever else allows them
    #[arg(long, value_name = "RULES", alias = "disallowedTools", help_heading = "Permissions")]
    pub(crate) disallowed_tools: Vec<String>,
    /// What is allowed without a rule (default: what the settings say)
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Permissions")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// Run shell commands without the sandbox
    #[arg(long, help_heading = "Permissions")]
    pub(crate) no_sandbox: bool,

    /// Start these MCP servers, too: a file like .mcp.json, or JSON itself; may be repeated
    #[arg(long, value_name = "FILE-OR-JSON", help_heading = "Surroundings")]
    pub(crate) mcp_config: Vec<String>,
    /// Start no other MCP servers than those of --mcp-config
    #[arg(long, help_heading = "Surroundings")]
    pub(crate) strict_mcp_config: bool,
    /// Start without instruction files, hooks, skills and MCP servers that are found around the session
    #[arg(long, help_heading = "Surroundings")]
    pub(crate) bare: bool,
}

/// How what happens is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer
    Text,
    /// One JSON object with the answer, its cost and what was refused
    Json,
    /// One JSON object a line for everything that happens (docs/stream-json.md)
    StreamJson,
}

/// What standard input holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum InputFormat {
    /// More of the prompt
    Text,
    /// One JSON object a line: prompts, steering and interrupts, as long as it is open
    StreamJson,
}

/// What is allowed without a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PermissionMode {
    /// Reading; everything else wants a rule
    Default,
    /// Reading, and editing inside of the workspace
    #[value(alias = "acceptEdits")]
    AcceptEdits,
    /// Reading only, until a plan is accepted
    Plan,
    /// Everything that no rule denies, in the sandbox
    #[value(alias = "bypassPermissions")]
    Bypass,
}

impl PermissionMode {
    /// Its name in settings and in the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "accept-edits",
            PermissionMode::Plan => "plan",
            PermissionMode::Bypass => "bypass",
        }
    }
}

impl Print {
    /// What flags set, so that they count as any other place does: more than files, less than the managed one.
    pub(crate) fn settings(&self) -> Vec<Flag> {
        let set = |flag: &str, key: &'static str, value: Option<Value>| {
            value.map(|value| Flag { flag: flag.to_owned(), key, value })
        };
        let mode = self.permission_mode.map(|mode| json!(mode.name()));
        let all = [
            set("--max-turns", "max_turns", self.max_turns.map(|most| json!(most))),
            set("--max-cost-usd", "max_cost_usd", self.max_cost_usd.map(|most| json!(most))),
            set("--max-tokens-total", "max_tokens_total", self.max_tokens_total.map(|most| json!(most))),
            set("--permission-mode", "permissions.mode", mode),
            set("--no-sandbox", "sandbox", self.no_sandbox.then(|| json!("off"))),
        ];
        all.into_iter().flatten().collect()
    }

    /// The calls that are allowed, rule by rule.
    pub(crate) fn allowed(&self) -> Vec<String> {
        self.allowed_tools.iter().flat_map(|rules| rules_of(rules)).collect()
    }

    /// The calls that are refused, rule by rule.
    pub(crate) fn disallowed(&self) -> Vec<String> {
        self.disallowed_tools.iter().flat_map(|rules| rules_of(rules)).collect()
    }

    /// What is wrong with flags that do not go together, in one sentence, and what to do.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let is_stream = self.output_format == OutputFormat::StreamJson;
        let reads_stream = self.input_format == InputFormat::StreamJson;
        if self.include_partial_messages && !is_stream {
            Some((
                "--include-partial-messages is for --output-format stream-json",
                "add --output-format stream-json",
            ))
        } else if reads_stream && !is_stream {
            Some((
                "--input-format stream-json wants an output for many answers",
                "add --output-format stream-json",
            ))
        } else if reads_stream && self.prompt.is_some() {
            Some((
                "a prompt and --input-format stream-json do not go together: prompts come as lines",
                "send the prompt as the first line of standard input",
            ))
        } else if self.is_print && self.resume.as_deref() == Some("") {
            Some((
                "--resume wants a session where nobody can choose one",
                "name it: `pal sessions` lists them",
            ))
        } else if self.fork_session && !self.is_continued && self.resume.is_none() {
            Some(("--fork-session wants a session to go on from", "add --continue or --resume ID"))
        } else if self.session_id.is_some()
            && (self.is_continued || self.resume.is_some())
            && !self.fork_session
        {
            Some((
                "--session-id is for a new session, and this one goes on with an old one",
                "add --fork-session",
            ))
        } else {
            None
        }
    }
}

/// The rules of a list: commas and spaces part them, but not those inside of parentheses.
fn rules_of(list: &str) -> Vec<String> {
    let mut rules = Vec::new();
    let (mut rule, mut depth) = (String::new(), 0_usize);
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (character == ',' || character.is_whitespace()) {
            rules.push(std::mem::take(&mut rule));
        } else {
            rule.push(character);
        }
    }
    rules.push(rule);
    rules.retain(|rule| !rule.is_empty());
    rules
}

fn dollars(text: &str) -> Result<f64, &'static str> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(dollars) if dollars > 0.0 && dollars.is_finite() => Ok(dollars),
        _ => Err("it wants an amount above 0, such as 2.50"),
    }
}

fn session_id(text: &str) -> Result<String, String> {
    let id: Result<pal_model::EntryId, _> = text.parse();
    id.map(|id| id.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::arguments::{Arguments, Command};

    fn parsed(arguments: &[&str]) -> Arguments {
        Arguments::try_parse_from([&["pal"], arguments].concat()).unwrap()
    }

    #[test]
    fn a_prompt_may_stand_anywhere_and_may_be_called_like_a_command() {
        for arguments in [
            &["-p", "cost"][..],
            &["-p", "--output-format", "json", "cost"],
            &["-p", "--allowed-tools", "Read", "cost"],
            &["--print", "--", "cost"],
        ] {
            let parsed = parsed(arguments);
            assert!(parsed.command.is_none() && parsed.print.is_print, "{arguments:?}");
            assert_eq!(parsed.print.prompt.as_deref(), Some("cost"), "{arguments:?}");
        }
        assert!(matches!(parsed(&["cost"]).command, Some(Command::Cost(_))));
        assert!(parsed(&["-p"]).print.prompt.is_none());
        assert!(Arguments::try_parse_from(["pal", "-p", "one", "two"]).is_err(), "words want quotes");
    }

    #[test]
    fn rules_are_parted_outside_of_parentheses() {
        let print = parsed(&[
            "-p",
            "--allowedTools",
            "Read,Edit(src/**) Bash(git log --format=%h, -n 5:*)",
            "--allowed-tools",
            "Grep",
        ])
        .print;
        assert_eq!(print.allowed(), ["Read", "Edit(src/**)", "Bash(git log --format=%h, -n 5:*)", "Grep"]);
        assert!(print.disallowed().is_empty());
    }

    #[test]
    fn flags_that_do_not_go_together_are_named() {
        let wrong = |arguments: &[&str]| parsed(arguments).print.contradiction().map(|(what, _)| what);
        for (arguments, word) in [
            (&["-p", "--include-partial-messages"][..], "--include-partial-messages"),
            (&["-p", "--input-format", "stream-json"], "many answers"),
            (
                &["-p", "x", "--input-format=stream-json", "--output-format=stream-json"],
                "prompts come as lines",
            ),
            (&["-p", "--fork-session"], "--fork-session"),
            (&["-p", "--resume"], "--resume"),
            (&["-p", "-c", "--session-id", "01890000-0000-7000-8000-000000000001"], "--session-id"),
        ] {
            assert!(wrong(arguments).is_some_and(|what| what.contains(word)), "{arguments:?}");
        }
        let right = ["-p", "-c", "--fork-session", "--session-id", "01890000-0000-7000-8000-000000000001"];
        assert_eq!(wrong(&right), None);
        for wrong in [
            &["-p", "-c", "-r", "0199"][..],
            &["-p", "--max-turns", "0"],
            &["-p", "--max-cost-usd", "-1"],
            &["-p", "--session-id", "mine"],
        ] {
            assert!(Arguments::try_parse_from([&["pal"], wrong].concat()).is_err(), "{wrong:?}");
        }
        assert_eq!(
            parsed(&["-p", "--permission-mode", "acceptEdits"]).print.permission_mode.map(|mode| mode.name()),
            Some("accept-edits")
        );
    }
}
