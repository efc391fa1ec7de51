//! Scratch project with a home with keys, an outside folder, a repository that runs programs, and a listening
//! port.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use pal_permissions::{
    PermissionContext, PermissionMode, PermissionRequest, RuleSet, SandboxLevel, SandboxLimits, SandboxState,
    ToolAccess, Verdict, authorize,
};
use pal_process::sandbox::{
    GuardedPaths, ProjectScan, Sandbox, SandboxPolicy, SandboxProbe, ThreadSandbox, home_credentials,
};
use pal_process::{
    CancelToken, CaptureLimits, CommandInput, CommandOutcome, CommandSpec, Program, StreamMode, run_command,
};

/// Secret that only credential files and variables contain.
pub(crate) const SECRET: &str = "CANARY-5f2e";

/// Project with its surroundings.
pub(crate) struct ProjectFixture {
    _folder: tempfile::TempDir,
    pub(crate) sandbox: Sandbox,
    /// Thread sandbox, if the starting thread confines the command.
    by_thread: Option<ThreadSandbox>,
    pub(crate) project: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: PathBuf,
    mask: PathBuf,
    listener: TcpListener,
    victim: Child,
}

/// Visible attributes and content of files.
type Snapshot = BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)>;

impl ProjectFixture {
    pub(crate) fn new(sandbox: Sandbox) -> ProjectFixture {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("it is there");
        let [project, home, outside] = ["project", "home", "outside"].map(|name| {
            std::fs::create_dir(real.join(name)).expect("made");
            real.join(name)
        });
        let mask = real.join("mask");
        std::fs::write(&mask, "hidden").expect("written");
        std::fs::set_permissions(&mask, std::fs::Permissions::from_mode(0o000)).expect("set");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let victim = Command::new("sleep").arg("3600").spawn().expect("it starts");
        let fixture = ProjectFixture {
            _folder: folder,
            sandbox,
            by_thread: None,
            project,
            home,
            outside,
            mask,
            listener,
            victim,
        };
        fixture.fill();
        fixture
    }

    fn fill(&self) {
        let secret = |name: &str| format!("{SECRET} of {name}\n");
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        for name in [".ssh/id_rsa", ".aws/credentials", ".netrc", ".palimpsest/settings.toml", ".gnupg/key"] {
            write(self.home.join(name), &secret(name));
        }
        for name in [".bashrc", ".profile", ".gitconfig", "notes.md"] {
            write(self.home.join(name), "# as it was\n");
        }
        write(self.outside.join("file"), &secret("outside"));
        let evil = format!(
            "#!/bin/sh\ntouch {0}/evil\ncat {1}/.ssh/id_rsa\n",
            self.outside.display(),
            self.home.display()
        );
        let project = |name: &str| self.project.join(name);
        write(project("README.md"), "Hello.\nAs it was.\n");
        write(project("src/main.rs"), "fn main() {}\n");
        write(project(".env"), &secret(".env"));
        write(project("server.pem"), &secret("server.pem"));
        for name in ["evil", "src/evil.sh", "src/evil.py", "ls", "git"] {
            write(project(name), &evil);
            std::fs::set_permissions(project(name), std::fs::Permissions::from_mode(0o755)).expect("set");
        }
        write(project("--output=.git"), "");
        write(project("rust-toolchain.toml"), "[toolchain]\npath = \"./evil\"\n");
        std::os::unix::fs::symlink(&self.outside, project("link")).expect("made");
        std::os::unix::fs::symlink(&self.home, project("link-home")).expect("made");
        self.repository(&self.project);
        write(project("sub/a.txt"), "a\n");
        self.repository(&project("sub"));
    }

    /// Repository whose configuration runs programs wherever git allows it.
    fn repository(&self, root: &Path) {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command
                .args(arguments)
                .current_dir(root)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1");
            for who in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.com");
            }
            let done = command.output().expect("git is there");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        git(&["init", "-q", "-b", "main", "."]);
        std::fs::write(root.join("tracked.txt"), "one\n").expect("written");
        git(&["add", "tracked.txt"]);
        git(&["commit", "-q", "-m", "First"]);
        std::fs::write(root.join("tracked.txt"), "two\n").expect("written");
        std::fs::write(root.join(".gitattributes"), "*.txt diff=evil filter=evil\n").expect("written");
        let evil = self.project.join("evil");
        let evil = evil.display();
        let config = format!(
            "[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n\thooksPath = {hooks}\n\tsshCommand = {evil}\n\teditor = {evil}\n\
             \talternateRefsCommand = {evil}\n[diff]\n\texternal = {evil}\n[diff \"evil\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n\
             [filter \"evil\"]\n\tclean = {evil}\n\tsmudge = {evil}\n[gpg]\n\tprogram = {evil}\n[log]\n\tshowSignature = true\n\
             [alias]\n\tevil = !{evil}\n[man]\n\tviewer = evil\n[man \"evil\"]\n\tcmd = {evil}\n[pager]\n\tlog = {evil}\n\
             [credential]\n\thelper = !{evil}\n[remote \"origin\"]\n\turl = ext::{evil}\n\tpromisor = true\n[protocol]\n\tallow = always\n",
            hooks = self.project.join("src/hooks").display(),
        );
        let path = root.join(".git/config");
        let text = std::fs::read_to_string(&path).expect("it is there") + &config;
        std::fs::write(path, text).expect("written");
        let hooks = self.project.join("src/hooks");
        std::fs::create_dir_all(&hooks).expect("made");
        for name in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout"] {
            std::fs::copy(self.project.join("evil"), hooks.join(name)).expect("copied");
        }
    }

    /// Fills in the placeholders of a listed command.
    pub(crate) fn fill_in(&self, command: &str) -> String {
        let port = self.listener.local_addr().expect("it has one").port();
        let hidden = [("202e", '\u{202e}'), ("a0", '\u{a0}'), ("200b", '\u{200b}')];
        let mut command = command.replace("\\n", "\n");
        for (code, character) in hidden {
            command = command.replace(&format!("\\u{{{code}}}"), &character.to_string());
        }
        command
            .replace("{OUT}", &self.outside.display().to_string())
            .replace("{HOME}", &self.home.display().to_string())
            .replace("{PORT}", &port.to_string())
            .replace("{PID}", &self.victim.id().to_string())
    }

    /// Verdict on a command in this project.
    pub(crate) fn authorize_command(&self, command: &str, mode: PermissionMode, rules: &RuleSet) -> Verdict {
        let needs = [ToolAccess::Run(String::from(command))];
        self.with_context(|context| {
            authorize(&PermissionRequest { tool: "Bash", needs: &needs, mode }, rules, context)
        })
    }

    pub(crate) fn with_context<T>(&self, ask: impl FnOnce(&PermissionContext<'_>) -> T) -> T {
        let resolve = |named: &str, directory: &Path| real(&directory.join(named));
        ask(&PermissionContext {
            roots: vec![self.project.clone()],
            home: Some(self.home.clone()),
            session: self.home.join(".palimpsest/projects/p/sessions"),
            own: Some(self.home.join(".palimpsest")),
            memory: None,
            directory: self.project.clone(),
            resolve: &resolve,
            is_folder: &Path::is_dir,
            sandbox: SandboxLimits { state: SandboxState::Available, ..SandboxLimits::default() },
        })
    }

    /// Sandbox policy of a level.
    pub(crate) fn policy(&self, level: SandboxLevel) -> SandboxPolicy {
        let found = ProjectScan::default().scan(&self.project);
        let mut policy = match level {
            SandboxLevel::ReadOnly => SandboxPolicy::read_only(std::slice::from_ref(&self.project)),
            _ => {
                let mut policy =
                    SandboxPolicy { writable: vec![self.project.clone()], ..SandboxPolicy::default() };
                policy.read_only = GuardedPaths::of_workspace(&self.project).read_only;
                for git in &found.repositories {
                    policy.read_only.extend(GuardedPaths::of_repository(git).read_only);
                }
                policy.hidden.push(self.home.join(".palimpsest"));
                policy.hidden.extend(home_credentials(&self.home));
                policy
            }
        };
        policy.hidden.extend(found.credentials);
        policy.mask = Some(self.mask.clone());
        policy
    }

    /// Runs a shell line in the project with a policy.
    pub(crate) fn shell(&self, line: &str, policy: &SandboxPolicy) -> CommandOutcome {
        self.shell_within(line, policy, Duration::from_secs(3))
    }

    pub(crate) fn shell_within(&self, line: &str, policy: &SandboxPolicy, limit: Duration) -> CommandOutcome {
        let variables = [
            ("HOME", self.home.as_os_str()),
            ("PWD", self.project.as_os_str()),
            ("GIT_OPTIONAL_LOCKS", "0".as_ref()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".as_ref()),
            ("PAGER", "cat".as_ref()),
        ];
        let program = Program {
            path: "bash".into(),
            arguments: vec!["-c".into(), line.into()],
            directory: self.project.clone(),
            environment: variables
                .iter()
                .map(|(name, value)| ((*name).into(), Some((*value).into())))
                .collect(),
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_sandbox-helper"));
        let spec = CommandSpec {
            program: match self.by_thread.filter(|_| policy.changes_nothing) {
                Some(sandbox) => sandbox.confine(program, policy),
                None => self.sandbox.wrap(program, policy, helper).expect("a sandbox"),
            },
            input: CommandInput::Nothing,
            streams: StreamMode::Merged,
            keep: CaptureLimits::up_to(200_000),
            limit: Some(limit),
        };
        run_command(spec, &CancelToken::new(), &|_| ()).expect("it starts")
    }

    /// Snapshot of a folder.
    pub(crate) fn snapshot(&self, folder: &Path) -> Snapshot {
        let mut snapshot = Snapshot::new();
        let mut left = vec![folder.to_owned()];
        while let Some(path) = left.pop() {
            let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
            let content = match found.is_file() {
                true => std::fs::read(&path).unwrap_or_default(),
                false => Vec::new(),
            };
            if found.is_dir() {
                left.extend(
                    std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()),
                );
            }
            snapshot.insert(path, (found.mode(), found.len(), found.mtime(), found.mtime_nsec(), content));
        }
        snapshot
    }

    /// Returns whether a connection reached the port.
    pub(crate) fn was_reached(&self) -> bool {
        self.listener.accept().is_ok()
    }

    /// Returns whether the witness process is alive.
    pub(crate) fn victim_lives(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state == Some('S')
    }
}

impl Drop for ProjectFixture {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Resolves links as far as a path exists.
fn real(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(clean.pop()),
            other => {
                clean.push(other);
                clean = clean.canonicalize().unwrap_or(clean);
            }
        }
    }
    clean
}

/// Fixtures for each sandbox mechanism of this machine.
pub(crate) fn fixtures() -> Vec<ProjectFixture> {
    let landlock = Sandbox::detect_landlock().expect("these tests need a kernel with Landlock and seccomp");
    let mut fixtures = vec![ProjectFixture::new(landlock.clone())];
    // Thread sandboxes of this kernel and of the oldest supported ABI.
    if let Some(newest) = SandboxProbe::default().thread_sandbox() {
        for sandbox in [newest, newest.of_abi(ThreadSandbox::OLDEST)] {
            let mut fixture = ProjectFixture::new(landlock.clone());
            fixture.by_thread = Some(sandbox);
            fixtures.push(fixture);
        }
    }
    match Sandbox::detect() {
        bubblewrap @ Sandbox::Bubblewrap { .. } => fixtures.push(ProjectFixture::new(bubblewrap)),
        _ => eprintln!("NOT TESTED: bubblewrap does not work on this machine"),
    }
    fixtures
}
