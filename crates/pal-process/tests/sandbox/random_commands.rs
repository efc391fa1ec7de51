//! Random command lines: a line allowed without a rule changes nothing and makes no connection.
//!
//! Lines are built from shell grammar, harmless words and harmful ones. `PAL_CASES` sets how many allowed
//! lines are run in each sandbox.

use std::time::Duration;

use pal_permissions::{PermissionMode, RuleSet, SandboxLevel, Verdict, confine_command};

use crate::scratch_project::{ProjectFixture, SECRET, fixtures};

/// Default number of lines that are run.
const CASES: usize = 400;

/// Number of lines per sandbox.
const BATCH: usize = 50;

const PROGRAMS: &[&str] = &[
    "cat",
    "ls",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "diff",
    "cmp",
    "comm",
    "nl",
    "od",
    "rev",
    "tac",
    "fold",
    "paste",
    "column",
    "stat",
    "file",
    "du",
    "df",
    "readlink",
    "realpath",
    "basename",
    "dirname",
    "grep",
    "egrep",
    "rg",
    "find",
    "git log",
    "git status",
    "git diff",
    "git show",
    "git branch",
    "git tag",
    "git grep",
    "git ls-files",
    "git blame",
    "git rev-parse",
    "git cat-file",
    "git stash list",
    "git config --get",
    "git describe",
    "git shortlog",
    "echo",
    "printf",
    "test",
    "true",
    "pwd",
    "date",
    "id",
    "uname",
    "seq",
    "which",
    "type",
    "command -v",
    "sed -n",
    "tree",
    "md5sum",
    "cksum",
    "sleep 0",
    "mkdir",
    "touch",
    "bash",
    "sh",
    "python3",
    "perl",
    "awk",
    "env",
    "xargs",
    "tee",
    "cp",
    "rm",
    "eval",
    "exec",
    "timeout 1",
    "nice",
    "time",
    "hostname",
    "tar",
    "dd",
    "sed -i",
];

const WORDS: &[&str] = &[
    "README.md",
    "src",
    "src/main.rs",
    ".",
    "..",
    "*",
    "src/*",
    "*.md",
    ".env",
    "server.pem",
    "link",
    "link/file",
    "link-home",
    "{HOME}/.ssh/id_rsa",
    "{HOME}/.bashrc",
    "{OUT}/file",
    "{OUT}/new",
    "/etc/passwd",
    "/proc/self/environ",
    "sub",
    "tracked.txt",
    "-",
    "--",
    "-n",
    "-l",
    "-c",
    "-r",
    "-R",
    "-o",
    "-f",
    "-i",
    "-v",
    "-V",
    "-a",
    "-u",
    "-e",
    "-x",
    "-p",
    "-z",
    "-s",
    "-t",
    "-d",
    "-L",
    "-O",
    "-o{OUT}/new",
    "--output={OUT}/new",
    "--output",
    "--help",
    "--version",
    "--files0-from=.env",
    "--files0-from=-",
    "-exec",
    "-delete",
    "touch {OUT}/new",
    "{}",
    "\\;",
    "-fprint",
    "--pre",
    "./evil",
    "--ext-diff",
    "--textconv",
    "--no-index",
    "--stdin",
    "--batch",
    "--format=%G?",
    "--format=%H",
    "--oneline",
    "--stat",
    "-5",
    "1",
    "2",
    "'s/a/b/'",
    "'1p'",
    "'1w {OUT}/new'",
    "x",
    "HEAD",
    "HEAD:README.md",
    "HEAD:.env",
    "main",
    "$x",
    "$HOME",
    "\"$HOME\"",
    "$(pwd)",
    "$(touch {OUT}/new)",
    "`ls`",
    "\"a b\"",
    "'a;b'",
    "\"$(ls)\"",
    "<(ls)",
    "${x:-y}",
    "$((1+1))",
    "a=b",
    "{a,b}",
    "~",
    "~/x",
    "\\",
    "'%s'",
    "'%n'",
    "a[0]",
    "user.name",
    "--get",
    "evil",
    "--include='*.rs'",
    "--exclude='.*'",
    "-name",
    "'*.rs'",
    "-type",
    "-maxdepth",
    "+%s",
    "-S",
    "-G",
    "--list",
    "--contains",
];

const JOINTS: &[&str] = &[" | ", "; ", " && ", " || ", " & ", "\n", " |& "];

const REDIRECTIONS: &[&str] = &[
    " > {OUT}/new",
    " >> {OUT}/file",
    " > /dev/null",
    " 2>&1",
    " 2>/dev/null",
    " < README.md",
    " < .env",
    " > src/new",
    " <<< x",
    " > /dev/tcp/127.0.0.1/{PORT}",
    " <<'E'\nx\nE\n",
    " <<E\n$(touch {OUT}/new)\nE\n",
    " &> {OUT}/new",
    " <> {OUT}/new",
];

/// Reproducible pseudo-random numbers.
struct RandomSource(u64);

impl RandomSource {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    fn simple(&mut self) -> String {
        let mut line = String::from(self.pick(PROGRAMS));
        for _ in 0..self.roll(4) {
            line.push(' ');
            line.push_str(self.pick(WORDS));
        }
        if self.roll(6) == 0 {
            line.push_str(self.pick(REDIRECTIONS));
        }
        line
    }

    fn line(&mut self) -> String {
        let mut line = self.simple();
        for _ in 0..self.roll(3) {
            line.push_str(self.pick(JOINTS));
            line.push_str(&self.simple());
        }
        match self.roll(14) {
            0 => format!("({line})"),
            1 => format!("{{ {line}; }}"),
            2 => format!("if {line}; then ls; fi"),
            3 => format!("for x in a b; do {line}; done"),
            4 => format!("echo \"$({line})\""),
            5 => format!("cd src && {line}"),
            6 => format!("x=$({line}); echo $x"),
            7 => format!("! {line}"),
            _ => line,
        }
    }
}

#[test]
fn allowed_read_only_commands_change_nothing() {
    let cases = std::env::var("PAL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    for fixture in fixtures() {
        let mut dice = RandomSource(0x9e37_79b9_7f4a_7c15);
        let (mut n_run, mut n_made) = (0, 0);
        while n_run < cases {
            let mut batch = Vec::new();
            while batch.len() < BATCH {
                n_made += 1;
                let line = fixture.fill_in(&dice.line());
                if fixture.authorize_command(&line, PermissionMode::Default, &RuleSet::default())
                    == Verdict::Allow
                {
                    let confinement = fixture.with_context(|context| {
                        confine_command(&line, PermissionMode::Default, &RuleSet::default(), context)
                    });
                    assert_eq!(confinement.level, SandboxLevel::ReadOnly, "{line}");
                    batch.push(line);
                }
            }
            run_batch(&fixture, &batch);
            n_run += batch.len();
        }
        eprintln!("{}: {n_run} of {n_made} lines were let through and run", fixture.sandbox);
    }
}

/// Runs lines in one sandbox, each in a shell of its own; harmful ones are then found one by one.
fn run_batch(fixture: &ProjectFixture, lines: &[String]) {
    let policy = fixture.policy(SandboxLevel::ReadOnly);
    let quoted = |line: &String| format!("timeout 2 bash -c '{}' </dev/null", line.replace('\'', r"'\''"));
    let folders = [&fixture.home, &fixture.outside, &fixture.project];
    let is_harmless = |script: &str| {
        let before = folders.map(|folder| fixture.snapshot(folder));
        let done = fixture.shell_within(script, &policy, Duration::from_secs(110));
        assert!(done.stopped.is_none(), "the lines took too long:\n{script}");
        let output = done.output.text();
        let is_same = before == folders.map(|folder| fixture.snapshot(folder));
        is_same && !output.contains(SECRET) && !fixture.was_reached() && fixture.victim_lives()
    };
    let all: Vec<String> = lines.iter().map(quoted).collect();
    if !is_harmless(&all.join("\n")) {
        let harmful: Vec<&String> = lines.iter().filter(|line| !is_harmless(&quoted(line))).collect();
        panic!("{}: {harmful:#?}", fixture.sandbox);
    }
}
