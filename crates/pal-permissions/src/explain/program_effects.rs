//! Classification of programs by their effect on the machine, as far as the words of a command tell.

pub(super) use crate::shell::file_name as name_of;
use crate::shell::{ShellWord, unversioned};

const SHELLS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "pwsh", "busybox",
    "toybox",
];

/// Interpreters that take a program as an argument or as input, without version suffixes.
const INTERPRETERS: [&str; 18] = [
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "tclsh",
    "julia",
    "guile",
    "groovy",
    "elixir",
    "osascript",
];

/// Programs that delete or overwrite their arguments.
const DELETERS: [(&str, &str); 17] = [
    ("rm", "deletes files"),
    ("rmdir", "deletes folders"),
    ("unlink", "deletes a file"),
    ("shred", "overwrites and deletes files"),
    ("srm", "deletes files"),
    ("wipe", "deletes files"),
    ("rimraf", "deletes files"),
    ("trash", "deletes files"),
    ("trash-put", "deletes files"),
    ("truncate", "cuts or empties files"),
    ("wipefs", "erases a disk"),
    ("blkdiscard", "erases a disk"),
    ("fdisk", "changes the partitions of a disk"),
    ("parted", "changes the partitions of a disk"),
    ("dropdb", "deletes a database"),
    ("userdel", "deletes a user"),
    ("mkswap", "erases a disk"),
];

/// Programs that run others with different privileges.
const PRIVILEGED: [&str; 12] = [
    "sudo", "sudoedit", "doas", "su", "pkexec", "runuser", "setpriv", "nsenter", "chroot", "gosu", "sg",
    "setcap",
];

/// Programs that talk to other machines.
const NETWORK: [&str; 34] = [
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "lftp",
    "ping",
    "dig",
    "nslookup",
    "host",
    "aria2c",
    "http",
    "https",
    "httpie",
    "xh",
    "gh",
    "glab",
    "aws",
    "gcloud",
    "az",
    "kubectl",
    "helm",
    "rclone",
    "mail",
    "sendmail",
    "ngrok",
    "cloudflared",
];

/// Programs that talk to other machines in some of their commands.
const NETWORK_COMMANDS: [(&str, &[&str]); 19] = [
    ("git", &["push", "pull", "fetch", "clone", "ls-remote", "submodule", "send-email", "archive"]),
    ("npm", &["install", "i", "ci", "add", "update", "publish", "unpublish", "exec", "audit"]),
    ("pnpm", &["install", "i", "add", "update", "publish", "dlx"]),
    ("yarn", &["install", "add", "upgrade", "publish", "dlx"]),
    ("bun", &["install", "add", "update", "publish", "x"]),
    ("npx", &[""]),
    ("uvx", &[""]),
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("uv", &["add", "sync", "pip", "publish", "tool"]),
    ("poetry", &["install", "add", "update", "publish"]),
    ("cargo", &["install", "publish", "update", "fetch", "add", "login"]),
    ("go", &["get", "install"]),
    ("docker", &["pull", "push", "run", "build", "login", "compose"]),
    ("podman", &["pull", "push", "run", "build", "login"]),
    ("apt", &["install", "update", "upgrade"]),
    ("apt-get", &["install", "update", "upgrade"]),
    ("brew", &["install", "update", "upgrade"]),
    ("gem", &["install", "push", "update"]),
];

/// Programs that leave a process running or schedule one.
const BACKGROUND_PROGRAMS: [(&str, &str); 12] = [
    ("nohup", "starts a process that goes on when the command has ended"),
    ("setsid", "starts a process that goes on when the command has ended"),
    ("disown", "lets a process go on when the command has ended"),
    ("daemonize", "starts a process that goes on when the command has ended"),
    ("daemon", "starts a process that goes on when the command has ended"),
    ("start-stop-daemon", "starts or ends a process of the system"),
    ("systemd-run", "has the system start a process, which no sandbox holds"),
    ("at", "has the system run commands later, which no sandbox holds"),
    ("batch", "has the system run commands later, which no sandbox holds"),
    ("crontab", "changes what the system runs later"),
    ("screen", "may start a session that goes on when the command has ended"),
    ("tmux", "may start a session that goes on when the command has ended"),
];

/// Variables that decide which programs or libraries run.
const EXECUTION_VARIABLES: [&str; 22] = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_EDITOR",
    "GIT_PAGER",
    "PAGER",
    "EDITOR",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "NODE_OPTIONS",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "PERL5OPT",
];

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

pub(super) fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&unversioned(name))
}

/// Returns whether a variable decides which programs run.
pub(super) fn controls_execution(variable: &str) -> bool {
    EXECUTION_VARIABLES.contains(&variable) || variable.starts_with("GIT_CONFIG")
}

/// Reason that a command changes privileges.
pub(super) fn privilege(words: &[ShellWord]) -> Option<&'static str> {
    let name = name_of(words.first()?)?;
    if PRIVILEGED.contains(&name) {
        return Some("runs with different privileges");
    }
    let is_setuid = |text: &str| {
        let is_octal = text.len() == 4 && text.chars().all(|digit| digit.is_ascii_digit());
        (is_octal && matches!(text.as_bytes()[0], b'2' | b'4' | b'6'))
            || text.contains("+s")
            || text.contains("=s")
    };
    (name == "chmod" && has(words, is_setuid))
        .then_some("makes a program run with the privileges of its owner")
}

/// Returns whether a program talks to the network.
pub(super) fn is_network(words: &[ShellWord]) -> bool {
    let Some(name) = words.first().and_then(name_of) else { return false };
    if name == "rsync" {
        return has(words, |text| text.contains(':'));
    }
    let command = subcommand(words).unwrap_or_default();
    let is_listed = |(program, commands): &(&str, &[&str])| {
        *program == name && (commands.contains(&command) || *commands == [""])
    };
    NETWORK.contains(&name) || NETWORK_COMMANDS.iter().any(is_listed)
}

/// Describes what a program leaves running or schedules.
pub(super) fn background_effect(words: &[ShellWord]) -> Option<&'static str> {
    let name = name_of(words.first()?)?;
    BACKGROUND_PROGRAMS.iter().find(|(program, _)| *program == name).map(|(_, what)| *what)
}

/// Describes what a command deletes or overwrites.
pub(super) fn deletion(words: &[ShellWord]) -> Option<&'static str> {
    let name = name_of(words.first()?)?;
    if let Some((_, what)) = DELETERS.iter().find(|(program, _)| *program == name) {
        return Some(what);
    }
    let is = |wanted: &'static str| move |text: &str| text == wanted;
    let starts = |wanted: &'static str| move |text: &str| text.starts_with(wanted);
    let command = subcommand(words).unwrap_or_default();
    match name {
        _ if name.starts_with("mkfs") => Some("erases a disk"),
        "dd" => has(words, starts("of=")).then_some("overwrites a file or a disk"),
        "find" | "gfind" => has(words, is("-delete")).then_some("deletes the files that it finds"),
        "git" => git_deletion(words, command),
        "rsync" => has(words, |text| text.starts_with("--del") || text.starts_with("--remove-source"))
            .then_some("deletes files at the source or target"),
        "docker" | "podman" => (matches!(command, "rm" | "rmi")
            || has(words, |text| matches!(text, "prune" | "rm")))
        .then_some("deletes containers, images or volumes"),
        "kubectl" | "oc" => (command == "delete").then_some("deletes objects of a cluster"),
        "helm" => matches!(command, "uninstall" | "delete").then_some("removes a release"),
        "terraform" | "tofu" | "pulumi" => (command == "destroy").then_some("destroys infrastructure"),
        "aws" => has(words, |text| matches!(text, "rm" | "rb") || text.starts_with("delete-"))
            .then_some("deletes objects of an account"),
        "npm" => (command == "unpublish").then_some("removes a published package"),
        "redis-cli" => {
            has(words, |text| text.to_lowercase().starts_with("flush")).then_some("empties a database")
        }
        "gh" => has(words, is("delete")).then_some("deletes something on the server"),
        _ => None,
    }
}

fn git_deletion(words: &[ShellWord], command: &str) -> Option<&'static str> {
    let letter = |letter: char| {
        move |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
    };
    let long = |wanted: &'static str| move |text: &str| text.starts_with(wanted);
    let discards = "discards uncommitted changes";
    match command {
        "clean" => Some("deletes untracked files"),
        "rm" => Some("deletes files"),
        "reset" => has(words, long("--hard")).then_some(discards),
        "restore" => (!has(words, long("--staged"))).then_some(discards),
        "checkout" => (has(words, |text| matches!(text, "--" | "." | "--force")) || has(words, letter('f')))
            .then_some(discards),
        "switch" => {
            has(words, |text| matches!(text, "--force" | "--discard-changes" | "-f")).then_some(discards)
        }
        "branch" | "tag" => {
            (has(words, letter('d')) || has(words, letter('D')) || has(words, long("--delete")))
                .then_some("deletes branches or tags")
        }
        "push" => {
            let is_forced = has(words, |text| {
                text.starts_with("--force") || text.starts_with("--delete") || text.starts_with("--mirror")
            });
            let is_refspec = has(words, |text| text.starts_with(['+', ':']));
            (is_forced || is_refspec || has(words, letter('f')) || has(words, letter('d')))
                .then_some("overwrites or deletes commits on the server")
        }
        "stash" => has(words, |text| matches!(text, "drop" | "clear")).then_some("deletes stashed changes"),
        "worktree" => has(words, |text| text == "remove").then_some("deletes a worktree"),
        "update-ref" => has(words, letter('d')).then_some("deletes branches or tags"),
        "filter-branch" | "filter-repo" => Some("rewrites history"),
        "reflog" => has(words, |text| matches!(text, "expire" | "delete")).then_some("deletes the reflog"),
        _ => None,
    }
}

/// First argument that is neither an option nor the value of a global git option.
fn subcommand(words: &[ShellWord]) -> Option<&str> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text()?;
        match text {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--context" | "-n" => at += 2,
            _ if text.starts_with(['-', '+']) => at += 1,
            _ => return Some(text),
        }
    }
    None
}

/// Returns whether a known argument satisfies a predicate.
fn has(words: &[ShellWord], is_so: impl Fn(&str) -> bool) -> bool {
    words.iter().skip(1).filter_map(|word| word.text.as_deref()).any(is_so)
}

/// Index of the word with program text for a shell or an interpreter, as in `bash -c TEXT`.
pub(super) fn program_text(words: &[ShellWord]) -> Option<usize> {
    let name = name_of(words.first()?)?;
    let letters = match name {
        _ if is_shell(name) => "c",
        _ if is_interpreter(name) => "ceEpr",
        _ => return None,
    };
    for (idx, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.text.as_deref() else { continue };
        if ["--eval", "--print", "--command"].contains(&text) {
            return Some(idx + 1).filter(|idx| *idx < words.len());
        }
        if text.starts_with("--eval=") || text.starts_with("--command=") {
            return Some(idx);
        }
        if !text.starts_with('-') || text == "-" {
            return None;
        }
        if !text.starts_with("--") && text.contains(|letter| letters.contains(letter)) {
            // `perl -e'…'` is one word.
            let is_joined = text.len() > 2 && !is_shell(name) && text.contains(char::is_whitespace);
            return Some(if is_joined { idx } else { idx + 1 }).filter(|idx| *idx < words.len());
        }
    }
    None
}

/// Index of the script file of a shell or an interpreter.
pub(super) fn program_file(words: &[ShellWord]) -> Option<usize> {
    let first = words.iter().enumerate().skip(1).find(|(_, word)| !word.raw.starts_with(['-', '+']))?;
    let is_stream =
        first.1.text().is_some_and(|text| text.starts_with("/dev/") || text.starts_with("/proc/"));
    (!is_stream).then_some(first.0)
}

/// Returns whether a shell or an interpreter only prints its version or help.
pub(super) fn is_asked_for_version(words: &[ShellWord]) -> bool {
    has(words, |text| matches!(text, "--version" | "--help" | "-V" | "-h"))
}
