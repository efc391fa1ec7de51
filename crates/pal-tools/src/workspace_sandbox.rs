//! The sandbox of a workspace.

use std::path::{Path, PathBuf};

use pal_permissions::{SandboxLimits, SandboxState};
use pal_process::sandbox::{SandboxPolicy, SandboxProbe};

use crate::workspace_permissions::sessions_directory;
use crate::{SandboxConfig, Shell, Workspace};

/// Sandbox of commands.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// Sandbox support of this machine.
    pub probe: SandboxProbe,
    /// Also confines commands that a rule or a person allowed.
    pub is_for_all: bool,
    /// Lets commands that may change the project reach the network.
    pub network: bool,
    /// Writable directories besides the workspace and temporary files.
    pub writable: Vec<PathBuf>,
    /// Path of this program, which sets up the sandbox.
    pub program: PathBuf,
}

/// Sandbox configuration of a workspace; `own` is the program's home.
pub fn workspace_sandbox(options: &SandboxOptions, workspace: &Workspace, own: &Path) -> SandboxConfig {
    let mut policy = SandboxPolicy::workspace(&workspace.roots);
    policy.writable.extend(options.writable.iter().cloned());
    policy.network = options.network;
    // The home contains keys and other sessions.
    policy.hidden.push(own.to_owned());
    let mut visible = vec![sessions_directory(&workspace.session)];
    visible.extend(workspace.recorded_folder.as_ref().map(|keeper| keeper.folder().to_owned()));
    SandboxConfig {
        probe: options.probe.clone(),
        policy,
        guarded: workspace.roots.clone(),
        visible,
        home: workspace.home.clone(),
        own: Some(own.to_owned()),
        helper: options.program.clone(),
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
    let text = "This file holds credentials and is hidden from commands that were not allowed.\n";
    let written = made.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    (written.is_ok() || path.exists()).then_some(path)
}

/// Limits of the sandbox for permission decisions. The sandbox is probed only when a command is about to run.
pub fn sandbox_limits(shell: &Shell, runs_command: bool) -> SandboxLimits {
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
