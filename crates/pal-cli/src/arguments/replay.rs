//! Arguments of `pal replay` and `pal eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::number_parsers::at_least_one;

/// Replay recorded sessions against the simulator and show what they would have cost
///
/// Before every recorded request the layers decide what the model sees. The request goes to the simulator at its recorded time
/// and gets the recorded response. The report compares caching, clearing and compaction with what the provider reported.
/// Nothing leaves this machine.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal replay session.jsonl\n  pal replay --model claude-opus-5-5 --window 200000 ~/.claude/projects/*/*.jsonl\n  pal replay --policy none session.jsonl                     as it was recorded\n  pal replay --policy cost-aware session.jsonl               by price\n  pal replay --window 60000 --layers spill,auto-compact session.jsonl\n  pal replay --window 200000 --notes fork session.jsonl      with notes of the session\n  pal replay --json session.jsonl | jq .compactions"
)]
pub(crate) struct ReplayArgs {
    /// Sessions: logs of pal or session files of other agents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Use this model instead of the sessions' own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Context window of the model, in tokens
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) window: Option<u64>,
    /// Policy that decides what the model sees
    #[arg(long, value_enum, default_value = "threshold")]
    pub(crate) policy: PolicyArg,
    /// Use only these layers (default: those that are on by default)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LAYER,…", requires = "policy")]
    pub(crate) layers: Option<Vec<LayerArg>>,
    /// Source of summaries
    #[arg(long, value_enum, default_value = "extractive")]
    pub(crate) compact_with: ReplaySummaryArg,
    /// Keeper of session notes, which compactions use as summaries
    #[arg(long, value_enum, default_value = "off")]
    pub(crate) notes: NotesArg,
    /// Rewrite notes in full each time instead of editing them
    #[arg(long)]
    pub(crate) notes_whole: bool,
    /// Save the log of each session as DIR/NAME/log.jsonl
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
}

/// Keeper of notes in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NotesArg {
    /// No notes
    Off,
    /// A fork of the conversation
    Fork,
    /// The agent itself, in responses that call tools anyway
    Main,
}

/// Compare policies over recorded sessions: cost, and content lost from view
///
/// Replays every session under every policy, at every window and for every model, on all cores. Writes report.md with charts
/// and report.json with all figures to a directory. The offline optimum, which knows the future, stands beside the policies as
/// a lower bound. docs/eval.md explains the method. Nothing leaves this machine.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pal eval --out report ~/.claude/projects/*/*.jsonl\n  pal eval --out report --policy threshold,compact-100k --window 200000 session.jsonl\n  pal eval --list"
)]
pub(crate) struct EvalArgs {
    /// Sessions: logs of pal or session files of other agents
    #[arg(required_unless_present = "list", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Directory for the report; created if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) out: Option<PathBuf>,
    /// Compare only these policies (default: all; `none` is always included)
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// Use these models instead of the sessions' own
    #[arg(long, value_delimiter = ',', value_name = "MODEL,…")]
    pub(crate) model: Vec<String>,
    /// Context windows, in tokens
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values_t = [200_000, 1_000_000], value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: Vec<u64>,
    /// List the policies and exit
    #[arg(long)]
    pub(crate) list: bool,
    #[command(subcommand)]
    pub(crate) command: Option<EvalCommand>,
}

/// Other evaluations.
#[derive(Subcommand)]
pub(crate) enum EvalCommand {
    Fidelity(FidelityArgs),
}

/// Measure what compactions keep of what the agent needs next, without a model
///
/// Looks at every compaction of the recorded sessions and at ours at the same points: how many of the paths, numbers and identifiers
/// that the agent writes within the next 30 calls the new context still shows, what is read again, which files that are used next it
/// shows, and whether your constraints ("never …", "always …") stay. With --policy it also replays policies and measures their
/// compactions. Writes fidelity.md, fidelity.svg and fidelity.json to a directory. docs/proof.md explains the method.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal eval fidelity --out report ~/.claude/projects/*/*.jsonl\n  pal eval fidelity --out report --policy threshold,cost-aware session.jsonl"
)]
pub(crate) struct FidelityArgs {
    /// Sessions: logs of pal or session files of other agents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Directory for the report; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Also measure the compactions of these policies in replays
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// Context window of the replays, in tokens
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Policy of a replay on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PolicyArg {
    /// No policy: compactions and clearings of the recording
    None,
    /// Layers that act at thresholds
    Threshold,
    /// Layers that act by cost
    CostAware,
    /// Former name of `threshold`
    #[value(hide = true)]
    Classic,
    /// Former name of `cost-aware`
    #[value(hide = true)]
    Thrifty,
}

/// Layer of the pipeline on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LayerArg {
    /// Write large results and pastes to disk
    Spill,
    /// Shorten verbose results before they are first sent
    Condense,
    /// Hide redundant ranges
    Snip,
    /// Clear old results
    Micro,
    /// Fold old ranges
    Fold,
    /// Replace the conversation with a summary
    AutoCompact,
}

/// Source of summaries in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReplaySummaryArg {
    /// Extracted from the conversation word for word
    Extractive,
    /// The recording's own, where it has one
    Recorded,
}
