//! The shell of a session, behind its fence.

use std::sync::Arc;

use pal_process::Background;
use pal_sandbox::Policy;
use pal_tools::{Shell, Workspace};

use crate::options::Options;

/// The shell that the session's commands run in.
pub(crate) fn shell(options: &Options, workspace: &Workspace, background: Arc<Background>) -> Shell {
    let mut shell = Shell::new(background).hiding(options.secret_variables.clone());
    if let Some(fencing) = &options.fence {
        let mut policy = Policy::workspace(&workspace.roots);
        policy.writable.extend(fencing.writable.iter().cloned());
        policy.network = fencing.network;
        // What holds keys and other sessions is nobody's business but ours.
        policy.hidden.push(options.home.clone());
        shell = shell.behind(fencing.fence.clone(), policy, fencing.program.clone());
    }
    shell
}
