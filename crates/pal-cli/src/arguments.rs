//! Command-line arguments as the user typed them.

mod acp;
mod agent_args;
mod agents;
mod ask;
mod compaction;
mod compatibility;
mod config;
mod context;
mod demo;
mod dream;
mod gc;
mod help;
mod inspection;
mod ledger;
mod login;
mod mcp;
mod memory;
mod models;
mod number_parsers;
mod recall;
mod replay;
mod rm;
mod sessions;
mod setup;
mod sim;
mod trust;

use clap::{Parser, Subcommand, ValueEnum};

use crate::settings::TypedSettings;

pub(crate) use acp::AcpArgs;
pub(crate) use agent_args::{
    AgentArgs, InputFormat, ModelArgs, OutputFormat, PermissionArgs, PermissionModeArg, ProjectArgs,
    SessionArgs, split_rules,
};
pub(crate) use agents::{AgentsArgs, SendArgs};
pub(crate) use ask::AskArgs;
pub(crate) use compaction::{CompactArgs, PinArgs, SummaryMethodArg, UncompactArgs};
pub(crate) use compatibility::CompatibilityArgs;
pub(crate) use config::{ConfigArgs, ConfigCommand, ConfigScopeArg};
pub(crate) use context::{ContextArgs, RequestPartArg};
pub(crate) use demo::DemoArgs;
pub(crate) use dream::DreamArgs;
pub(crate) use gc::GcArgs;
pub(crate) use help::HelpArgs;
pub(crate) use inspection::{CheckArgs, RenderArgs, TokensArgs, ViewArgs};
pub(crate) use ledger::{BreaksArgs, CostArgs, OverviewArgs, OverviewKeyArg};
pub(crate) use login::{KeyProviderArg, LoginArgs, LogoutArgs};
pub(crate) use mcp::{McpAddArgs, McpArgs, McpCommand, McpListArgs, McpRemoveArgs};
pub(crate) use memory::{MemoryArgs, MemoryCommand, MemoryKindArg, MemoryScopeArg};
pub(crate) use models::ModelsArgs;
pub(crate) use recall::RecallArgs;
pub(crate) use replay::{
    EvalArgs, EvalCommand, FidelityArgs, LayerArg, NotesArg, PolicyArg, ReplayArgs, ReplaySummaryArg,
};
pub(crate) use rm::RmArgs;
pub(crate) use sessions::{ExportArgs, ExportFormat, ImportArgs, SessionsArgs};
pub(crate) use setup::{DoctorArgs, InitArgs};
pub(crate) use sim::{SimArgs, SpeedArg};
pub(crate) use trust::TrustArgs;

/// Context and memory engine for coding agents, and a coding agent that uses it
///
/// `pal` starts the agent in the terminal; `pal -p` runs it on a prompt and prints its answer. Every session is saved: nothing
/// is ever lost, and you can continue any session.
#[derive(Parser)]
#[command(
    name = "pal",
    version,
    disable_version_flag = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pal demo\n  pal\n  pal --resume\n  pal -p 'Why does the test in src/lexer.rs fail?'\n  git diff | pal -p 'Review this change.'\n  pal -p --permission-mode accept-edits --allowed-tools 'Bash(cargo test:*)' 'Fix it.'\n  pal -p --continue 'Now add a test for it.'\n  pal -p --output-format json 'How many crates are there?' | jq -r .result\n\nExit codes: 0 success, 1 error, 2 wrong usage, 3 limit reached, 4 call denied (--strict), 130 interrupted."
)]
pub(crate) struct CliArgs {
    /// Override settings files: a file, or TOML or JSON text
    #[arg(long, value_name = "FILE|TEXT", global = true)]
    pub(crate) settings: Option<String>,
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    Demo(DemoArgs),
    Sessions(SessionsArgs),
    Agents(AgentsArgs),
    Send(SendArgs),
    Acp(AcpArgs),
    Rm(RmArgs),
    Gc(GcArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Tokens(TokensArgs),
    Render(RenderArgs),
    Check(CheckArgs),
    Context(ContextArgs),
    View(ViewArgs),
    Cost(CostArgs),
    Breaks(BreaksArgs),
    Compact(CompactArgs),
    Uncompact(UncompactArgs),
    Pin(PinArgs),
    Memory(MemoryArgs),
    Dream(DreamArgs),
    Recall(RecallArgs),
    Mcp(McpArgs),
    Sim(SimArgs),
    Ask(AskArgs),
    Replay(ReplayArgs),
    Eval(EvalArgs),
    /// Former name of `pal eval`
    #[command(hide = true)]
    Lab(EvalArgs),
    Config(ConfigArgs),
    Models(ModelsArgs),
    Trust(TrustArgs),
    Init(InitArgs),
    Doctor(DoctorArgs),
    Login(LoginArgs),
    Logout(LogoutArgs),
    Help(HelpArgs),
}

impl CliArgs {
    /// Parses the words of the command line and exits with help or an error if they are wrong.
    pub(crate) fn from_command_line() -> CliArgs {
        CliArgs::parse_from(repeat_rule_flags(std::env::args_os())).with_prompt()
    }

    /// Settings that the command line gives.
    pub(crate) fn typed_settings(&self) -> TypedSettings {
        TypedSettings {
            given: self.settings.clone(),
            flags: self.agent.settings(),
            sources: self.agent.compatibility.setting_sources.clone(),
        }
    }

    /// The arguments with the words of the prompt joined.
    pub(crate) fn with_prompt(mut self) -> CliArgs {
        self.agent.join_prompt();
        self
    }
}

/// Claude Code takes several rules after one flag: `--allowedTools Read "Bash(git:*)"`. Words that look like further rules
/// get the flag again, so that they do not end up in the prompt.
fn repeat_rule_flags(words: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    const FLAGS: [&str; 4] = ["--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools"];
    let mut repeated: Vec<std::ffi::OsString> = Vec::new();
    // The flag whose values are read, and whether its first one has come.
    let mut open: Option<(std::ffi::OsString, bool)> = None;
    for word in words {
        let text = word.to_str().unwrap_or_default();
        match &mut open {
            _ if FLAGS.contains(&text) => open = Some((word.clone(), false)),
            Some((_, has_value @ false)) => *has_value = true,
            Some((flag, true)) if looks_like_rules(text) => repeated.push(flag.clone()),
            _ => open = None,
        }
        repeated.push(word);
    }
    repeated
}

/// Returns whether a word is a list of rules and not a word of a prompt: `Edit`, `Bash(git log:*)`, `mcp__server`.
fn looks_like_rules(text: &str) -> bool {
    let name = text.split(['(', ',']).next().unwrap_or_default();
    let is_tool = pal_prompt::built_in_tools().iter().any(|tool| tool.name == name);
    is_tool && (text.len() == name.len() || text.ends_with([')', ',']) || text.contains(','))
        || name.starts_with("mcp__")
}

/// Use of colors on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Token estimator on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EstimatorArg {
    /// Weights fitted to real sessions, per model generation
    Calibrated,
    /// 4 bytes per token, 2 for JSON, 2,000 tokens for media, × 4/3
    Classic,
}

impl From<EstimatorArg> for pal_settings::EstimatorSetting {
    fn from(name: EstimatorArg) -> pal_settings::EstimatorSetting {
        match name {
            EstimatorArg::Calibrated => pal_settings::EstimatorSetting::Calibrated,
            EstimatorArg::Classic => pal_settings::EstimatorSetting::Classic,
        }
    }
}

/// Provider on the command line, by its wire format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProviderArg {
    /// Anthropic Messages
    Anthropic,
    /// Claude on Amazon Bedrock
    Bedrock,
    /// Claude on Google Vertex AI
    Vertex,
    /// OpenAI Responses
    Openai,
    /// Any server with Chat Completions: Ollama, llama.cpp, vLLM …
    Chat,
    /// A simulator inside this process
    Sim,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn further_rules_are_no_words_of_the_prompt() {
        for (line, expected) in [
            (
                "pal -p --allowedTools Read Edit fix it",
                "pal -p --allowedTools Read --allowedTools Edit fix it",
            ),
            (
                "pal --allowed-tools Bash(git:*) Bash(ls) mcp__x do",
                "pal --allowed-tools Bash(git:*) --allowed-tools Bash(ls) --allowed-tools mcp__x do",
            ),
            ("pal -p --allowedTools Read fix Edit", "pal -p --allowedTools Read fix Edit"),
            ("pal -p --disallowedTools Bash -- Read", "pal -p --disallowedTools Bash -- Read"),
        ] {
            let words = repeat_rule_flags(line.split(' ').map(Into::into));
            let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn every_help_has_an_example() {
        let mut program = CliArgs::command();
        program.build();
        let commands = program
            .get_subcommands()
            .filter(|command| command.get_name() != "help" && !command.is_hide_set());
        for command in commands.chain([&program]) {
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                example.contains(&format!("pal {}", command.get_name().trim_start_matches("pal"))),
                "{command}"
            );
        }
    }
}
