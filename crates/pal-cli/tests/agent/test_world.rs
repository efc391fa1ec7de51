//! A scratch repository, a home of its own, and the program in it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use pal_agent_testkit::{ProviderSetup, TestProvider};

/// Longer is a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Home, project and provider of one test; removed on drop.
pub(crate) struct TestWorld {
    folder: tempfile::TempDir,
    pub(crate) provider: TestProvider,
}

/// Exit code and output of a run of the program.
#[must_use = "look at what the program said"]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl RunOutput {
    /// The lines of `stream-json`.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }
}

impl TestWorld {
    pub(crate) fn new(made: ProviderSetup) -> TestWorld {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "pal", "repository/src"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        if !made.cards.is_empty() {
            std::fs::write(folder.path().join("pal/models.toml"), &made.cards).unwrap();
        }
        let world = TestWorld { folder, provider: TestProvider::start(made) };
        world.file("README.md", "# Scratch\n\nA repository of a few files.\n");
        world.file("src/lib.rs", "/// Adds.\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n");
        world.git(&["init", "--quiet"]);
        world
    }

    /// Runs git in the repository.
    pub(crate) fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.repository());
        let _ = self.hermetic(&mut git).status();
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The program's own folder.
    pub(crate) fn pal(&self) -> PathBuf {
        self.folder.path().join("pal")
    }

    /// Writes a file of the repository.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.repository().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The text of a file of the repository; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.repository().join(name)).unwrap_or_default()
    }

    fn hermetic<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path().join("home")).env("LANG", "C.UTF-8");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// The program at work in the repository, with nothing of our own environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pal"));
        self.hermetic(&mut command).args(arguments).current_dir(self.repository());
        command.env("PAL_HOME", self.pal()).env("ANTHROPIC_API_KEY", "simulated");
        // Patience is the business of people.
        command.env("PAL_MAX_RETRIES", "2");
        // What is asked behind the back of a conversation is the business of tests that are about it.
        command.env("PAL_EXTRACTION", "false").env("PAL_DREAMING", "false");
        command.env("ANTHROPIC_BASE_URL", &self.provider.address);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `pal -p` with more arguments, to its end. Everything is allowed, and nothing is fenced in, unless told.
    pub(crate) fn run(&self, arguments: &[&str]) -> RunOutput {
        finish(self.spawn(arguments))
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(&[&["-p"], arguments].concat()).spawn().unwrap()
    }

    /// The logs of all sessions.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.pal()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|name| name == "log.jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The lines of the only session's log.
    pub(crate) fn log(&self) -> Vec<Value> {
        let logs = self.logs();
        assert_eq!(logs.len(), 1, "{logs:?}");
        log_lines(&logs[0])
    }
}

/// The whole lines of a log.
pub(crate) fn log_lines(path: &Path) -> Vec<Value> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for the end of a run; one that takes too long is ended, and the test fails.
pub(crate) fn finish(mut child: Child) -> RunOutput {
    let out = reader(child.stdout.take());
    let err = reader(child.stderr.take());
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the program hangs\n{}\n{}", out.join().unwrap(), err.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    RunOutput { code: status.code().unwrap_or(-1), out: out.join().unwrap(), err: err.join().unwrap() }
}

/// Reads all that comes, on a thread of its own.
pub(crate) fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
