//! What every tool offers.

use std::path::PathBuf;

use pal_model::ToolUseId;
use pal_permissions::{Confinement, Need, Target};
use pal_process::Cancel;

use crate::{Input, Output, Workspace};

/// A tool that the program itself carries out.
pub trait Tool: Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> &str;

    /// Whether a call with this input only looks: such calls may run beside each other.
    fn only_looks(&self, input: &Input) -> bool;

    /// What a call would do; what is wrong with the input, in words for the model, if it cannot be told.
    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String>;

    /// Does it. Errors are outputs too: the model reads them.
    fn run(&self, input: &Input, running: &Running<'_>) -> Output;
}

/// The call that runs, and what is around it.
pub struct Running<'a> {
    /// Where it works.
    pub workspace: &'a Workspace,
    /// What the call was allowed to do: what [`Tool::needs`] said when permission was asked. A tool touches no file
    /// that is not in it, so that a link that was bent in the meantime leads nowhere.
    pub granted: &'a [Need],
    /// The sandbox that a command of it runs in.
    pub confinement: &'a Confinement,
    /// Which call it is.
    pub call: &'a ToolUseId,
    /// Whether it shall stop.
    pub cancel: &'a Cancel,
    /// Takes what a running command prints, as it comes.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

impl Running<'_> {
    /// Where a file or folder is that the call may look at.
    pub(crate) fn readable(&self, named: &str) -> Result<PathBuf, String> {
        let granted = |need: &Need| match need {
            Need::Read(target) => Some(target.real.clone()),
            _ => None,
        };
        self.still(named, granted)
    }

    /// Where a file is that the call may change.
    pub(crate) fn writable(&self, named: &str) -> Result<PathBuf, String> {
        let granted = |need: &Need| match need {
            Need::Write(target) => Some(target.real.clone()),
            _ => None,
        };
        self.still(named, granted)
    }

    /// The real path, looked up again, if permission was given for it. Between the question and now somebody may have
    /// put a link into the path, or the working directory may be another: then the same name means another file, for
    /// which nobody was asked. What is opened later is opened without following links, so that nothing can slip in
    /// behind this look either.
    fn still(&self, named: &str, granted: impl Fn(&Need) -> Option<PathBuf>) -> Result<PathBuf, String> {
        let Target { real, .. } = self.workspace.resolve(named);
        if self.granted.iter().filter_map(granted).any(|place| place == real) {
            return Ok(real);
        }
        Err(format!(
            "{named} leads to {} now, which is not what permission was given for. Try again.",
            real.display()
        ))
    }
}
