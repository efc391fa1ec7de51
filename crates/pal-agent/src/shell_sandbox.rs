//! The shell of a session and its sandbox.

use std::path::{Path, PathBuf};

use pal_permissions::{SandboxLimits, SandboxState};
use pal_process::sandbox::SandboxPolicy;
use pal_settings::KillSwitch;
use pal_tools::{SandboxConfig, Shell, Workspace};

use crate::options::{AgentOptions, SandboxOptions};

/// Shell of the session's commands.
pub(crate) fn shell(options: &AgentOptions, workspace: &Workspace) -> Shell {
    let sandbox =
        options.tools.sandbox.as_ref().map(|fencing| sandbox(fencing, workspace, &options.home).into());
    let mut shell = Shell::new(&workspace.session, sandbox, options.tools.secret_variables.clone());
    shell.allows_background = !options.switches.is_off(KillSwitch::Background);
    shell.limit_outputs(options.tools.outputs.command_bytes_max);
    shell
}

/// Sandbox configuration of a workspace; `own` is the program's home.
pub(crate) fn sandbox(fencing: &SandboxOptions, workspace: &Workspace, own: &Path) -> SandboxConfig {
    let mut policy = SandboxPolicy::workspace(&workspace.roots);
    policy.writable.extend(fencing.writable.iter().cloned());
    policy.network = fencing.network;
    // The home contains keys and other sessions.
    policy.hidden.push(own.to_owned());
    let mut visible = vec![kept(&workspace.session)];
    visible.extend(workspace.recorded_folder.as_ref().map(|keeper| keeper.folder().to_owned()));
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

/// An unreadable file that replaces credentials in the sandbox, so that reading them fails visibly.
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

/// Sandbox policy for permission decisions. The sandbox is probed only when a command is about to run.
pub(crate) fn sandbox_policy(shell: &Shell, runs_command: bool) -> SandboxLimits {
    let Some(sandbox) = &shell.sandbox else {
        return SandboxLimits { state: SandboxState::Off, ..SandboxLimits::default() };
    };
    let state = match !runs_command || sandbox.can_confine_read_only() {
        true => SandboxState::Available,
        false => SandboxState::Unavailable,
    };
    let policy = &sandbox.config().policy;
    SandboxLimits { state, writable: policy.writable.clone(), network: policy.network }
}

/// Directory of all sessions of the project: a copied session refers to files of its original.
pub(crate) fn kept(session: &Path) -> PathBuf {
    session.parent().unwrap_or(session).to_owned()
}
