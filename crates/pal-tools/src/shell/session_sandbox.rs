//! Sandbox of a session's commands: one policy per level, computed when a command starts.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use pal_permissions::SandboxLevel;
use pal_process::sandbox::{
    GuardedPaths, ProjectFindings, ProjectScan, Sandbox, SandboxPolicy, SandboxProbe, enclosing_repository,
    external_git_dirs, home_credentials, home_startup_files, missing_startup_files,
};

/// Configuration of a session's sandbox.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// Detection of the sandbox mechanism.
    pub probe: SandboxProbe,
    /// Policy of commands that may change the project.
    pub policy: SandboxPolicy,
    /// Roots whose guarded paths are protected ([`pal_process::sandbox::GuardedPaths`]).
    pub guarded: Vec<PathBuf>,
    /// Paths that read-only commands see besides the roots: spilled results and memories.
    pub visible: Vec<PathBuf>,
    /// Home directory of the user.
    pub home: Option<PathBuf>,
    /// Application folder.
    pub own: Option<PathBuf>,
    /// Sandbox helper: our own program ([`pal_process::sandbox::enter_and_exec`]).
    pub helper: PathBuf,
    /// Unreadable file that replaces hidden ones.
    pub mask: Option<PathBuf>,
}

/// Sandbox of a session.
#[derive(Debug)]
pub struct SessionSandbox {
    config: SandboxConfig,
    scan: Mutex<ProjectScan>,
    effective: OnceLock<Sandbox>,
}

/// Policy of one command, and the state of the project before it.
pub(super) struct CommandPolicy {
    pub(super) policy: SandboxPolicy,
    /// Paths that the command must not create.
    pub(super) never: Vec<PathBuf>,
    /// Existing repositories.
    pub(super) repositories: Vec<PathBuf>,
}

impl From<SandboxConfig> for SessionSandbox {
    fn from(config: SandboxConfig) -> SessionSandbox {
        SessionSandbox { config, scan: Mutex::default(), effective: OnceLock::new() }
    }
}

impl SessionSandbox {
    /// Configuration of the sandbox.
    pub fn config(&self) -> &SandboxConfig {
        &self.config
    }

    /// Sandbox mechanism for commands; none if commands could change the helper.
    pub(crate) fn effective_sandbox(&self) -> &Sandbox {
        self.effective.get_or_init(|| match self.config.probe.sandbox() {
            Sandbox::Landlock { .. } if self.is_helper_writable() => Sandbox::None {
                why: format!(
                    "{} puts it up and lies where commands may write, which Landlock cannot prevent: install it elsewhere",
                    self.config.helper.display()
                ),
            },
            mechanism => mechanism.clone(),
        })
    }

    /// Returns whether read-only commands can run in a sandbox.
    pub fn can_confine_read_only(&self) -> bool {
        self.config.probe.thread_sandbox().is_some()
            || !matches!(self.effective_sandbox(), Sandbox::None { .. })
    }

    fn is_helper_writable(&self) -> bool {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let helper = real(&self.config.helper);
        self.config.policy.writable.iter().any(|open| helper.starts_with(real(open)))
    }

    /// Policy of a command that starts now. `readable` lists files outside the project that rules allow to
    /// read.
    pub(super) fn command_policy(&self, level: SandboxLevel, readable: &[PathBuf]) -> CommandPolicy {
        let found = self.scan_roots();
        let mut hidden = found.credentials.clone();
        if level != SandboxLevel::ReadOnly {
            hidden.extend(self.config.home.as_deref().map(home_credentials).unwrap_or_default());
        }
        let mut planted = GuardedPaths::default();
        if level != SandboxLevel::ReadOnly {
            for root in &self.config.guarded {
                let GuardedPaths { read_only, must_not_exist: never } = GuardedPaths::of_workspace(root);
                planted.read_only.extend(read_only);
                planted.must_not_exist.extend(never);
            }
            for git in &found.repositories {
                planted.read_only.extend(GuardedPaths::of_repository(git).read_only);
            }
        }
        let mut policy = match level {
            SandboxLevel::ReadOnly => {
                let mut visible = self.config.guarded.clone();
                visible.extend(self.repositories_above());
                visible.extend(visible.clone().iter().flat_map(|root| external_git_dirs(root)));
                visible.extend(self.config.visible.iter().chain(readable).cloned());
                // A rule that names a credential file makes it readable.
                hidden.retain(|path| !readable.contains(path));
                SandboxPolicy::read_only(&visible)
            }
            SandboxLevel::WorkspaceWrite => {
                let mut policy = self.config.policy.clone();
                policy.read_only.extend(planted.read_only);
                // The home may be inside a writable path.
                policy
                    .read_only
                    .extend(self.config.home.as_deref().map(home_startup_files).unwrap_or_default());
                if self.is_helper_writable() {
                    policy.read_only.push(self.config.helper.clone());
                }
                policy
            }
            SandboxLevel::Guarded | SandboxLevel::Full => {
                let mut read_only = planted.read_only;
                read_only.extend(self.config.home.as_deref().map(home_startup_files).unwrap_or_default());
                read_only.extend(self.config.own.clone());
                SandboxPolicy::guarded(read_only, Vec::new())
            }
        };
        policy.hidden.extend(hidden);
        policy.mask.clone_from(&self.config.mask);
        let never = match level {
            SandboxLevel::WorkspaceWrite => planted.must_not_exist,
            SandboxLevel::Guarded => {
                let at_home = self.config.home.as_deref().map(missing_startup_files);
                planted.must_not_exist.into_iter().chain(at_home.unwrap_or_default()).collect()
            }
            SandboxLevel::ReadOnly | SandboxLevel::Full => Vec::new(),
        };
        CommandPolicy { policy, never, repositories: found.repositories }
    }

    /// Repositories that contain roots: git reads all of their files.
    fn repositories_above(&self) -> Vec<PathBuf> {
        let home = self.config.home.as_deref();
        self.config.guarded.iter().filter_map(|root| enclosing_repository(root, home)).collect()
    }

    /// Scans the roots for credentials and repositories.
    pub(super) fn scan_roots(&self) -> ProjectFindings {
        let mut scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = ProjectFindings::default();
        for root in self.config.guarded.iter().cloned().chain(self.repositories_above()) {
            let found = scan.scan(&root);
            all.credentials.extend(found.credentials);
            all.repositories.extend(found.repositories);
            all.is_cut |= found.is_cut;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_cannot_change_the_sandbox_helper() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let helper = root.join("pal");
        std::fs::write(&helper, "").unwrap();
        let check = |mechanism: Sandbox, writable: PathBuf| {
            let policy = SandboxPolicy { writable: vec![writable], ..SandboxPolicy::default() };
            let helper = helper.clone();
            let config =
                SandboxConfig { probe: mechanism.into(), policy, helper, ..SandboxConfig::default() };
            let sandbox = SessionSandbox::from(config);
            let CommandPolicy { policy, .. } = sandbox.command_policy(SandboxLevel::WorkspaceWrite, &[]);
            (sandbox.effective_sandbox().clone(), policy.read_only)
        };
        let elsewhere = root.join("elsewhere");
        let landlock = Sandbox::Landlock { abi: 1 };
        let bubblewrap = Sandbox::Bubblewrap { program: "/usr/bin/bwrap".into() };
        assert_eq!(check(landlock.clone(), elsewhere.clone()), (landlock.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), elsewhere), (bubblewrap.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), root.clone()), (bubblewrap, vec![helper.clone()]));
        let (mechanism, _) = check(landlock, root);
        assert!(
            matches!(&mechanism, Sandbox::None { why } if why.contains("install it elsewhere")),
            "{mechanism}"
        );
    }
}
