//! Suggestion of the rule that would allow a command.

use super::{ShellWord, find_escape, is_interpreter};

/// Programs whose first argument is a subcommand.
const SUBCOMMAND_PROGRAMS: [&str; 34] = [
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "go",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "make",
    "just",
    "gh",
    "brew",
    "apt",
    "apt-get",
    "dotnet",
    "rustup",
    "terraform",
    "aws",
    "gcloud",
    "systemctl",
    "mvn",
    "gradle",
    "bundle",
    "rake",
    "mix",
    "composer",
];

/// Programs whose calls are allowed only one by one.
const SINGLE_CALL_PROGRAMS: [&str; 31] = [
    "rm", "rmdir", "mv", "dd", "chmod", "chown", "kill", "pkill", "killall", "curl", "wget", "tee", "ln",
    "grep", "egrep", "fgrep", "rg", "truncate", "shred", "mkfs", "reboot", "cp", "install", "sed", "gsed",
    "awk", "rsync", "patch", "tar", "unzip", "touch",
];

/// Suggests the narrowest sensible rule for a command; `None` if only the whole line can be allowed.
pub(crate) fn suggest_rule(words: &[ShellWord]) -> Option<String> {
    let name = words.first()?.text()?;
    // It runs its input: its name alone would allow anything.
    if is_interpreter(name) && words.len() == 1 {
        return None;
    }
    let n_known = words.iter().take_while(|word| word.text().is_some()).count();
    let is_plain =
        |idx: usize| words.get(idx).is_some_and(|word| word.is_plain() && !word.raw.starts_with('-'));
    let reach = find_escape(words).map(|(idx, _)| idx);
    let mut n_words = 1;
    if SUBCOMMAND_PROGRAMS.contains(&name) && is_plain(1) {
        n_words = if is_plain(2) && words.get(1).is_some_and(|word| word.raw == "run") { 3 } else { 2 };
    } else if is_module(words) {
        n_words = 3;
    } else if is_interpreter(name) && is_plain(1) {
        // Only this script.
        n_words = 2;
    }
    // A leading option decides what the program does.
    let is_by_option =
        n_words == 1 && (SUBCOMMAND_PROGRAMS.contains(&name) || is_interpreter(name)) && words.len() > 1;
    let is_alone =
        SINGLE_CALL_PROGRAMS.contains(&name) || is_by_option || reach.is_some_and(|idx| idx >= n_words);
    if is_alone && n_known == words.len() && reach.is_none_or(|idx| idx < words.len()) {
        return Some(format!("Bash({})", joined(words)));
    }
    if let Some(idx) = reach {
        n_words = n_words.max(idx + 1);
    } else if is_alone {
        n_words = n_known;
    }
    (n_words <= n_known).then(|| format!("Bash({}:*)", joined(&words[..n_words])))
}

/// Returns whether it runs a Python module, which counts as a program of its own.
fn is_module(words: &[ShellWord]) -> bool {
    let is = |idx: usize, text: &str| words.get(idx).is_some_and(|word| word.raw.starts_with(text));
    is(0, "python") && is(1, "-m") && words.get(2).is_some_and(ShellWord::is_plain)
}

fn joined(words: &[ShellWord]) -> String {
    words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ")
}
