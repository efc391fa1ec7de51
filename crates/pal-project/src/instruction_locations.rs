//! Locations of instruction files. All paths are arguments; nothing here reads the environment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_permissions::RuleSet;

/// Default size of instructions that brings a warning, in tokens.
pub const INSTRUCTION_TOKENS_MAX: u64 = 40_000;

/// Locations of instruction files, and permissions to read them.
#[derive(Clone, Debug)]
pub struct InstructionSearch {
    /// Folders of the machine's owner, such as those of [`managed_folders`].
    pub managed: Vec<PathBuf>,
    /// Folders of the user, such as those of [`user_folders`].
    pub user: Vec<PathBuf>,
    /// Expansion of `~`.
    pub home: Option<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
    /// The top of the project; if none is given, the top of the repository around the working directory, else the
    /// working directory itself.
    pub root: Option<PathBuf>,
    /// Directories that were added to the session.
    pub added: Vec<PathBuf>,
    /// More instruction files, from settings.
    pub listed: Vec<ListedInstructions>,
    /// Files outside of the project, or folders of them, that the user allowed to be read.
    pub allowed: Vec<PathBuf>,
    /// Files or folders outside of the project that the user refused for good.
    pub refused: Vec<PathBuf>,
    /// Permission rules that included files are judged by, like calls of `Read`.
    pub rules: RuleSet,
    /// Reads instruction files at all.
    pub is_on: bool,
    /// Searches only added directories.
    pub is_bare: bool,
    /// Size limit.
    pub limit: InstructionLimit,
}

/// Instruction files that a setting lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedInstructions {
    /// Path or glob; one that is relative starts at the top of the project.
    pub pattern: String,
    /// True if the user or the administrator listed it; they may name any file.
    pub is_users: bool,
}

/// Size limit, and the handling of longer files.
#[derive(Clone)]
pub struct InstructionLimit {
    /// Tokens of all instruction files together.
    pub tokens_max: u64,
    /// Drops the largest files until the rest fits; otherwise there is only a warning.
    pub drops: bool,
    /// Counts the tokens of a text.
    pub measure: Arc<dyn Fn(&str) -> u64 + Send + Sync>,
}

impl fmt::Debug for InstructionLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InstructionLimit")
            .field("tokens_max", &self.tokens_max)
            .field("drops", &self.drops)
            .finish()
    }
}

/// The folders in which the machine's owner leaves instructions: Claude Code's own, so that a policy that is already
/// there holds, then ours.
pub fn managed_folders() -> Vec<PathBuf> {
    let folders: [&str; 2] = if cfg!(target_os = "macos") {
        ["/Library/Application Support/ClaudeCode", "/Library/Application Support/Palimpsest"]
    } else if cfg!(windows) {
        ["C:\\Program Files\\ClaudeCode", "C:\\Program Files\\Palimpsest"]
    } else {
        ["/etc/claude-code", "/etc/palimpsest"]
    };
    folders.map(PathBuf::from).to_vec()
}

/// The folders in which a user leaves instructions for all projects: `~/.claude`, then our own home folder. If neither has
/// instructions, the first folder of another agent that has.
pub fn user_folders(home: &Path, pal_home: &Path) -> Vec<PathBuf> {
    let mut folders = vec![home.join(".claude"), pal_home.to_owned()];
    let has = |folder: &PathBuf| {
        ["CLAUDE.md", "AGENTS.md", "GEMINI.md"].iter().any(|name| folder.join(name).is_file())
    };
    if !folders.iter().any(has) {
        let others = [".codex", ".config/opencode", ".gemini"].map(|folder| home.join(folder));
        folders.extend(others.into_iter().find(has));
    }
    folders
}
