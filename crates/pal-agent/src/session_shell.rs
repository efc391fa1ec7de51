//! The shell of a session.

use pal_settings::KillSwitch;
use pal_tools::{Shell, Workspace, workspace_sandbox};

use crate::options::AgentOptions;

/// Opens the shell of the session's commands, with its sandbox.
pub(crate) fn open_shell(options: &AgentOptions, workspace: &Workspace) -> Shell {
    let sandbox = options.tools.sandbox.as_ref();
    let sandbox = sandbox.map(|sandbox| workspace_sandbox(sandbox, workspace, &options.home).into());
    let mut shell = Shell::new(&workspace.session, sandbox, options.tools.secret_variables.clone());
    shell.allows_background = !options.switches.is_off(KillSwitch::Background);
    shell.limit_outputs(options.tools.outputs.command_bytes_max);
    shell
}
