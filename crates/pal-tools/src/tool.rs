//! What every tool offers.

use pal_model::{Text, ToolUseId};
use pal_permissions::Need;
use pal_process::Cancel;

use crate::{Output, Workspace};

/// A tool that the program itself carries out.
pub trait Tool: Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> &'static str;

    /// Whether a call with this input only looks: such calls may run beside each other.
    fn only_looks(&self, input: &Input) -> bool;

    /// What a call would do; what is wrong with the input, in words for the model, if it cannot be told.
    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String>;

    /// Does it. Errors are outputs too: the model reads them.
    fn run(&self, input: &Input, running: &Running<'_>) -> Output;
}

/// What a tool is called with: a JSON object, as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input(pub Text);

/// The call that runs, and what is around it.
pub struct Running<'a> {
    /// Where it works.
    pub workspace: &'a Workspace,
    /// Which call it is.
    pub call: &'a ToolUseId,
    /// Whether it shall stop.
    pub cancel: &'a Cancel,
    /// Takes what a running command prints, as it comes.
    pub progress: &'a (dyn Fn(&str) + Sync),
}
