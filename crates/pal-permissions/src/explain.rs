//! Explanation of a tool call for the user who is asked to allow it.
//!
//! Marks inform; they decide nothing. In doubt they mark too much rather than too little, and a mark of kind
//! [`CommandMarkKind::Unreadable`] says that others may be missing.

mod explainer;
mod invisible_characters;
mod path_marks;
mod program_effects;

use std::ops::Range;

use crate::{PermissionContext, ToolAccess};
use explainer::{Explainer, TextOrigin};

pub use invisible_characters::{reveal, reveal_character};

/// Part of a command line that the user should check before allowing it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandMark {
    /// Byte range in the command, or in the path of a file tool; always on character boundaries.
    pub range: Range<usize>,
    /// Reason for the mark.
    pub kind: CommandMarkKind,
    /// Reason as a sentence without a full stop. Control and invisible characters are spelt out.
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
    /// Names a file whose change makes programs run something, or an application file.
    GuardedPath,
    /// Names a path outside the project.
    OutsidePath,
    /// Passes text to a shell or an interpreter, or runs a file or program that the command does not show.
    NestedShell,
    /// Talks to the network.
    Network,
    /// Writes output to a file or another stream.
    OutputRedirection,
    /// Reads input from a file, a text or another stream.
    InputRedirection,
    /// Runs a command and puts its output in place.
    CommandSubstitution,
    /// Expands to a value that is unknown until the command runs.
    Expansion,
    /// Expands to all matching files.
    Glob,
    /// Starts a process that can outlive the command.
    Background,
    /// Contains an invisible character.
    HiddenCharacter,
    /// Cannot be parsed with certainty.
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

    /// Returns whether the marked part can do harm by itself.
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

/// Explains a command line: marks in the order of the text, outer ones before inner ones.
///
/// ```
/// use pal_permissions::{CommandMarkKind, PermissionContext, SandboxLimits, explain_command};
/// use std::path::{Path, PathBuf};
///
/// let context = PermissionContext {
///     roots: vec![PathBuf::from("/project")],
///     home: Some(PathBuf::from("/home/me")),
///     session: PathBuf::from("/sessions/one"),
///     own: None,
///     memory: None,
///     directory: PathBuf::from("/project"),
///     resolve: &|named: &str, directory: &Path| directory.join(named),
///     is_folder: &|_| false,
///     sandbox: SandboxLimits::default(),
/// };
/// let command = "bash <<'END'\nls\nrm -rf ~/important\nEND";
/// let marks = explain_command(command, &context);
/// let deletion = marks.iter().find(|mark| mark.kind == CommandMarkKind::Deletion).unwrap();
/// assert_eq!(&command[deletion.range.clone()], "rm -rf ~/important");
/// assert_eq!(deletion.sentence, "`rm -rf ~/important` deletes files");
/// ```
pub fn explain_command(command: &str, context: &PermissionContext<'_>) -> Vec<CommandMark> {
    let mut explainer = Explainer::new(context);
    for (at, character) in command.char_indices() {
        if let Some(name) = reveal_character(character) {
            let sentence = format!("{name} is a character that cannot be seen");
            explainer.mark(at..at + character.len_utf8(), CommandMarkKind::HiddenCharacter, sentence);
        }
    }
    explainer.explain(command, &TextOrigin::Offset(0));
    let mut marks = explainer.finish();
    marks.sort_by(|one, other| {
        let key = |mark: &CommandMark| (mark.range.start, usize::MAX - mark.range.end, mark.kind);
        key(one).cmp(&key(other))
    });
    marks.dedup();
    marks
}

/// Explains an access of a tool call. Ranges refer to the command, or to the path as the model named it.
pub fn explain_access(need: &ToolAccess, context: &PermissionContext<'_>) -> Vec<CommandMark> {
    match need {
        ToolAccess::Run(command) => explain_command(command, context),
        ToolAccess::Read(target) => path_marks::marks_of_target(target, false, context),
        ToolAccess::Write(target) => path_marks::marks_of_target(target, true, context),
        ToolAccess::Fetch(_) | ToolAccess::Use | ToolAccess::Named(_) => Vec::new(),
    }
}
