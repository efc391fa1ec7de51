//! The shell of a session, and the sandbox that its commands run in.

use std::path::{Path, PathBuf};

use pal_permissions::{SandboxPolicy, SandboxState};
use pal_sandbox::Policy;
use pal_settings::Switch;
use pal_tools::{SandboxConfig, Shell, Workspace};

use crate::options::{Fencing, Options};

/// The shell that the session's commands run in.
pub(crate) fn shell(options: &Options, workspace: &Workspace) -> Shell {
    let sandbox = options.fence.as_ref().map(|fencing| sandbox(fencing, workspace, &options.home).into());
    let mut shell = Shell::new(&workspace.session, sandbox, options.secret_variables.clone());
    shell.allows_background = !options.switches.is_off(Switch::Background);
    shell.limit_outputs(options.outputs.command_bytes_max);
    shell
}

/// What the sandbox of a workspace lets through; `own` is the program's own folder.
pub(crate) fn sandbox(fencing: &Fencing, workspace: &Workspace, own: &Path) -> SandboxConfig {
    let mut policy = Policy::workspace(&workspace.roots);
    policy.writable.extend(fencing.writable.iter().cloned());
    policy.network = fencing.network;
    // What holds keys and other sessions is nobody's business but ours.
    policy.hidden.push(own.to_owned());
    let mut visible = vec![crate::gate::kept(&workspace.session)];
    visible.extend(workspace.keeper.as_ref().map(|keeper| keeper.folder().to_owned()));
    SandboxConfig {
        probe: fencing.probe.clone(),
        policy,
        guarded: workspace.roots.clone(),
        visible,
        home: workspace.home.clone(),
        own: Some(own.to_owned()),
        helper: fencing.program.clone(),
        mask: mask(own),
    }
}

/// A file that nobody may read: it stands in the place of files with credentials, so that reading one of them fails
/// instead of showing an empty file.
fn mask(own: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = own.join("hidden-by-sandbox");
    if path.exists() {
        return Some(path);
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&path);
    let text = "This file holds credentials and is hidden from commands that nobody allowed.\n";
    let written = made.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    (written.is_ok() || path.exists()).then_some(path)
}

/// What may be done without a rule or a person's yes. Whether this machine has a sandbox is tried out only where a
/// command is about to run.
pub(crate) fn sandbox_policy(shell: &Shell, runs_command: bool) -> SandboxPolicy {
    let Some(sandbox) = &shell.sandbox else {
        return SandboxPolicy { state: SandboxState::Off, ..SandboxPolicy::default() };
    };
    let state = match !runs_command || sandbox.holds_read_only() {
        true => SandboxState::Available,
        false => SandboxState::Unavailable,
    };
    let policy = &sandbox.config().policy;
    SandboxPolicy { state, writable: policy.writable.clone(), network: policy.network }
}
