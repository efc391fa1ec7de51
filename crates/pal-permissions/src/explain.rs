//! Explanation of a call for the person who is asked to allow it: what in it matters, where it stands, and why.
//!
//! Marks inform; they decide nothing. Where the text of a command cannot be read with certainty they rather mark too much
//! than too little, and a mark of the kind [`CommandMarkKind::Unreadable`] says that others may be missing.

mod paths;
mod programs;
mod visible;
mod walker;

use std::ops::Range;

use crate::{Ground, Need};
use walker::{Explainer, Origin};

pub use visible::{reveal, reveal_character};

/// A part of a command line that a person should look at before they allow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandMark {
    /// Bytes of the command, or of the path of a file tool, that it is about; always on character boundaries.
    pub range: Range<usize>,
    /// Reason for the mark.
    pub kind: CommandMarkKind,
    /// The reason as a sentence without a full stop. Control and invisible characters in it are spelt out.
    pub sentence: String,
}

/// Reason for a [`CommandMark`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CommandMarkKind {
    /// Deletes or overwrites files, commits, disks or the like.
    Deletion,
    /// Runs something with the rights of another user.
    Privilege,
    /// Names a file that may hold credentials.
    CredentialPath,
    /// Names a file whose change makes programs run something, or one of the program's own.
    GuardedPath,
    /// Names a path outside the project.
    OutsidePath,
    /// Hands text to a shell or an interpreter, or runs a file or program that the command does not show.
    NestedShell,
    /// Talks to the network.
    Network,
    /// Writes output to a file or another stream.
    OutputRedirection,
    /// Takes input from a file, a text or another stream.
    InputRedirection,
    /// Runs a command and puts its output in place.
    CommandSubstitution,
    /// Is replaced by a value that is known only when the command runs.
    Expansion,
    /// Stands for all files that match.
    Glob,
    /// Starts a process that can outlive the command.
    Background,
    /// Holds a character that cannot be seen.
    HiddenCharacter,
    /// Cannot be read with certainty.
    Unreadable,
}

impl CommandMarkKind {
    /// Stable name in kebab case, for protocols.
    pub fn name(self) -> &'static str {
        match self {
            CommandMarkKind::Deletion => "deletion",
            CommandMarkKind::Privilege => "privilege",
            CommandMarkKind::CredentialPath => "credential-path",
            CommandMarkKind::GuardedPath => "guarded-path",
            CommandMarkKind::OutsidePath => "outside-path",
            CommandMarkKind::NestedShell => "nested-shell",
            CommandMarkKind::Network => "network",
            CommandMarkKind::OutputRedirection => "output-redirection",
            CommandMarkKind::InputRedirection => "input-redirection",
            CommandMarkKind::CommandSubstitution => "command-substitution",
            CommandMarkKind::Expansion => "expansion",
            CommandMarkKind::Glob => "glob",
            CommandMarkKind::Background => "background",
            CommandMarkKind::HiddenCharacter => "hidden-character",
            CommandMarkKind::Unreadable => "unreadable",
        }
    }

    /// Whether the marked part can do harm by itself, rather than only make the command harder to read.
    pub fn is_dangerous(self) -> bool {
        matches!(
            self,
            CommandMarkKind::Deletion
                | CommandMarkKind::Privilege
                | CommandMarkKind::CredentialPath
                | CommandMarkKind::GuardedPath
                | CommandMarkKind::OutsidePath
                | CommandMarkKind::NestedShell
                | CommandMarkKind::HiddenCharacter
                | CommandMarkKind::Unreadable
        )
    }
}

/// Explains a command line: its marks in the order of the text, wider ones before those inside of them.
///
/// ```
/// use pal_permissions::{CommandMarkKind, Ground, SandboxPolicy, explain_command};
/// use std::path::{Path, PathBuf};
///
/// let ground = Ground {
///     roots: vec![PathBuf::from("/project")],
///     home: Some(PathBuf::from("/home/me")),
///     session: PathBuf::from("/sessions/one"),
///     own: None,
///     memory: None,
///     directory: PathBuf::from("/project"),
///     resolve: &|named: &str, directory: &Path| directory.join(named),
///     is_folder: &|_| false,
///     sandbox: SandboxPolicy::default(),
/// };
/// let command = "bash <<'END'\nls\nrm -rf ~/important\nEND";
/// let marks = explain_command(command, &ground);
/// let deletion = marks.iter().find(|mark| mark.kind == CommandMarkKind::Deletion).unwrap();
/// assert_eq!(&command[deletion.range.clone()], "rm -rf ~/important");
/// assert_eq!(deletion.sentence, "`rm -rf ~/important` deletes files");
/// ```
pub fn explain_command(command: &str, ground: &Ground<'_>) -> Vec<CommandMark> {
    let mut explainer = Explainer::new(ground);
    for (at, character) in command.char_indices() {
        if let Some(name) = reveal_character(character) {
            let sentence = format!("{name} is a character that cannot be seen");
            explainer.mark(at..at + character.len_utf8(), CommandMarkKind::HiddenCharacter, sentence);
        }
    }
    explainer.explain(command, &Origin::Offset(0));
    let mut marks = explainer.finish();
    marks.sort_by(|one, other| {
        let key = |mark: &CommandMark| (mark.range.start, usize::MAX - mark.range.end, mark.kind);
        key(one).cmp(&key(other))
    });
    marks.dedup();
    marks
}

/// Explains something that a call would do. Ranges are of the command, or of the path as the model named it.
pub fn explain_need(need: &Need, ground: &Ground<'_>) -> Vec<CommandMark> {
    match need {
        Need::Run(command) => explain_command(command, ground),
        Need::Read(target) => paths::marks_of_target(target, false, ground),
        Need::Write(target) => paths::marks_of_target(target, true, ground),
        Need::Fetch(_) | Need::Use => Vec::new(),
    }
}
