//! A project in a hostile world: a home with keys, a folder outside, a repository that runs programs, and somebody who
//! listens.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use pal_permissions::{
    Ground, Mode, Need, Request, Rules, SandboxLevel, SandboxPolicy, SandboxState, Verdict, judge,
};
use pal_process::{Cancel, Finished, Input, Keep, Program, Spec, Streams, run};
use pal_sandbox::{Fence, Planted, Policy, ProjectScan, SandboxProbe, ThreadSandbox, home_credentials};

/// What only files with credentials, and variables, hold.
pub(crate) const SECRET: &str = "CANARY-5f2e";

/// The project and what is around it.
pub(crate) struct Fixture {
    _folder: tempfile::TempDir,
    pub(crate) fence: Fence,
    /// Whether the thread that starts a command shuts it in.
    by_thread: Option<ThreadSandbox>,
    pub(crate) project: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: PathBuf,
    mask: PathBuf,
    listener: TcpListener,
    victim: Child,
}

/// Everything that can be seen of a file from outside.
type Snapshot = BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)>;

impl Fixture {
    pub(crate) fn new(fence: Fence) -> Fixture {
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
        let fixture = Fixture {
            _folder: folder,
            fence,
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

    /// A repository whose configuration runs a program wherever git lets it.
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

    /// A command of the lists, with its places filled in.
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

    /// What permissions say to a command, on this disk.
    pub(crate) fn judge(&self, command: &str, mode: Mode, rules: &Rules) -> Verdict {
        let needs = [Need::Run(String::from(command))];
        self.with_ground(|ground| judge(&Request { tool: "Bash", needs: &needs, mode }, rules, ground))
    }

    pub(crate) fn with_ground<T>(&self, ask: impl FnOnce(&Ground<'_>) -> T) -> T {
        let resolve = |named: &str, directory: &Path| real(&directory.join(named));
        ask(&Ground {
            roots: vec![self.project.clone()],
            home: Some(self.home.clone()),
            session: self.home.join(".palimpsest/projects/p/sessions"),
            own: Some(self.home.join(".palimpsest")),
            memory: None,
            directory: self.project.clone(),
            resolve: &resolve,
            is_folder: &Path::is_dir,
            sandbox: SandboxPolicy { state: SandboxState::Available, ..SandboxPolicy::default() },
        })
    }

    /// What a command of a level may do.
    pub(crate) fn policy(&self, level: SandboxLevel) -> Policy {
        let found = ProjectScan::default().scan(&self.project);
        let mut policy = match level {
            SandboxLevel::ReadOnly => Policy::read_only(std::slice::from_ref(&self.project)),
            _ => {
                let mut policy = Policy { writable: vec![self.project.clone()], ..Policy::default() };
                policy.read_only = Planted::look(&self.project).read_only;
                for git in &found.repositories {
                    policy.read_only.extend(Planted::look_at_repository(git).read_only);
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

    /// Runs a line of the shell in the project, in the sandbox of a policy.
    pub(crate) fn shell(&self, line: &str, policy: &Policy) -> Finished {
        self.shell_within(line, policy, Duration::from_secs(3))
    }

    pub(crate) fn shell_within(&self, line: &str, policy: &Policy, limit: Duration) -> Finished {
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
        let helper = Path::new(env!("CARGO_BIN_EXE_pal-fenced"));
        let spec = Spec {
            program: match self.by_thread.filter(|_| policy.changes_nothing) {
                Some(sandbox) => sandbox.confine(program, policy),
                None => self.fence.wrap(program, policy, helper).expect("a sandbox"),
            },
            input: Input::Nothing,
            streams: Streams::Merged,
            keep: Keep::up_to(200_000),
            limit: Some(limit),
        };
        run(spec, &Cancel::new(), &|_| ()).expect("it starts")
    }

    /// What there is in a folder.
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

    /// Whether somebody came to the port.
    pub(crate) fn was_reached(&self) -> bool {
        self.listener.accept().is_ok()
    }

    /// Whether the process that stands for all others goes on.
    pub(crate) fn victim_lives(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state == Some('S')
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Where a path leads, links followed as far as it exists.
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

/// A fixture behind each fence of this machine.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let landlock = Fence::detect_landlock().expect("these tests need a kernel with Landlock and seccomp");
    let mut fixtures = vec![Fixture::new(landlock.clone())];
    // What this kernel puts up by itself, and what the oldest one would that can.
    if let Some(newest) = SandboxProbe::default().thread_sandbox() {
        for sandbox in [newest, newest.of_abi(ThreadSandbox::OLDEST)] {
            let mut fixture = Fixture::new(landlock.clone());
            fixture.by_thread = Some(sandbox);
            fixtures.push(fixture);
        }
    }
    match Fence::detect() {
        bubblewrap @ Fence::Bubblewrap { .. } => fixtures.push(Fixture::new(bubblewrap)),
        _ => eprintln!("NOT TESTED: bubblewrap does not work on this machine"),
    }
    fixtures
}
