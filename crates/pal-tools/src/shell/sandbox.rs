//! The sandbox of a session's commands: one policy for each level, made when a command starts.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use pal_permissions::SandboxLevel;
use pal_sandbox::{
    Fence, Planted, Policy, ProjectFindings, ProjectScan, SandboxProbe, enclosing_repository,
    home_credentials, home_startup_files, missing_startup_files, repository_elsewhere,
};

/// What the sandbox of a session lets through.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// What this machine can do.
    pub probe: SandboxProbe,
    /// What commands may do that may change the project.
    pub policy: Policy,
    /// Roots in which commands may plant nothing that runs later without a sandbox ([`pal_sandbox::Planted`]).
    pub guarded: Vec<PathBuf>,
    /// What read-only commands see besides the roots: results that the session put aside, and memories.
    pub visible: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The program's own folder.
    pub own: Option<PathBuf>,
    /// The program that closes the sandbox from inside: our own ([`pal_sandbox::enter_and_exec`]).
    pub helper: PathBuf,
    /// A file that nobody may read, which stands in the place of hidden ones.
    pub mask: Option<PathBuf>,
}

/// The sandbox of a session.
#[derive(Debug)]
pub struct Sandbox {
    config: SandboxConfig,
    scan: Mutex<ProjectScan>,
    checked: OnceLock<Fence>,
}

/// What one command may do, and what the project was like before it.
pub(super) struct CommandPolicy {
    pub(super) policy: Policy,
    /// What must not come to be while the command runs.
    pub(super) never: Vec<PathBuf>,
    /// Repositories that are there.
    pub(super) repositories: Vec<PathBuf>,
}

impl From<SandboxConfig> for Sandbox {
    fn from(config: SandboxConfig) -> Sandbox {
        Sandbox { config, scan: Mutex::default(), checked: OnceLock::new() }
    }
}

impl Sandbox {
    /// What it lets through.
    pub fn config(&self) -> &SandboxConfig {
        &self.config
    }

    /// The fence around commands. There is none if commands could change the program that puts it up.
    pub fn fence(&self) -> &Fence {
        self.checked.get_or_init(|| match self.config.probe.fence() {
            Fence::Landlock { .. } if self.is_helper_writable() => Fence::None {
                why: format!(
                    "{} puts it up and lies where commands may write, which Landlock cannot prevent: install it elsewhere",
                    self.config.helper.display()
                ),
            },
            fence => fence.clone(),
        })
    }

    /// Whether commands that nobody allowed can be put into a sandbox.
    pub fn holds_read_only(&self) -> bool {
        self.config.probe.thread_sandbox().is_some() || !matches!(self.fence(), Fence::None { .. })
    }

    fn is_helper_writable(&self) -> bool {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let helper = real(&self.config.helper);
        self.config.policy.writable.iter().any(|open| helper.starts_with(real(open)))
    }

    /// What a command of a level may do that starts now. Files outside the project that rules allow to read are
    /// `readable`.
    pub(super) fn policy(&self, level: SandboxLevel, readable: &[PathBuf]) -> CommandPolicy {
        let found = self.findings();
        let mut hidden = found.credentials.clone();
        if level != SandboxLevel::ReadOnly {
            hidden.extend(self.config.home.as_deref().map(home_credentials).unwrap_or_default());
        }
        let mut planted = Planted::default();
        if level != SandboxLevel::ReadOnly {
            for root in &self.config.guarded {
                let Planted { read_only, never } = Planted::look(root);
                planted.read_only.extend(read_only);
                planted.never.extend(never);
            }
            for git in &found.repositories {
                planted.read_only.extend(Planted::look_at_repository(git).read_only);
            }
        }
        let mut policy = match level {
            SandboxLevel::ReadOnly => {
                let mut visible = self.config.guarded.clone();
                visible.extend(self.repositories_above());
                visible.extend(visible.clone().iter().flat_map(|root| repository_elsewhere(root)));
                visible.extend(self.config.visible.iter().chain(readable).cloned());
                // A rule that names a file with credentials opens it.
                hidden.retain(|path| !readable.contains(path));
                Policy::read_only(&visible)
            }
            SandboxLevel::WorkspaceWrite => {
                let mut policy = self.config.policy.clone();
                policy.read_only.extend(planted.read_only);
                // A home may lie where commands may write.
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
                Policy::guarded(read_only, Vec::new())
            }
        };
        policy.hidden.extend(hidden);
        policy.mask.clone_from(&self.config.mask);
        let never = match level {
            SandboxLevel::WorkspaceWrite => planted.never,
            SandboxLevel::Guarded => {
                let at_home = self.config.home.as_deref().map(missing_startup_files);
                planted.never.into_iter().chain(at_home.unwrap_or_default()).collect()
            }
            SandboxLevel::ReadOnly | SandboxLevel::Full => Vec::new(),
        };
        CommandPolicy { policy, never, repositories: found.repositories }
    }

    /// The repositories that roots lie in: git looks at all of their files.
    fn repositories_above(&self) -> Vec<PathBuf> {
        let home = self.config.home.as_deref();
        self.config.guarded.iter().filter_map(|root| enclosing_repository(root, home)).collect()
    }

    /// Credentials and repositories in the roots.
    pub(super) fn findings(&self) -> ProjectFindings {
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
    fn the_program_that_puts_the_fence_up_cannot_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let helper = root.join("pal");
        std::fs::write(&helper, "").unwrap();
        let check = |fence: Fence, writable: PathBuf| {
            let policy = Policy { writable: vec![writable], ..Policy::default() };
            let helper = helper.clone();
            let config = SandboxConfig { probe: fence.into(), policy, helper, ..SandboxConfig::default() };
            let sandbox = Sandbox::from(config);
            let CommandPolicy { policy, .. } = sandbox.policy(SandboxLevel::WorkspaceWrite, &[]);
            (sandbox.fence().clone(), policy.read_only)
        };
        let elsewhere = root.join("elsewhere");
        let landlock = Fence::Landlock { abi: 1 };
        let bubblewrap = Fence::Bubblewrap { program: "/usr/bin/bwrap".into() };
        assert_eq!(check(landlock.clone(), elsewhere.clone()), (landlock.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), elsewhere), (bubblewrap.clone(), Vec::new()));
        assert_eq!(check(bubblewrap.clone(), root.clone()), (bubblewrap, vec![helper.clone()]));
        let (fence, _) = check(landlock, root);
        assert!(matches!(&fence, Fence::None { why } if why.contains("install it elsewhere")), "{fence}");
    }
}
