//! Runs one read-only git command with a deadline.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes of an answer that are read; a list of files may be of any length.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// Interval between checks of a command that has closed its output.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Variables that would send git elsewhere than to the directory, or give it settings of another command.
const REMOVED_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_EXTERNAL_DIFF",
    "GIT_ATTR_SOURCE",
];

/// Settings for every command.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    // Names with other than plain letters come quoted, whatever the repository says.
    ("core.quotePath", "true"),
    ("log.showSignature", "false"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    // A directory in a checkout can be made to look like a bare repository with a configuration of its own.
    ("safe.bareRepository", "explicit"),
];

/// Where and until when git commands run.
pub(super) struct GitCall {
    pub(super) directory: PathBuf,
    pub(super) deadline: Instant,
    /// Settings that go before all others.
    pub(super) overrides: Vec<(String, String)>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum GitFailure {
    /// The deadline passed.
    Slow,
    /// There is no git.
    Missing,
    /// Git failed; with its error output.
    Failed(String),
}

/// Output of a git command.
pub(super) fn run_git(call: &GitCall, arguments: &[&str]) -> Result<String, GitFailure> {
    let mut child = command(call, arguments).spawn().map_err(|err| match err.kind() {
        std::io::ErrorKind::NotFound => GitFailure::Missing,
        kind => GitFailure::Failed(kind.to_string()),
    })?;
    let output = spawn_reader(child.stdout.take());
    let trouble = spawn_reader(child.stderr.take());
    let text = output.recv_timeout(time_left(call));
    let ended = wait_for_exit(&mut child, call);
    match (text, ended) {
        (Ok(text), Some(true)) => Ok(text),
        // The rest was not read, so the command could not end well.
        (Ok(text), _) if text.len() as u64 >= OUTPUT_BYTES_MAX => Ok(text),
        (Ok(_), Some(false)) => {
            let said = trouble.recv_timeout(Duration::from_millis(10)).unwrap_or_default();
            Err(GitFailure::Failed(said.trim().to_owned()))
        }
        _ => Err(GitFailure::Slow),
    }
}

fn command(call: &GitCall, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["--no-optional-locks", "--no-pager", "--literal-pathspecs", "-C"])
        .arg(&call.directory)
        .args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in REMOVED_VARIABLES {
        command.env_remove(variable);
    }
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    // Objects that are missing in a partial clone stay so.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    let overrides = call.overrides.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut count = 0;
    for (key, value) in SETTINGS.iter().copied().chain(overrides) {
        command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
    command
}

/// Reads in a thread of its own, which ends when the command does, since that closes the pipe. Closing our end when
/// enough was read ends a command that goes on writing.
fn spawn_reader(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            // The receiver may be gone, and then the result is not needed.
            let _ = read.map(|_| sender.send(text));
        });
    }
    receiver
}

/// True if the command ended well; none if it had to be ended.
fn wait_for_exit(child: &mut Child, call: &GitCall) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if !time_left(call).is_zero() => thread::sleep(POLL_INTERVAL.min(time_left(call))),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

fn time_left(call: &GitCall) -> Duration {
    call.deadline.saturating_duration_since(Instant::now())
}
