//! What the user typed, before it means anything.

mod acp;
mod agents;
mod config;
mod context;
mod demo;
mod dream;
mod gc;
mod ledger;
mod memory;
mod print;
mod recall;
mod sessions;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use acp::Acp;
pub(crate) use agents::{Agents, Send};
pub(crate) use config::Config;
pub(crate) use context::{Context, PartName};
pub(crate) use demo::Demo;
pub(crate) use dream::Dream;
pub(crate) use gc::Gc;
pub(crate) use ledger::{Breaks, Cost};
pub(crate) use memory::{KindName, Memory, MemoryCommand, ScopeName};
pub(crate) use print::{InputFormat, OutputFormat, PermissionMode, Print};
pub(crate) use recall::{Mcp, Recall};
pub(crate) use sessions::{Export, ExportFormat, Sessions};

/// The context and memory engine for coding agents, and an agent that works with it
///
/// `pal` talks with you in the terminal; `pal -p` lets the agent work on a prompt until it is done, and prints its answer.
/// Sessions are kept: nothing that was said is ever lost, and any session can be gone on with.
#[derive(Parser)]
#[command(
    name = "pal",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  pal demo\n  pal\n  pal --resume\n  pal -p 'Why does the test in src/lexer.rs fail?'\n  git diff | pal -p 'Review this change.'\n  pal -p --permission-mode accept-edits --allowed-tools 'Bash(cargo test:*)' 'Fix it.'\n  pal -p --continue 'Now add a test for it.'\n  pal -p --output-format json 'How many crates are there?' | jq -r .result\n\nExit codes: 0 done, 1 error, 2 wrong use, 3 a limit was reached, 130 interrupted."
)]
pub(crate) struct Arguments {
    /// Settings on top of those in files: a file, or TOML or JSON itself
    #[arg(long, value_name = "FILE|TEXT", global = true)]
    pub(crate) settings: Option<String>,
    #[command(flatten)]
    pub(crate) print: Print,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Sessions(Sessions),
    Agents(Agents),
    Send(Send),
    Acp(Acp),
    Gc(Gc),
    Export(Export),
    Import(Import),
    Tokens(Tokens),
    Render(Render),
    Check(Check),
    Context(Context),
    View(View),
    Cost(Cost),
    Breaks(Breaks),
    Compact(Compact),
    Uncompact(Uncompact),
    Pin(Pin),
    Memory(Memory),
    Dream(Dream),
    Recall(Recall),
    Mcp(Mcp),
    Sim(Sim),
    Ask(Ask),
    Replay(Replay),
    Lab(Lab),
    Config(Config),
    Trust(Trust),
}

/// Take sessions of other agents over into logs of our own
///
/// Reads sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and mini-swe-agent; the format is found by
/// looking. Nothing is lost: what is no part of the conversation, a bad line included, is kept aside in the log and
/// counted. The source is only read. Importing the same file again changes nothing.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal import ~/.claude/projects/*/*.jsonl\n  pal import --dry-run session.jsonl"
)]
pub(crate) struct Import {
    /// Session files of other agents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Refuse a file at its first bad line instead of keeping the line aside
    #[arg(long)]
    pub(crate) strict: bool,
    /// Only report; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object a file instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what fills the context of a session, and how well it is estimated
///
/// Prints the ledger by category, the anchor (the response whose reported usage the size rests on), thresholds with
/// their states, and for every call the estimate beside what the provider reported.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal tokens demo/session.jsonl\n  pal tokens --model claude-haiku-5-5 session.jsonl\n  pal tokens --json session.jsonl | jq .total"
)]
pub(crate) struct Tokens {
    /// A session: a log of ours or another agent's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Count for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How to estimate (default: what settings.toml says, else calibrated)
    #[arg(long, value_enum)]
    pub(crate) estimator: Option<EstimatorName>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A way to estimate tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EstimatorName {
    /// Weights fitted to real sessions, per model generation
    Calibrated,
    /// 4 bytes a token, 2 for JSON, 2 000 for media, × 4/3
    Classic,
}

impl From<EstimatorName> for pal_settings::EstimatorName {
    fn from(name: EstimatorName) -> pal_settings::EstimatorName {
        match name {
            EstimatorName::Calibrated => pal_settings::EstimatorName::Calibrated,
            EstimatorName::Classic => pal_settings::EstimatorName::Classic,
        }
    }
}

/// Print the request that the session would send next, or sent before one of its responses
///
/// The body goes to standard output exactly as it would be sent, so `pal render FILE | pal check -` validates it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal render session.jsonl | pal check -\n  pal render --at 12 session.jsonl | head -c 2000"
)]
pub(crate) struct Render {
    /// A session: a log of ours or another agent's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The request behind the N-th response, counted from 1 (default: the next one)
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<usize>,
    /// Ignore compaction boundaries: everything that was ever said
    #[arg(long)]
    pub(crate) whole: bool,
    /// Render for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Stand in for a system prompt that the transcript does not hold by as many tokens of text, not just a note
    #[arg(long)]
    pub(crate) stand_in: bool,
    /// Print one JSON object: the body with its sizes and its fingerprint
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verify the log of a session, or judge a request body as the provider would
///
/// A session is given by its id, its folder or its log: every line is verified by its checksum and every entry by what it
/// follows. Exits with 1 if the log is damaged; --repair then appends an entry that says how it continues across the damage.
/// Nothing that is in the file is ever changed. Any other file, or - for standard input, is judged as a request body: prints
/// what it holds, or the provider's error and exits with 1.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal check 0199a8f2\n  pal check 0199a8f2 --repair\n  pal check body.json\n  pal render session.jsonl | pal check -"
)]
pub(crate) struct Check {
    /// The session, or the file of a request body; - for a body from standard input
    #[arg(value_name = "SESSION|FILE")]
    pub(crate) subject: String,
    /// Repair a damaged log by appending to it
    #[arg(long)]
    pub(crate) repair: bool,
    /// For a request body: take the rules of this model instead of the one that it names
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// For a request body: switch on a beta by its `anthropic-beta` value; may be repeated
    #[arg(long = "beta", value_name = "NAME")]
    pub(crate) betas: Vec<String>,
    /// Print JSON: the counts and the damage, or the error as the provider sends it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what the model would see now, message by message, and why
///
/// Every decision stands beside what it changed, with its reason: what was spilled to disk, cleared, snipped, folded,
/// stripped or compacted. Hidden stretches are one line with their counts. Pins and what each layer would do now stand
/// at the end. Nothing is changed. The numbers are those that `pal compact --from` and `--up-to` take.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal view session.jsonl\n  pal view 0199a8f2 --full | less -R\n  pal view --at 12 session.jsonl       what the 12th response was an answer to"
)]
pub(crate) struct View {
    /// A session: a log of ours, its id or the beginning of it, or another agent's file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// What the N-th response was an answer to, counted from 1 (default: what the next one would be)
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<usize>,
    /// Look with the eyes of this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print texts whole, not only how they begin
    #[arg(long)]
    pub(crate) full: bool,
    /// When to use colours
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) colour: ColourName,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// When colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ColourName {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Compact a stored session: a summary takes the place of what was said
///
/// The session's model writes the summary; without a key it is drawn from the log word for word. Whoever wrote it, it is
/// checked: what people said, edited files, open tasks and the last error are put back where it lacks them. Files that
/// were read last are read again, from inside the session's own directory only. Nothing is lost: `pal uncompact` takes it
/// back. INSTRUCTIONS say what the summary shall dwell on.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal compact --preview 0199a8f2                 look first; the view stays as it is\n  pal compact 0199a8f2 keep every SQL statement\n  pal compact --up-to 40 --edit session.jsonl    keep from message 40 on (numbers: pal view)\n  pal compact --with extractive session.jsonl    no model, no cost\n  pal uncompact 0199a8f2                         as if nothing had happened"
)]
pub(crate) struct Compact {
    /// A session: a log of ours, or its id or the beginning of it
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Instructions for the summary
    #[arg(value_name = "INSTRUCTIONS")]
    pub(crate) instructions: Vec<String>,
    /// Show what would come of it and leave the view as it is; what a model was asked is booked all the same
    #[arg(long)]
    pub(crate) preview: bool,
    /// Summarise from this message on and keep what stands before it: a number of `pal view`, or an entry's id
    #[arg(long, value_name = "ENTRY", conflicts_with = "up_to")]
    pub(crate) from: Option<String>,
    /// Summarise what stands before this message and keep it and the rest
    #[arg(long, value_name = "ENTRY")]
    pub(crate) up_to: Option<String>,
    /// How the summary is made (default: fork, then plain, then extractive: the first that works)
    #[arg(long, value_enum, value_name = "WAY")]
    pub(crate) with: Option<WayName>,
    /// Open the summary in $VISUAL or $EDITOR before it is applied
    #[arg(long, conflicts_with = "preview")]
    pub(crate) edit: bool,
    /// Ask this model, and compact for its window (default: the session's own)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Whom to ask (default: whoever offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderName>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A way to a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum WayName {
    /// The session's next request with a directive at its end: shares the provider's cache
    Fork,
    /// A request of its own: no tools, no pictures, the oldest rounds left out where it would not fit
    Plain,
    /// Word for word from the log, without a model
    Extractive,
    /// The provider's own compaction, for models that have it
    Provider,
}

/// Take the last compaction of a session back
///
/// What was said before it is in sight again, as it was, followed by what was said since. Refused if that does not fit
/// the model's window. Once more takes back the one before.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal uncompact 0199a8f2\n  pal uncompact session.jsonl && pal view session.jsonl"
)]
pub(crate) struct Uncompact {
    /// A session: a log of ours, or its id or the beginning of it
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Take the window of this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Trust a project: let its own settings and MCP servers run commands
///
/// Prints the whole of `.pal/settings.toml`, `.pal/settings.local.toml` and `.mcp.json`, and asks. What is trusted is what
/// these files say now: when one of them changes, it counts as not trusted until you run this again.
#[derive(Args)]
#[command(after_help = "Examples:\n  pal trust\n  pal trust --yes")]
pub(crate) struct Trust {
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Pin a text: every later compaction carries it word for word
///
/// A pin is not shown to the model by itself; it stands in every summary from the next compaction on, and survives
/// resume. All pins together may have 8 000 tokens, less on small windows.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal pin 0199a8f2 'Never touch the generated files.'\n  pal pin 0199a8f2 --file notes/decisions.md\n  pal pin 0199a8f2 --list\n  pal pin 0199a8f2 --remove 2"
)]
pub(crate) struct Pin {
    /// A session: a log of ours, or its id or the beginning of it
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The text
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "list", "remove"], value_parser = text_to_pin)]
    pub(crate) text: Option<String>,
    /// Pin what this file holds now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "list", "remove"])]
    pub(crate) file: Option<PathBuf>,
    /// List the pins
    #[arg(long, conflicts_with_all = ["text", "remove"])]
    pub(crate) list: bool,
    /// Remove the pin with this number
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub(crate) remove: Option<usize>,
    /// Count tokens for this model instead of the session's own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn text_to_pin(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        Err("there is nothing to pin: the text is empty")
    } else {
        Ok(text.to_owned())
    }
}

/// Run a provider on this machine: no key, no cost, as strict as the real one
///
/// Speaks Anthropic Messages, OpenAI Responses and Chat Completions on loopback, with a real prefix cache, real token
/// counts and prices. Point any client at it. Every request is shown with what it read from the cache, wrote to it
/// and cost. docs/simulator.md describes scripts and faults.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal sim\n  ANTHROPIC_BASE_URL=http://127.0.0.1:4010 ANTHROPIC_API_KEY=any claude\n  pal sim --model-script loop.toml --faults '529@1-2,cut:0.05' --seed 7\n  pal sim --speed virtual --log exchanges/"
)]
pub(crate) struct Sim {
    /// The port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 4010)]
    pub(crate) port: u16,
    /// Answer by a script (default: answers drawn from what was sent)
    #[arg(long, value_name = "FILE")]
    pub(crate) model_script: Option<PathBuf>,
    /// Answer with what the model of a recorded session said
    #[arg(long, value_name = "FILE", conflicts_with = "model_script")]
    pub(crate) replay: Option<PathBuf>,
    /// What goes wrong, and when
    #[arg(long, value_name = "SPEC")]
    pub(crate) faults: Option<String>,
    /// Where ids and chance come from: the same seed gives the same answers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whether answers take their time, or leave at once while a clock of its own jumps ahead
    #[arg(long, value_enum, ignore_case = true, default_value = "real")]
    pub(crate) speed: SpeedName,
    /// Keep every request and answer in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,
    /// Accept only this API key; may be repeated (default: any)
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Take thinking that another provider signed, and bind it where it is first seen
    #[arg(long)]
    pub(crate) learn_signatures: bool,
    /// Print one JSON object a request
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run recorded sessions once more, against the simulator, and show what they would have cost
///
/// Before every request of a recording the layers decide what the model sees; it is sent to the simulator at the recorded
/// time, and the model says what it said. What would have been cached, cleared and compacted stands beside what the provider
/// reported then. Nothing leaves this machine.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal replay session.jsonl\n  pal replay --model claude-opus-5-5 --window 200000 ~/.claude/projects/*/*.jsonl\n  pal replay --policy none session.jsonl                     as it was recorded\n  pal replay --policy thrifty session.jsonl                  by price\n  pal replay --window 60000 --layers spill,auto-compact session.jsonl\n  pal replay --window 200000 --notes fork session.jsonl      with notes of the session\n  pal replay --json session.jsonl | jq .compactions"
)]
pub(crate) struct Replay {
    /// Sessions: logs of ours or other agents' files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Ask this model instead of the sessions' own
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Give the model a window of so many tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Who decides what the model sees
    #[arg(long, value_enum, default_value = "classic")]
    pub(crate) policy: PolicyName,
    /// Only these layers (default: those that are on by default)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LAYER,…", requires = "policy")]
    pub(crate) layers: Option<Vec<LayerName>>,
    /// Whose words summaries are
    #[arg(long, value_enum, default_value = "extractive")]
    pub(crate) compact_with: SummaryName,
    /// Who keeps notes of the session, which compactions take for summaries
    #[arg(long, value_enum, default_value = "off")]
    pub(crate) notes: NotesName,
    /// Notes are written anew each time instead of edited
    #[arg(long)]
    pub(crate) notes_whole: bool,
    /// Keep the log of each session as DIR/<name>/log.jsonl
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object a file
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who keeps notes of a session in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NotesName {
    /// Nobody
    Off,
    /// A fork of the conversation
    Fork,
    /// The agent itself, with answers that make calls anyway
    Main,
}

/// Compare policies over recorded sessions: what each would have cost, and what it would have lost sight of
///
/// Every session is replayed under every policy, at every window and for every model, on all cores. A report goes to a folder:
/// report.md with charts, report.json with all figures. Beside the policies stands the clairvoyant, the least that is
/// possible for somebody who knows the future. What it rests on is explained in docs/lab.md. Nothing leaves this machine.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal lab --out report ~/.claude/projects/*/*.jsonl\n  pal lab --out report --policy classic,compact-100k --window 200000 session.jsonl\n  pal lab --list"
)]
pub(crate) struct Lab {
    /// Sessions: logs of ours or other agents' files
    #[arg(required_unless_present = "list", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The folder for the report; it is made if it is not there
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) out: Option<PathBuf>,
    /// Only these policies (default: all; `none` is always among them)
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) policy: Vec<String>,
    /// Ask these models instead of the sessions' own
    #[arg(long, value_delimiter = ',', value_name = "MODEL,…")]
    pub(crate) model: Vec<String>,
    /// Windows in tokens
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values_t = [200_000, 1_000_000], value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: Vec<u64>,
    /// Only list the policies
    #[arg(long)]
    pub(crate) list: bool,
}

/// Who decides what the model sees in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PolicyName {
    /// Nobody: compactions and clearings are those of the recording
    None,
    /// The layers, each by its thresholds
    Classic,
    /// The layers, by price
    Thrifty,
}

/// A layer of the pipeline, for choosing some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LayerName {
    /// Large results and pastes go to disk
    Spill,
    /// Verbose results are shortened before they are first sent
    Condense,
    /// Redundant stretches are hidden
    Snip,
    /// Old results are cleared
    Micro,
    /// Old stretches are folded
    Fold,
    /// The conversation becomes a summary
    AutoCompact,
}

/// Whose words summaries are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SummaryName {
    /// Drawn from what was sent, word for word
    Extractive,
    /// The recording's own, where it has one
    Recorded,
}

/// How time passes for the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SpeedName {
    /// Answers take their time
    Real,
    /// Answers leave at once; the clock jumps
    Virtual,
}

/// Ask a model, on its own or at the end of a stored session; nothing is kept
///
/// With --session the model sees what that session's next request would carry, and the question after it; the log stays
/// as it is. Each TEXT is a question of its own that knows nothing of the others: put a question of several words in
/// quotes. Several are on their way at once; the first goes alone until its answer begins, so that the others read what
/// they share with it from the provider's cache. The provider follows from the model: Claude is asked at ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY or
/// ANTHROPIC_AUTH_TOKEN, GPT at OPENAI_BASE_URL with OPENAI_API_KEY. Retries are counted down on standard error, where the
/// answer's tokens and its price stand, too.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal ask --provider sim 'Is anybody there?'\n  pal ask --session log.jsonl 'Which files did we change?'\n  pal ask --session log.jsonl 'What is left to do?' 'Which tests fail?' 'What would you do otherwise?'\n  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 pal ask --provider chat --model qwen3 'Hello'"
)]
pub(crate) struct Ask {
    /// The question, or several
    #[arg(value_name = "TEXT", required = true, value_parser = text_to_ask)]
    pub(crate) questions: Vec<String>,
    /// Ask at the end of this session: a log of ours or another agent's file
    #[arg(long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,
    /// Ask this model (default: the session's own, else claude-opus-5-5)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Whom to ask (default: whoever offers the model)
    #[arg(long, value_enum)]
    pub(crate) provider: Option<ProviderName>,
    /// Most tokens that the answer may have
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub(crate) max_tokens: u64,
    /// Print one JSON object a question when its answer is whole
    #[arg(long)]
    pub(crate) json: bool,
}

fn text_to_ask(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        Err("there is nothing to ask: the text is empty")
    } else {
        Ok(text.to_owned())
    }
}

/// A provider, by the dialect that it is spoken to in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProviderName {
    /// Anthropic Messages
    Anthropic,
    /// OpenAI Responses
    Openai,
    /// A server that speaks Chat Completions: Ollama, llama.cpp, vLLM …
    Chat,
    /// The simulator, started for this one question
    Sim,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_help_shows_how_it_is_done() {
        let mut program = Arguments::command();
        program.build();
        let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
        for command in commands.chain([&program]) {
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                example.contains(&format!("pal {}", command.get_name().trim_start_matches("pal"))),
                "{command}"
            );
        }
    }
}
