//! What is typed for the commands about durable memory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ColourName;

/// Look at what is remembered from session to session, change it, and take any change back
///
/// Memories are plain files, one directory for each project (worktrees share it) and for each agent. Every change is
/// versioned, by whomever it was made, an editor of your own included. Secrets are masked before anything is written.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal memory                                    all memories of this project\n  pal memory add 'We release on Fridays.'\n  pal memory search 'when do we release'\n  pal memory log && pal memory undo             what was changed; the last change taken back\n  pal memory --agent reviewer --scope project list"
)]
pub(crate) struct Memory {
    /// The memory of this agent instead of the project's
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,
    /// Which of the agent's memories (default: user)
    #[arg(long, value_enum, value_name = "SCOPE", global = true, requires = "agent")]
    pub(crate) scope: Option<ScopeName>,
    /// The project (default: that of the current directory)
    #[arg(long = "in", value_name = "DIRECTORY", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(
        long = "color",
        alias = "colour",
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        global = true
    )]
    pub(crate) colour: ColourName,
    #[command(subcommand)]
    pub(crate) command: Option<MemoryCommand>,
}

/// How far the memory of an agent reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ScopeName {
    /// All your projects
    User,
    /// This project, shared with whoever has it
    Project,
    /// This project, on this machine only
    Local,
}

/// What a memory is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum KindName {
    /// Who you are
    User,
    /// How you want work done
    Feedback,
    /// Facts and decisions that code and git do not tell
    Project,
    /// Where things are, outside
    Reference,
}

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List all memories, new and often used ones first
    #[command(after_help = "Examples:\n  pal memory list\n  pal memory list --json | jq -r '.[].slug'")]
    List,
    /// Print a memory as it is in its file
    #[command(
        after_help = "Examples:\n  pal memory show release-day\n  pal memory show 'Release day' --json | jq -r .body"
    )]
    Show {
        /// Its slug, its name, or how its slug begins
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Find memories by words of their names, descriptions and texts
    #[command(
        after_help = "Examples:\n  pal memory search 'when do we release'\n  pal memory search --limit 3 parser --json"
    )]
    Search {
        /// What to look for
        #[arg(value_name = "QUERY", required = true)]
        query: Vec<String>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
    },
    /// Write a new memory
    #[command(
        after_help = "Examples:\n  pal memory add 'We release on Fridays.'\n  pal memory add --type feedback --name 'Small commits' 'One thing a commit.'\n  git log -1 --format=%B | pal memory add --name 'Why the cache went' -"
    )]
    Add {
        /// The text; - reads standard input
        #[arg(value_name = "TEXT")]
        text: String,
        /// What it is about
        #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "project")]
        kind: KindName,
        /// What it is called (default: its first sentence)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// One sentence that says when it matters (default: its first sentence)
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Open a memory in $VISUAL or $EDITOR
    #[command(
        after_help = "Examples:\n  pal memory edit release-day\n  EDITOR='code --wait' pal memory edit release-day"
    )]
    Edit {
        /// Its slug, its name, or how its slug begins
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a memory; undo brings it back
    #[command(after_help = "Examples:\n  pal memory rm release-day\n  pal memory undo")]
    Rm {
        /// Its slug, its name, or how its slug begins
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List all changes, the newest first: number, time, who, what
    #[command(
        after_help = "Examples:\n  pal memory log\n  pal memory log release-day\n  pal memory log --json | jq '.[] | select(.by != \"person\")'"
    )]
    Log {
        /// Only those of this memory
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Show what is different between two points of the log (default: what the last change did)
    #[command(
        after_help = "Examples:\n  pal memory diff            the last change\n  pal memory diff 12         from point 12 until now\n  pal memory diff 0 12       from the beginning to point 12"
    )]
    Diff {
        /// The number of a change: the state that it led to; 0 for the beginning
        #[arg(value_name = "FROM")]
        from: Option<u64>,
        /// Until this one (default: now)
        #[arg(value_name = "TO")]
        to: Option<u64>,
    },
    /// Go back to the state of a point of the log, byte for byte (default: before the last change)
    ///
    /// The undo itself is a change, so it can be taken back, too. Once more without a number goes back further.
    #[command(
        after_help = "Examples:\n  pal memory undo            the last change\n  pal memory undo 12         everything as it was after change 12"
    )]
    Undo {
        /// The number of a change: the state that it led to; 0 for the beginning
        #[arg(value_name = "TO")]
        to: Option<u64>,
    },
    /// Look for what is wrong: secrets, contradictions, duplicates, what leads nowhere, what nobody uses
    ///
    /// Nothing is changed. Exits with 1 if there is something to do.
    #[command(after_help = "Examples:\n  pal memory doctor\n  pal memory doctor --json | jq -r '.[].advice'")]
    Doctor,
    /// Show what background work of all projects took and wrote, by day and source
    ///
    /// Background work is what is done for sessions without being asked for: notes, memories, dreams. All of it together has
    /// so many tokens a day (`background_tokens_daily`).
    #[command(
        after_help = "Examples:\n  pal memory ledger\n  pal memory ledger --runs      every run\n  pal memory ledger --json | jq '.rows[] | {day, source, cost_usd}'"
    )]
    Ledger {
        /// Every run instead of the sums
        #[arg(long)]
        runs: bool,
    },
}
