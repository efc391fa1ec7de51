//! Git commands that change a repository, such as those for worktrees.

use std::path::Path;
use std::process::Command;

/// Runs git without hooks and other programs that the repository configures. Returns its output, or its error message.
pub fn run_git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(arguments).env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    let output = command.output().map_err(|error| format!("git: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
