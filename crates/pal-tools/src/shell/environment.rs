//! What the environment of a command has otherwise than ours.
//!
//! A repository's own configuration can name programs that git runs while it only looks. Those that run unseen are
//! switched off for every command, by settings that git ranks above all files: the monitor of the file system (`status`,
//! `diff`, `ls-files`) and the check of signatures (`log`, `show`). Locks that are not needed are not taken, so that
//! `status` writes no index, and the hook for that does not run. What a commit, a checkout or a fetch runs stays as it
//! is: those are asked about. Not held back are `diff.external`, which git takes no empty value for; filters and text
//! conversions, which have names of their own; and the hook of a written index under `diff`, whose answers would change
//! without it. All of these come with an unpacked folder, never with a clone.

use std::ffi::{OsStr, OsString};

use super::Variable;

/// Set for every command: nothing pages, nothing asks, nothing opens an editor, no lock is taken without need.
const SET: [(&str, &str); 8] = [
    ("PAL", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("TERM", "dumb"),
];

/// Unset for every command: they change what a command line means from what it was judged by.
const UNSET: [&str; 4] = ["CDPATH", "BASH_ENV", "ENV", "POSIXLY_CORRECT"];

/// How many settings of git are in the environment; their names and values are numbered.
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// Settings of git, over those of every file.
const GIT: [(&str, &str); 2] = [("core.fsmonitor", "false"), ("log.showSignature", "false")];

/// Settings of git for read-only commands, besides.
const NEUTRAL: [(&str, &str); 6] = [
    ("gpg.program", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("safe.directory", "*"),
];

/// Where keys are by name: commands have no use for them unless the user says so, and what they print goes to the
/// provider. A `*` stands for anything; large and small letters are the same.
const HIDDEN: [&str; 8] = [
    "ANTHROPIC_*",
    "OPENAI_*",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "*_TOKEN",
    "*_SECRET*",
    "*_KEY",
    "*PASSWORD*",
    "*_CREDENTIALS*",
];

/// The changes to an environment with these variables. `hidden` are names, with a `*` for anything; `!` before one lets it
/// through, whatever else is said of it.
pub(super) fn changes(
    variables: impl Iterator<Item = (OsString, OsString)>,
    hidden: &[String],
) -> Vec<Variable> {
    let (mut changes, mut git_count) = (Vec::new(), 0);
    for (name, value) in variables {
        if name == GIT_COUNT {
            git_count = value.to_str().and_then(|count| count.parse().ok()).unwrap_or(0);
        }
        if is_hidden(&name, hidden) || UNSET.iter().any(|unset| name == *unset) {
            changes.push((name, None));
        }
    }
    // What is set comes last, and wins.
    changes.extend(SET.map(|(name, value)| (name.into(), Some(value.into()))));
    // Behind what the user gave git in the same way.
    for (number, (name, value)) in (git_count..).zip(GIT) {
        changes.push((format!("GIT_CONFIG_KEY_{number}").into(), Some(name.into())));
        changes.push((format!("GIT_CONFIG_VALUE_{number}").into(), Some(value.into())));
    }
    changes.push((GIT_COUNT.into(), Some((git_count + GIT.len()).to_string().into())));
    changes
}

/// What a read-only command gets besides: nothing that the user or a repository configured runs in its place. Whose
/// repository it is does not matter where nothing can be changed.
pub(super) fn neutral() -> Vec<Variable> {
    let set = |name: &str, value: &str| (name.into(), Some(value.into()));
    let mut variables = vec![set("GIT_CONFIG_GLOBAL", "/dev/null"), set("GIT_ATTR_NOSYSTEM", "1")];
    let settings: Vec<_> = GIT.iter().chain(&NEUTRAL).collect();
    for (number, (name, value)) in settings.iter().enumerate() {
        variables.push(set(&format!("GIT_CONFIG_KEY_{number}"), name));
        variables.push(set(&format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    variables.push(set(GIT_COUNT, &settings.len().to_string()));
    for name in
        ["RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "LESSOPEN", "LD_PRELOAD", "GIT_EXTERNAL_DIFF", "GIT_DIR"]
    {
        variables.push((name.into(), None));
    }
    variables
}

/// The variables of ours that programs get to see: all but those that hold keys. `hidden` is as for commands.
pub fn open_variables(hidden: &[String]) -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !is_hidden(name, hidden)).collect()
}

fn is_hidden(name: &OsStr, hidden: &[String]) -> bool {
    let name = name.as_encoded_bytes();
    let says = |pattern: &str| matches(name, pattern.as_bytes());
    if hidden.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(says) {
        return false;
    }
    let large = name.to_ascii_uppercase();
    HIDDEN.iter().any(|pattern| matches(&large, pattern.as_bytes()))
        || hidden.iter().any(|pattern| says(pattern))
}

/// Whether a name is what a pattern says, with a `*` for anything.
fn matches(name: &[u8], pattern: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return name == pattern };
    let (beginning, rest) = (&pattern[..star], &pattern[star + 1..]);
    let Some(name) = name.strip_prefix(beginning) else { return false };
    (0..=name.len()).any(|skipped| matches(&name[skipped..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(names: &[&str], hidden: &[&str]) -> Vec<String> {
        let hidden: Vec<String> = hidden.iter().map(|pattern| (*pattern).to_owned()).collect();
        let variables = names.iter().map(|name| (OsString::from(name), OsString::from("v")));
        let changes = changes(variables, &hidden).into_iter();
        let gone = changes.filter(|(_, value)| value.is_none());
        gone.filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    #[test]
    fn keys_are_taken_away() {
        let secrets = [
            "ANTHROPIC_API_KEY",
            "OPENAI_BASE_URL",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "CLIENT_SECRET",
            "SSH_KEY",
            "PGPASSWORD",
            "db_password_file",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ];
        assert_eq!(gone(&secrets, &[]), secrets);
        let open = ["HOME", "MY_KEYRING", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENS", "SECRETARY", "PAL"];
        assert!(gone(&open, &[]).is_empty());
        assert_eq!(gone(&["MINE", "TEAM_A", "A_TEAM"], &["MINE", "TEAM_*"]), ["MINE", "TEAM_A"]);
    }

    #[test]
    fn what_the_user_lets_through_is_seen() {
        let names = ["GITHUB_TOKEN", "NPM_TOKEN", "OPENAI_API_KEY", "MINE"];
        assert_eq!(gone(&names, &["!GITHUB_TOKEN", "MINE", "!M*"]), ["NPM_TOKEN", "OPENAI_API_KEY"]);
        assert_eq!(gone(&names, &["!OPENAI_*"]), ["GITHUB_TOKEN", "NPM_TOKEN"]);
    }

    #[test]
    fn what_the_user_gave_git_stays() {
        let variables = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_VALUE_0", "c")];
        let changes = changes(variables.map(|(name, value)| (name.into(), value.into())).into_iter(), &[]);
        let set = |name: &str| changes.iter().rfind(|(changed, _)| changed == name).cloned();
        assert_eq!(set("GIT_CONFIG_KEY_0"), None);
        assert_eq!(set("GIT_CONFIG_KEY_1"), Some(("GIT_CONFIG_KEY_1".into(), Some("core.fsmonitor".into()))));
        assert_eq!(set("GIT_CONFIG_COUNT"), Some(("GIT_CONFIG_COUNT".into(), Some("3".into()))));
    }
}
