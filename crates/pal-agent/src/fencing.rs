//! The shell of a session, behind its fence.

use pal_sandbox::{Fence, Policy};
use pal_settings::Switch;
use pal_tools::{Sandbox, Shell, Workspace};

use crate::options::{Fencing, Options};

/// The shell that the session's commands run in.
pub(crate) fn shell(options: &Options, workspace: &Workspace) -> Shell {
    let sandbox = options.fence.as_ref().map(|fencing| {
        let mut policy = Policy::workspace(&workspace.roots);
        policy.writable.extend(fencing.writable.iter().cloned());
        policy.network = fencing.network;
        // What holds keys and other sessions is nobody's business but ours.
        policy.hidden.push(options.home.clone());
        let fence = with_safe_program(fencing, &mut policy);
        Sandbox { fence, policy, guarded: workspace.roots.clone(), helper: fencing.program.clone() }
    });
    let mut shell = Shell::new(&workspace.session, sandbox, options.secret_variables.clone());
    shell.allows_background = !options.switches.is_off(Switch::Background);
    shell
}

/// The fence, if commands cannot change the program that puts it up: they would be free from the next one on.
fn with_safe_program(fencing: &Fencing, policy: &mut Policy) -> Fence {
    let program = fencing.program.canonicalize().unwrap_or_else(|_| fencing.program.clone());
    let is_open = policy.writable.iter().any(|open| {
        let open = open.canonicalize().unwrap_or_else(|_| open.clone());
        program.starts_with(open)
    });
    match &fencing.fence {
        Fence::Landlock { .. } if is_open => Fence::None {
            why: format!(
                "{} puts it up and lies where commands may write, which Landlock cannot prevent: install it elsewhere",
                program.display()
            ),
        },
        fence => {
            if is_open {
                policy.read_only.push(program);
            }
            fence.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_puts_the_fence_up_cannot_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let program = root.join("pal");
        std::fs::write(&program, "").unwrap();
        let check = |fence: Fence, writable: &std::path::Path| {
            let fencing = Fencing { fence, network: false, writable: Vec::new(), program: program.clone() };
            let mut policy = Policy { writable: vec![writable.to_owned()], ..Policy::default() };
            (with_safe_program(&fencing, &mut policy), policy.read_only)
        };
        let elsewhere = root.join("elsewhere");
        let landlock = Fence::Landlock { abi: 1 };
        let bubblewrap = Fence::Bubblewrap { program: "/usr/bin/bwrap".into() };
        assert_eq!(check(landlock.clone(), &elsewhere), (landlock.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), &elsewhere), (bubblewrap.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), &root), (bubblewrap, vec![program.clone()]));
        let (fence, _) = check(landlock, &root);
        assert!(matches!(&fence, Fence::None { why } if why.contains("install it elsewhere")), "{fence}");
    }
}
