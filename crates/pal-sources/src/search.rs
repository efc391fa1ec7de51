//! Where instruction files are looked for. All places come in as values; nothing here reads the environment.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_permissions::Rules;

/// How many tokens of instructions bring a warning, unless a setting says otherwise.
pub const INSTRUCTION_TOKENS_MAX: u64 = 40_000;

/// Where to look for instruction files, and what is allowed.
#[derive(Clone, Debug)]
pub struct Search {
    /// Folders of the machine's owner, such as those of [`managed_folders`].
    pub managed: Vec<PathBuf>,
    /// Folders of the user, such as those of [`user_folders`].
    pub user: Vec<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
    /// The top of the project; if none is given, the top of the repository around the working directory, else the
    /// working directory itself.
    pub root: Option<PathBuf>,
    /// Directories that were added to the session.
    pub added: Vec<PathBuf>,
    /// Files outside of the project, or folders of them, that the user allowed to be read.
    pub allowed: Vec<PathBuf>,
    /// Files outside of the project, or folders of them, that the user does not want to be asked for again.
    pub refused: Vec<PathBuf>,
    /// Permission rules that included files are judged by, like calls of `Read`.
    pub rules: Rules,
    /// Whether instruction files are read at all.
    pub is_on: bool,
    /// Whether only added directories are looked at.
    pub is_bare: bool,
    /// How much is too much.
    pub limit: Limit,
}

/// How much is too much, and what happens then.
#[derive(Clone)]
pub struct Limit {
    /// Tokens of all instruction files together.
    pub tokens_max: u64,
    /// Whether the largest files are dropped until the rest fits. If not, there is only a warning.
    pub drops: bool,
    /// How many tokens a text has.
    pub measure: Arc<dyn Fn(&str) -> u64 + Send + Sync>,
}

impl fmt::Debug for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Limit")
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

/// The folders in which a user leaves instructions for all projects: `~/.claude`, then our own home folder.
pub fn user_folders(home: &Path, pal_home: &Path) -> Vec<PathBuf> {
    vec![home.join(".claude"), pal_home.to_owned()]
}
