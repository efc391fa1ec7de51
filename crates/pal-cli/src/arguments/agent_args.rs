//! Arguments of the agent itself: `pal` and `pal -p`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pal_settings::FlagSetting;
use serde_json::{Value, json};

use super::number_parsers::at_least_one;
use super::{CompatibilityArgs, ProviderArg};
use crate::failure::Failure;
use crate::notices::print_notice;

/// A prompt for the agent, and how to run it.
#[derive(Args, Clone)]
pub(crate) struct AgentArgs {
    /// Prompt for the agent, one or more words; piped input is appended to it
    #[arg(value_name = "PROMPT")]
    pub(crate) words: Vec<String>,
    /// The words of the prompt as one text.
    #[arg(skip)]
    pub(crate) prompt: Option<String>,
    /// Run without questions, print the answer and exit
    #[arg(short = 'p', long = "print", help_heading = "Agent")]
    pub(crate) is_print: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Read and write line by line without redrawing the screen, for screen readers
    #[arg(long, conflicts_with = "is_print", help_heading = "Agent")]
    pub(crate) plain: bool,

    /// Work as a teammate of the session that writes to standard input
    #[arg(long = "teammate", hide = true)]
    pub(crate) is_teammate: bool,

    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    #[command(flatten)]
    pub(crate) compatibility: CompatibilityArgs,
}

/// Formats of input and output.
#[derive(Args, Clone)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Agent")]
    pub(crate) output_format: OutputFormat,
    /// Format of standard input
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = "Agent")]
    pub(crate) input_format: InputFormat,
    /// Stream answers as they arrive (with stream-json)
    #[arg(long, help_heading = "Agent")]
    pub(crate) include_partial_messages: bool,
    /// Print prompts as they are recorded to a program that drives pal, too (with stream-json)
    #[arg(long, help_heading = "Agent")]
    pub(crate) replay_user_messages: bool,
    /// End with an object that fits this JSON Schema; it is `structured_output` in JSON output
    #[arg(long, value_name = "SCHEMA", help_heading = "Agent")]
    pub(crate) json_schema: Option<String>,
    /// Exit with 4 if a tool call was denied
    #[arg(long, help_heading = "Agent")]
    pub(crate) strict: bool,
    /// Print tool calls and notices even if standard error is not a terminal
    #[arg(long, help_heading = "Agent")]
    pub(crate) verbose: bool,
}

/// The session to start or continue.
#[derive(Args, Clone)]
pub(crate) struct SessionArgs {
    /// Continue the newest session of this directory, else of this project
    #[arg(short = 'c', long = "continue", conflicts_with = "resume", help_heading = "Session")]
    pub(crate) is_continued: bool,
    /// Continue this session: its id or the start of it; without an id, choose from a list
    #[arg(short = 'r', long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Session")]
    pub(crate) resume: Option<String>,
    /// Continue in a new session, in the current directory, and leave the old one unchanged
    #[arg(long, help_heading = "Session")]
    pub(crate) fork_session: bool,
    /// Work in this directory, as if pal was started there; other relative paths are relative to it
    #[arg(long = "cd", value_name = "DIR", help_heading = "Session")]
    pub(crate) directory: Option<PathBuf>,
    /// Id of the new session: a UUID
    #[arg(long, value_name = "UUID", value_parser = session_id, help_heading = "Session")]
    pub(crate) session_id: Option<String>,
}

/// The model and its system prompt.
#[derive(Args, Clone)]
pub(crate) struct ModelArgs {
    /// Model (default: the session's own, else the one in the settings)
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Provider (default: the one that offers the model)
    #[arg(long, value_enum, help_heading = "Model")]
    pub(crate) provider: Option<ProviderArg>,
    /// Replace the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) system_prompt: Option<String>,
    /// Append to the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) append_system_prompt: Option<String>,
}

/// Limits after which the agent stops.
#[derive(Args, Clone)]
pub(crate) struct LimitArgs {
    /// Stop after N turns
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Limits")]
    pub(crate) max_turns: Option<u64>,
    /// Stop after spending this many US dollars
    #[arg(long, value_name = "USD", alias = "max-budget-usd", value_parser = dollars, help_heading = "Limits")]
    pub(crate) max_cost_usd: Option<f64>,
    /// Stop after N tokens, input and output together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens_total: Option<u64>,
}

/// Permissions of tool calls.
#[derive(Args, Clone)]
pub(crate) struct PermissionArgs {
    /// Let tools work in this directory, too; may be repeated
    #[arg(long = "add-dir", value_name = "DIR", help_heading = "Permissions")]
    pub(crate) added: Vec<PathBuf>,
    /// Allow these tool calls: `Read`, `Bash(git status:*)`; separate rules with commas; may be repeated
    #[arg(long, value_name = "RULES", alias = "allowedTools", help_heading = "Permissions")]
    pub(crate) allowed_tools: Vec<String>,
    /// Deny these tool calls; deny rules win over all others
    #[arg(long, value_name = "RULES", alias = "disallowedTools", help_heading = "Permissions")]
    pub(crate) disallowed_tools: Vec<String>,
    /// Permission mode (default: the one in the settings)
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Permissions")]
    pub(crate) permission_mode: Option<PermissionModeArg>,
    /// Ask this tool of an MCP server for permission, as in mcp__server__tool; `stdio` asks the program that drives pal
    #[arg(long, value_name = "TOOL", help_heading = "Permissions")]
    pub(crate) permission_prompt_tool: Option<String>,
    /// Run shell commands without the sandbox
    #[arg(long, help_heading = "Permissions")]
    pub(crate) no_sandbox: bool,
}

/// Configuration that is found in the project.
#[derive(Args, Clone)]
pub(crate) struct ProjectArgs {
    /// Start these MCP servers, too: a file like .mcp.json, or JSON; may be repeated
    #[arg(long, value_name = "FILE-OR-JSON", help_heading = "Project")]
    pub(crate) mcp_config: Vec<String>,
    /// Start only the MCP servers of --mcp-config
    #[arg(long, help_heading = "Project")]
    pub(crate) strict_mcp_config: bool,
    /// Ignore instruction files, hooks, skills and MCP servers of the project and the user
    #[arg(long, help_heading = "Project")]
    pub(crate) bare: bool,
}

/// Output of `pal -p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer
    Text,
    /// One JSON object with the answer, its cost and denied calls
    Json,
    /// One JSON object per line for every event (docs/stream-json.md)
    StreamJson,
}

/// Input of `pal -p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum InputFormat {
    /// Text that is appended to the prompt
    Text,
    /// One JSON object per line: prompts, steering and interrupts, until the input closes
    StreamJson,
}

/// Permission mode on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PermissionModeArg {
    /// Allow reading; everything else needs a rule
    Default,
    /// Allow reading, and editing inside the workspace
    #[value(alias = "acceptEdits")]
    AcceptEdits,
    /// Allow reading only, until you accept a plan
    Plan,
    /// Allow everything that no rule denies, in the sandbox
    #[value(alias = "bypassPermissions")]
    Bypass,
}

impl PermissionModeArg {
    /// Name in settings and in output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PermissionModeArg::Default => "default",
            PermissionModeArg::AcceptEdits => "accept-edits",
            PermissionModeArg::Plan => "plan",
            PermissionModeArg::Bypass => "bypass",
        }
    }
}

impl AgentArgs {
    /// Joins the words of the prompt.
    pub(crate) fn join_prompt(&mut self) {
        self.prompt = (!self.words.is_empty()).then(|| self.words.join(" "));
    }

    /// Reads the files of system prompts.
    pub(crate) fn read_prompt_files(&mut self) -> Result<(), Failure> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidData => {
                    Failure::usage_error(format!("{}: it is not text", path.display()), "give a text file")
                }
                _ => Failure::of_file(path, &error),
            })
        };
        if let Some(path) = &self.compatibility.system_prompt_file {
            self.model.system_prompt = Some(read(path)?);
        }
        if let Some(path) = &self.compatibility.append_system_prompt_file {
            self.model.append_system_prompt = Some(read(path)?);
        }
        Ok(())
    }

    /// Settings that flags give. They override settings files except the managed one.
    pub(crate) fn settings(&self) -> Vec<FlagSetting> {
        let set = |flag: &str, key: &'static str, value: Option<Value>| {
            value.map(|value| FlagSetting { flag: flag.to_owned(), key, value })
        };
        let (limits, permissions) = (&self.limits, &self.permissions);
        let compatibility = &self.compatibility;
        let mode = permissions.permission_mode.map(|mode| json!(mode.name()));
        let is_bypass = compatibility.dangerously_skip_permissions;
        let effort = compatibility.effort.map(|effort| json!(effort.name()));
        let log = compatibility.debug.as_ref().map(|filter| json!(filter));
        let home = pal_store::home_from_environment();
        let log_file =
            home.filter(|_| log.is_some() && !self.is_print).map(|home| json!(home.join("debug.log")));
        let all = [
            set("--dangerously-skip-permissions", "permissions.mode", is_bypass.then(|| json!("bypass"))),
            set("--effort", "effort", effort),
            set("--debug", "log", log),
            set("--debug", "log_file", log_file),
            set("--max-turns", "max_turns", limits.max_turns.map(|most| json!(most))),
            set("--max-cost-usd", "max_cost_usd", limits.max_cost_usd.map(|most| json!(most))),
            set("--max-tokens-total", "max_tokens_total", limits.max_tokens_total.map(|most| json!(most))),
            set("--permission-mode", "permissions.mode", mode),
            set("--no-sandbox", "sandbox", permissions.no_sandbox.then(|| json!("off"))),
        ];
        all.into_iter().flatten().collect()
    }

    /// Options as a program means them that drives pal through standard input: there is no terminal, and a continued session
    /// keeps its system prompt.
    pub(crate) fn for_stream_input(mut self) -> AgentArgs {
        if self.output.input_format == InputFormat::StreamJson {
            self.is_print = true;
            if self.session.is_continued || self.session.resume.is_some() {
                self.model.leave_out_system_prompts();
            }
        }
        self
    }

    /// Finds options that contradict each other: the problem and the next step.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let (output, session) = (&self.output, &self.session);
        let is_stream = output.output_format == OutputFormat::StreamJson;
        let reads_stream = output.input_format == InputFormat::StreamJson;
        if output.include_partial_messages && !is_stream {
            Some((
                "--include-partial-messages works only with --output-format stream-json",
                "add --output-format stream-json",
            ))
        } else if let Some(tool) = self.permissions.permission_prompt_tool.as_deref()
            && tool != "stdio"
            && !tool.starts_with("mcp__")
        {
            Some((
                "--permission-prompt-tool needs a tool of an MCP server, or stdio",
                "give its name as in mcp__server__tool; `/mcp` lists the servers and their tools",
            ))
        } else if self.permissions.permission_prompt_tool.as_deref() == Some("stdio") && !reads_stream {
            Some((
                "--permission-prompt-tool stdio needs a program that answers on standard input",
                "add --input-format stream-json --output-format stream-json",
            ))
        } else if output.strict && !self.is_print {
            Some(("--strict works only with --print: it is about the exit code", "add -p"))
        } else if output.json_schema.is_some() && !self.is_print {
            Some(("--json-schema works only with --print", "add -p"))
        } else if reads_stream && !is_stream {
            Some((
                "--input-format stream-json needs an output format for many answers",
                "add --output-format stream-json",
            ))
        } else if reads_stream && self.prompt.is_some() {
            Some((
                "a prompt cannot be combined with --input-format stream-json: prompts come as lines",
                "send the prompt as the first line of standard input",
            ))
        } else if self.is_print && session.resume.as_deref() == Some("") {
            Some(("--resume needs a session id with --print", "`pal sessions` lists sessions"))
        } else if session.fork_session && !session.is_continued && session.resume.is_none() {
            Some(("--fork-session needs a session to continue", "add --continue or --resume ID"))
        } else if session.session_id.is_some()
            && (session.is_continued || session.resume.is_some())
            && !session.fork_session
        {
            Some((
                "--session-id names a new session, but --continue and --resume continue an old one",
                "add --fork-session",
            ))
        } else if (self.model.system_prompt.is_some() || self.model.append_system_prompt.is_some())
            && !reads_stream
            && (session.is_continued || session.resume.is_some())
        {
            Some((
                "--system-prompt and --append-system-prompt apply to new sessions: a continued session keeps its own, which is \
                 cached",
                "leave them out, or start a new session",
            ))
        } else {
            None
        }
    }
}

impl ModelArgs {
    /// Leaves out prompts that only a new session takes, and says so. Programs send empty ones for none.
    pub(crate) fn leave_out_system_prompts(&mut self) {
        let prompts = [self.system_prompt.take(), self.append_system_prompt.take()];
        if prompts.into_iter().flatten().any(|prompt| !prompt.trim().is_empty()) {
            print_notice(
                "the system prompt of this request is not used: a continued session keeps its own, which is cached",
            );
        }
    }
}

impl PermissionArgs {
    /// Allow rules, one each.
    pub(crate) fn allowed(&self) -> Vec<String> {
        self.allowed_tools.iter().flat_map(|rules| split_rules(rules)).collect()
    }

    /// Deny rules, one each.
    pub(crate) fn disallowed(&self) -> Vec<String> {
        self.disallowed_tools.iter().flat_map(|rules| split_rules(rules)).collect()
    }
}

/// Splits a list of rules at commas and spaces outside of parentheses.
pub(crate) fn split_rules(list: &str) -> Vec<String> {
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
        _ => Err("expected an amount above 0, such as 2.50"),
    }
}

fn session_id(text: &str) -> Result<String, String> {
    let id: Result<pal_model::EntryId, _> = text.parse();
    id.map(|id| id.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::arguments::{CliArgs, CliCommand};

    fn parsed(arguments: &[&str]) -> CliArgs {
        CliArgs::try_parse_from([&["pal"], arguments].concat()).unwrap().with_prompt()
    }

    #[test]
    fn a_prompt_may_be_anywhere_and_may_equal_a_command() {
        for arguments in [
            &["-p", "cost"][..],
            &["-p", "--output-format", "json", "cost"],
            &["-p", "--allowed-tools", "Read", "cost"],
            &["--print", "--", "cost"],
        ] {
            let parsed = parsed(arguments);
            assert!(parsed.command.is_none() && parsed.agent.is_print, "{arguments:?}");
            assert_eq!(parsed.agent.prompt.as_deref(), Some("cost"), "{arguments:?}");
        }
        assert!(matches!(parsed(&["cost"]).command, Some(CliCommand::Cost(_))));
        assert!(parsed(&["-p"]).agent.prompt.is_none());
        let unquoted = parsed(&["-p", "show", "me", "the", "cost", "--verbose"]);
        assert!(unquoted.command.is_none() && unquoted.agent.output.verbose);
        assert_eq!(unquoted.agent.prompt.as_deref(), Some("show me the cost"));
    }

    #[test]
    fn rules_are_split_outside_of_parentheses() {
        let agent = parsed(&[
            "-p",
            "--allowedTools",
            "Read,Edit(src/**) Bash(git log --format=%h, -n 5:*)",
            "--allowed-tools",
            "Grep",
        ])
        .agent;
        assert_eq!(
            agent.permissions.allowed(),
            ["Read", "Edit(src/**)", "Bash(git log --format=%h, -n 5:*)", "Grep"]
        );
        assert!(agent.permissions.disallowed().is_empty());
    }

    #[test]
    fn contradicting_options_are_named() {
        let wrong = |arguments: &[&str]| parsed(arguments).agent.contradiction().map(|(what, _)| what);
        for (arguments, word) in [
            (&["-p", "--include-partial-messages"][..], "--include-partial-messages"),
            (&["-p", "--input-format", "stream-json"], "many answers"),
            (
                &["-p", "x", "--input-format=stream-json", "--output-format=stream-json"],
                "prompts come as lines",
            ),
            (&["-p", "--fork-session"], "--fork-session"),
            (&["-p", "--permission-prompt-tool", "Bash"], "--permission-prompt-tool"),
            (&["-p", "--permission-prompt-tool", "stdio"], "standard input"),
            (&["--json-schema", "{}"], "--json-schema"),
            (&["--strict"], "--strict"),
            (&["-p", "--resume"], "--resume"),
            (&["-p", "-c", "--system-prompt", "x"], "--system-prompt"),
            (&["--resume", "--append-system-prompt", "x"], "--append-system-prompt"),
            (&["-p", "-r", "01", "--fork-session", "--append-system-prompt", "x"], "--append-system-prompt"),
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
            assert!(CliArgs::try_parse_from([&["pal"], wrong].concat()).is_err(), "{wrong:?}");
        }
        let mode = parsed(&["-p", "--permission-mode", "acceptEdits"]).agent.permissions.permission_mode;
        assert_eq!(mode.map(|mode| mode.name()), Some("accept-edits"));
    }
}
