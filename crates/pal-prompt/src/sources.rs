//! What is known of the world around a session, as plain data. Whoever has hands gathers it.

use serde::Serialize;

/// The git repository that a session works in, or why there is none to tell of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Git {
    /// What it looked like when the session began.
    Snapshot(GitSnapshot),
    /// Why there is no snapshot.
    Absent(String),
}

/// A repository at one moment. Everything in it is somebody else's words and has not been defused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GitSnapshot {
    /// The branch, or the commit if none is checked out.
    pub branch: String,
    /// The branch that changes are usually merged into, where known.
    pub default_branch: Option<String>,
    /// The user's name, where git knows it.
    pub user: Option<String>,
    /// The changed files, as `git status --short` lists them, cut at 2 000 characters.
    pub status: String,
    /// Whether the list was cut.
    pub status_was_cut: bool,
    /// The newest commits, the newest first: an abbreviated id and the subject.
    pub commits: Vec<String>,
}

/// Where an instruction file comes from, far to near.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionScope {
    /// The machine's owner.
    Managed,
    /// The user, for all projects.
    User,
    /// The project, shared with everybody who works on it.
    Project,
    /// The user, for this project alone.
    Local,
    /// A directory that was added to the session.
    Added,
}

/// An instruction file that goes into the context.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Instruction {
    /// Its path, as it is shown to the model.
    pub path: String,
    /// Where it comes from.
    pub scope: InstructionScope,
    /// The file that includes it, if one does.
    pub included_by: Option<String>,
    /// Why it is in the context, in a few words.
    pub reason: String,
    /// What it says, without front matter. It has not been defused.
    #[serde(skip)]
    pub text: String,
}

/// Something that is not in the context, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// What: a path, a tool, a section.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The machine and the place that a session works in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Environment {
    /// The working directory.
    pub directory: String,
    /// Directories that were added to it.
    pub added: Vec<String>,
    /// Whether the working directory is in a git repository.
    pub is_repository: bool,
    /// The operating system, such as `linux`.
    pub platform: String,
    /// Its version, where known.
    pub platform_version: Option<String>,
    /// The user's shell, where known.
    pub shell: Option<String>,
}
