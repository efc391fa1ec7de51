//! Interface of all tools.

use std::path::PathBuf;

use pal_model::ToolUseId;
use pal_permissions::{Confinement, TargetPath, ToolAccess};
use pal_process::CancelToken;

use crate::{ToolInput, ToolOutput, Workspace};

/// Tool that the program itself executes.
pub trait ToolHandler: Send + Sync {
    /// Name in requests to the model.
    fn name(&self) -> &str;

    /// Returns whether a call with this input is read-only: such calls may run in parallel.
    fn is_read_only(&self, input: &ToolInput) -> bool;

    /// Returns the access that a call needs; an error for the model if the input is invalid.
    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String>;

    /// Checks, before anyone is asked, whether an allowed call could succeed; an error for the model if it cannot.
    fn check_feasible(&self, _input: &ToolInput, _workspace: &Workspace) -> Result<(), String> {
        Ok(())
    }

    /// Executes the call. Errors are outputs, too: the model reads them.
    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput;
}

/// Context of a running call.
pub struct ToolContext<'a> {
    /// Workspace of the session.
    pub workspace: &'a Workspace,
    /// Granted access: the result of [`ToolHandler::required_access`] when permission was checked. A tool touches no
    /// other file, so that a link changed in the meantime has no effect.
    pub granted: &'a [ToolAccess],
    /// Sandbox of a command.
    pub confinement: &'a Confinement,
    /// Id of the call.
    pub call: &'a ToolUseId,
    /// Cancellation of the call.
    pub cancel: &'a CancelToken,
    /// Receives command output as it arrives.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

impl ToolContext<'_> {
    /// Resolved path of a file or folder that the call may read.
    pub(crate) fn readable(&self, named: &str) -> Result<PathBuf, String> {
        let granted = |need: &ToolAccess| match need {
            ToolAccess::Read(target) => Some(target.real.clone()),
            _ => None,
        };
        self.resolve_granted(named, granted)
    }

    /// Resolved path of a file that the call may change.
    pub(crate) fn writable(&self, named: &str) -> Result<PathBuf, String> {
        let granted = |need: &ToolAccess| match need {
            ToolAccess::Write(target) => Some(target.real.clone()),
            _ => None,
        };
        self.resolve_granted(named, granted)
    }

    /// Resolves a path again and checks that it was granted. A link or another working directory may have
    /// changed its target since the permission check. Files are later opened without following links, so that
    /// this check stays valid.
    fn resolve_granted(
        &self,
        named: &str,
        granted: impl Fn(&ToolAccess) -> Option<PathBuf>,
    ) -> Result<PathBuf, String> {
        let TargetPath { real, .. } = self.workspace.resolve(named);
        if self.granted.iter().filter_map(granted).any(|place| place == real) {
            return Ok(real);
        }
        Err(format!(
            "{named} leads to {} now, which is not what permission was given for. Try again.",
            real.display()
        ))
    }
}
