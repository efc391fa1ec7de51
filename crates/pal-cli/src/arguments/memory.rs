//! Arguments of `pal memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ColorArg;
use super::number_parsers::whole_number;

/// List, search and change memories, and undo any change
///
/// Memories are plain files, in one directory per project (shared by its worktrees) and per agent. Every change is versioned,
/// also those of your own editor. Secrets are masked before anything is written.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal memory                                    memories of this project\n  pal memory add 'We release on Fridays.'\n  pal memory search 'when do we release'\n  pal memory log && pal memory undo             list the changes; undo the last one\n  pal memory --agent reviewer --scope project list"
)]
pub(crate) struct MemoryArgs {
    /// Use the memory of this agent instead of the project's
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,
    /// Scope of the agent's memory (default: user)
    #[arg(long, value_enum, value_name = "SCOPE", global = true, requires = "agent")]
    pub(crate) scope: Option<MemoryScopeArg>,
    /// Directory of the project (default: the current directory)
    #[arg(long = "in", value_name = "DIRECTORY", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Color output
    #[arg(
        long = "color",
        alias = "colour",
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        global = true
    )]
    pub(crate) color: ColorArg,
    #[command(subcommand)]
    pub(crate) command: Option<MemoryCommand>,
}

/// Scope of an agent's memory on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MemoryScopeArg {
    /// All your projects
    User,
    /// This project, shared through its repository
    Project,
    /// This project, on this machine only
    Local,
}

/// Kind of a memory on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MemoryKindArg {
    /// Facts about you
    User,
    /// How you want work to be done
    Feedback,
    /// Facts and decisions that are not in the code or git
    Project,
    /// Where to find things outside of the project
    Reference,
}

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List memories, recent and frequently used ones first
    #[command(after_help = "Examples:\n  pal memory list\n  pal memory list --json | jq -r '.[].slug'")]
    List,
    /// Print the file of a memory
    #[command(
        after_help = "Examples:\n  pal memory show release-day\n  pal memory show 'Release day' --json | jq -r .body"
    )]
    Show {
        /// Slug or name of the memory, or the start of its slug
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Search names, descriptions and texts of memories
    #[command(
        after_help = "Examples:\n  pal memory search 'when do we release'\n  pal memory search --limit 3 parser --json"
    )]
    Search {
        /// Words to search for
        #[arg(value_name = "QUERY", required = true)]
        query: Vec<String>,
        /// Maximum number of results
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_number::<usize>)]
        limit: usize,
    },
    /// Add a memory
    #[command(
        after_help = "Examples:\n  pal memory add 'We release on Fridays.'\n  pal memory add --type feedback --name 'Small commits' 'One thing a commit.'\n  git log -1 --format=%B | pal memory add --name 'Why the cache went' -"
    )]
    Add {
        /// Text; - reads standard input
        #[arg(value_name = "TEXT")]
        text: String,
        /// Kind of memory
        #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "project")]
        kind: MemoryKindArg,
        /// Name (default: the first sentence)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// One sentence on when it is relevant (default: the first sentence)
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Open a memory in $VISUAL or $EDITOR
    #[command(
        after_help = "Examples:\n  pal memory edit release-day\n  EDITOR='code --wait' pal memory edit release-day"
    )]
    Edit {
        /// Slug or name of the memory, or the start of its slug
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a memory; `pal memory undo` restores it
    #[command(after_help = "Examples:\n  pal memory rm release-day\n  pal memory undo")]
    Rm {
        /// Slug or name of the memory, or the start of its slug
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List all changes, newest first: number, time, author, change
    #[command(
        after_help = "Examples:\n  pal memory log\n  pal memory log release-day\n  pal memory log --json | jq '.[] | select(.by != \"person\")'"
    )]
    Log {
        /// Only changes of this memory
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Show the difference between two points of the history (default: the last change)
    #[command(
        after_help = "Examples:\n  pal memory diff            last change\n  pal memory diff 12         from change 12 until now\n  pal memory diff 0 12       from the start to change 12"
    )]
    Diff {
        /// Number of a change: the state after it; 0 for the start
        #[arg(value_name = "FROM", value_parser = whole_number::<u64>)]
        from: Option<u64>,
        /// Number of the later change (default: now)
        #[arg(value_name = "TO", value_parser = whole_number::<u64>)]
        to: Option<u64>,
    },
    /// Restore the state after a change, byte for byte (default: before the last change)
    ///
    /// An undo is a change, so you can undo it, too. Run it again without a number to go back further.
    #[command(
        after_help = "Examples:\n  pal memory undo            undo the last change\n  pal memory undo 12         restore the state after change 12"
    )]
    Undo {
        /// Number of a change: the state after it; 0 for the start
        #[arg(value_name = "TO", value_parser = whole_number::<u64>)]
        to: Option<u64>,
    },
    /// Find problems: secrets, contradictions, duplicates, broken references, unused memories
    ///
    /// Changes nothing. Exits with 1 if it finds a problem.
    #[command(after_help = "Examples:\n  pal memory doctor\n  pal memory doctor --json | jq -r '.[].advice'")]
    Doctor,
    /// Show tokens, cost and results of background work in all projects, by day and source
    ///
    /// Background work is work that you did not ask for: notes, memory extraction, dreams. All of it shares one daily token
    /// budget (`background_tokens_daily`).
    #[command(
        after_help = "Examples:\n  pal memory ledger\n  pal memory ledger --runs      a row per run\n  pal memory ledger --json | jq '.rows[] | {day, source, cost_usd}'"
    )]
    Ledger {
        /// Print a row per run instead of totals
        #[arg(long)]
        runs: bool,
    },
}
