//! Command-line arguments as the user typed them.

mod acp;
mod agent_args;
mod agents;
mod ask;
mod compaction;
mod config;
mod context;
mod demo;
mod dream;
mod gc;
mod inspection;
mod ledger;
mod memory;
mod models;
mod recall;
mod replay;
mod sessions;
mod sim;
mod trust;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use acp::AcpArgs;
pub(crate) use agent_args::{
    AgentArgs, InputFormat, ModelArgs, OutputFormat, PermissionArgs, PermissionModeArg, ProjectArgs,
    SessionArgs, split_rules,
};
pub(crate) use agents::{AgentsArgs, SendArgs};
pub(crate) use ask::AskArgs;
pub(crate) use compaction::{CompactArgs, PinArgs, SummaryMethodArg, UncompactArgs};
pub(crate) use config::ConfigArgs;
pub(crate) use context::{ContextArgs, RequestPartArg};
pub(crate) use demo::DemoArgs;
pub(crate) use dream::DreamArgs;
pub(crate) use gc::GcArgs;
pub(crate) use inspection::{CheckArgs, RenderArgs, TokensArgs, ViewArgs};
pub(crate) use ledger::{BreaksArgs, CostArgs};
pub(crate) use memory::{MemoryArgs, MemoryCommand, MemoryKindArg, MemoryScopeArg};
pub(crate) use models::ModelsArgs;
pub(crate) use recall::{McpArgs, RecallArgs};
pub(crate) use replay::{EvalArgs, LayerArg, NotesArg, PolicyArg, ReplayArgs, ReplaySummaryArg};
pub(crate) use sessions::{ExportArgs, ExportFormat, ImportArgs, SessionsArgs};
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
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pal demo\n  pal\n  pal --resume\n  pal -p 'Why does the test in src/lexer.rs fail?'\n  git diff | pal -p 'Review this change.'\n  pal -p --permission-mode accept-edits --allowed-tools 'Bash(cargo test:*)' 'Fix it.'\n  pal -p --continue 'Now add a test for it.'\n  pal -p --output-format json 'How many crates are there?' | jq -r .result\n\nExit codes: 0 success, 1 error, 2 wrong usage, 3 limit reached, 4 call denied (--strict), 130 interrupted."
)]
pub(crate) struct CliArgs {
    /// Override settings files: a file, or TOML or JSON text
    #[arg(long, value_name = "FILE|TEXT", global = true)]
    pub(crate) settings: Option<String>,
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
