//! The shell of a session, behind its fence.

use pal_sandbox::Policy;
use pal_tools::{Sandbox, Shell, Workspace};

use crate::options::Options;

/// The shell that the session's commands run in.
pub(crate) fn shell(options: &Options, workspace: &Workspace) -> Shell {
    let sandbox = options.fence.as_ref().map(|fencing| {
        let mut policy = Policy::workspace(&workspace.roots);
        policy.writable.extend(fencing.writable.iter().cloned());
        policy.network = fencing.network;
        // What holds keys and other sessions is nobody's business but ours.
        policy.hidden.push(options.home.clone());
        // What runs later without a fence: commands must not be able to plant it.
        let planted = [".git/hooks", ".git/config", ".pal", ".claude"];
        policy.read_only =
            workspace.roots.iter().flat_map(|root| planted.map(|name| root.join(name))).collect();
        Sandbox { fence: fencing.fence.clone(), policy, helper: fencing.program.clone() }
    });
    Shell::new(&workspace.session, sandbox, options.secret_variables.clone())
}
