//! The rule that would allow a command.

use super::{Word, hatch, is_interpreter};

/// Programs whose first argument says what they do.
const BY_COMMAND: [&str; 34] = [
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

/// Programs of which every call is another matter.
const ONE_BY_ONE: [&str; 31] = [
    "rm", "rmdir", "mv", "dd", "chmod", "chown", "kill", "pkill", "killall", "curl", "wget", "tee", "ln",
    "grep", "egrep", "fgrep", "rg", "truncate", "shred", "mkfs", "reboot", "cp", "install", "sed", "gsed",
    "awk", "rsync", "patch", "tar", "unzip", "touch",
];

/// The narrowest sensible rule that would allow a command; nothing if only the whole line can be allowed.
pub(crate) fn rule_for(words: &[Word]) -> Option<String> {
    let name = words.first()?.text()?;
    // It runs what it reads: its name alone would allow anything.
    if is_interpreter(name) && words.len() == 1 {
        return None;
    }
    let n_known = words.iter().take_while(|word| word.text().is_some()).count();
    let is_plain =
        |idx: usize| words.get(idx).is_some_and(|word| word.is_plain() && !word.raw.starts_with('-'));
    let reach = hatch(words).map(|(idx, _)| idx);
    let mut n_words = 1;
    if BY_COMMAND.contains(&name) && is_plain(1) {
        n_words = if is_plain(2) && words.get(1).is_some_and(|word| word.raw == "run") { 3 } else { 2 };
    } else if is_module(words) {
        n_words = 3;
    } else if is_interpreter(name) && is_plain(1) {
        // The script, not whatever else it could run.
        n_words = 2;
    }
    // An option in front says what the program does: only with it is the command known.
    let is_by_option =
        n_words == 1 && (BY_COMMAND.contains(&name) || is_interpreter(name)) && words.len() > 1;
    let is_alone = ONE_BY_ONE.contains(&name) || is_by_option || reach.is_some_and(|idx| idx >= n_words);
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

/// Whether a module of Python is run, which is like a program of its own.
fn is_module(words: &[Word]) -> bool {
    let is = |idx: usize, text: &str| words.get(idx).is_some_and(|word| word.raw.starts_with(text));
    is(0, "python") && is(1, "-m") && words.get(2).is_some_and(Word::is_plain)
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ")
}
