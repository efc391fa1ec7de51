//! Which sandbox a command runs in: the second wall, which does not depend on what the judge thought of the command.
//!
//! Everything starts at the strictest level, and only a rule or the mode lifts a command from there. So a command that
//! the judge takes for harmless and that is not can still change nothing.

use std::path::PathBuf;

use crate::judge::{Judge, Request};
use crate::rule::CommandPattern;
use crate::shell::{self, Deed, Part, Word};
use crate::{Ground, Mode, Need, Rule, Rules, SandboxLevel, SandboxState, holds_credentials};

/// How a command line runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confinement {
    /// The sandbox of the whole line.
    pub level: SandboxLevel,
    /// Commands inside the line that run in stricter sandboxes of their own, in the order of the line. Only lines with
    /// more than one level have them.
    pub parts: Vec<ConfinedPart>,
    /// Files outside the project, or with credentials, that rules allow to read.
    pub readable: Vec<PathBuf>,
}

/// A command inside a line that runs in a sandbox of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfinedPart {
    /// The byte of the line at which the command starts.
    pub start: usize,
    /// Its sandbox.
    pub level: SandboxLevel,
}

impl Confinement {
    /// The whole line in one sandbox.
    pub fn whole(level: SandboxLevel) -> Confinement {
        Confinement { level, parts: Vec::new(), readable: Vec::new() }
    }
}

/// Programs that work with credentials, settings or hooks by themselves: version control, remote shells, builds, packages and
/// services. All others that a rule allows have no business with guarded paths, and run where those are closed; a
/// script that is named by its path counts as trusted.
const TRUSTED: &[&str] = &[
    "git",
    "hg",
    "svn",
    "jj",
    "ssh",
    "scp",
    "sftp",
    "ssh-add",
    "ssh-agent",
    "ssh-copy-id",
    "mosh",
    "gpg",
    "gpg2",
    "gpgsm",
    "age",
    "pass",
    "op",
    "make",
    "gmake",
    "cmake",
    "ninja",
    "meson",
    "bazel",
    "bazelisk",
    "buck2",
    "just",
    "task",
    "cargo",
    "rustup",
    "rustc",
    "go",
    "gofmt",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bunx",
    "corepack",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "pdm",
    "hatch",
    "conda",
    "mamba",
    "tox",
    "nox",
    "gem",
    "bundle",
    "rake",
    "mix",
    "rebar3",
    "cabal",
    "stack",
    "composer",
    "mvn",
    "mvnw",
    "gradle",
    "gradlew",
    "sbt",
    "dotnet",
    "nuget",
    "swift",
    "xcodebuild",
    "pod",
    "flutter",
    "dart",
    "pre-commit",
    "lefthook",
    "husky",
    "nix",
    "nix-build",
    "nix-shell",
    "guix",
    "brew",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "pacman",
    "zypper",
    "apk",
    "snap",
    "flatpak",
    "sudo",
    "doas",
    "su",
    "systemctl",
    "journalctl",
    "service",
    "launchctl",
    "crontab",
    "docker",
    "docker-compose",
    "podman",
    "buildah",
    "skopeo",
    "kubectl",
    "helm",
    "k9s",
    "kustomize",
    "kind",
    "minikube",
    "terraform",
    "tofu",
    "terragrunt",
    "pulumi",
    "ansible",
    "ansible-playbook",
    "vagrant",
    "packer",
    "aws",
    "sam",
    "cdk",
    "gcloud",
    "gsutil",
    "bq",
    "az",
    "gh",
    "glab",
    "hub",
    "heroku",
    "fly",
    "flyctl",
    "vercel",
    "netlify",
    "wrangler",
    "firebase",
    "doctl",
    "rclone",
    "s3cmd",
    "psql",
    "pg_dump",
    "pg_restore",
    "mysql",
    "mysqldump",
    "redis-cli",
    "mongosh",
    "sqlite3",
    "snowsql",
    "claude",
    "codex",
    "opencode",
    "gemini",
    "pal",
];

/// Which sandbox a command runs in that was judged allowed. What a person said yes to runs in none: that is for the
/// caller to know.
pub fn confine(command: &str, mode: Mode, rules: &Rules, ground: &Ground<'_>) -> Confinement {
    let judge = Judge::new(&Request { tool: "Bash", needs: &[], mode }, rules, ground);
    let resolve = |named: &str, directory: &std::path::Path| ground.target(named, directory).real;
    let script = shell::read(command, &ground.directory, &resolve);
    let unruled = match mode {
        Mode::Bypass if ground.sandbox.state == SandboxState::Off => SandboxLevel::Full,
        Mode::Bypass => SandboxLevel::WorkspaceWrite,
        Mode::Default | Mode::AcceptEdits | Mode::Plan => SandboxLevel::ReadOnly,
    };
    let is_written = |rule: &Rule| rule.command().is_some_and(|pattern| pattern.is_text(command));
    if rules.allowing().any(is_written) {
        return Confinement::whole(SandboxLevel::Full);
    }
    let is_bare = rules.allowing().any(|rule| rule.is_about_tool("Bash"));
    if !script.doubts.is_empty() {
        // Nothing is known of its parts.
        return Confinement::whole(if is_bare { SandboxLevel::Guarded.max(unruled) } else { unruled });
    }
    let ruled = |words: &[Word]| {
        let peeled = shell::peel(words);
        let covers =
            |pattern: &CommandPattern| pattern.covers(peeled).is_some() || pattern.covers(words).is_some();
        (is_bare || rules.allowing().filter_map(Rule::command).any(covers)).then(|| level_by_rule(peeled))
    };
    let mut levels = Vec::new();
    let mut has_writes = false;
    for part in &script.parts {
        match &part.deed {
            Deed::Run(words) if words.first().and_then(Word::text).is_some_and(shell::is_builtin) => {}
            Deed::Run(words) => {
                let unruled = judge.level_of_writes(part, words, unruled);
                let level = ruled(words).map_or(unruled, |level| level.max(unruled));
                levels.push((start_of_program(part, words), level));
            }
            // In bypass mode, the shell writes from inside the sandbox.
            Deed::Put(_) => has_writes |= mode != Mode::Bypass,
            Deed::Enter(_) | Deed::Take(_) => {}
        }
    }
    let readable = judge.readable(&script.parts);
    let first = levels.first().map_or(unruled, |(_, level)| *level);
    let is_one = levels.iter().all(|(_, level)| *level == first);
    if is_one && !has_writes {
        return Confinement { level: first, parts: Vec::new(), readable };
    }
    // The shell itself only joins the parts and writes where rules or the mode allowed it.
    let confined = levels.iter().filter(|(_, level)| *level != SandboxLevel::Full);
    let parts: Option<Vec<_>> =
        confined.map(|(start, level)| Some(ConfinedPart { start: (*start)?, level: *level })).collect();
    match parts {
        Some(mut parts) => {
            parts.sort_by_key(|part| part.start);
            Confinement { level: SandboxLevel::Full, parts, readable }
        }
        None => Confinement { level: unruled, parts: Vec::new(), readable },
    }
}

/// Where the program of a command stands in its line, behind a word of the shell before it.
fn start_of_program(part: &Part, words: &[Word]) -> Option<usize> {
    let is_word = |idx: usize, text: &str| words.get(idx).and_then(Word::text) == Some(text);
    let idx = match (is_word(0, "time"), is_word(1, "-p")) {
        (true, true) => 2,
        (true, false) => 1,
        (false, _) => 0,
    };
    part.starts.get(idx).copied()
}

/// The room that a rule gives to a command.
pub(crate) fn level_by_rule(words: &[Word]) -> SandboxLevel {
    let path = words.first().and_then(Word::text).unwrap_or_default();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // A program of the system is the same by its path; a script of the project is what the rule is about.
    let is_script = !folder.is_empty() && !folder.ends_with("bin");
    let is_trusted = TRUSTED.contains(&name) || TRUSTED.contains(&shell::unversioned(name));
    if is_trusted || is_script { SandboxLevel::Full } else { SandboxLevel::Guarded }
}

impl Judge<'_> {
    /// The room that a command needs for files that it makes, as far as rules allow it.
    fn level_of_writes(&self, part: &Part, words: &[Word], unruled: SandboxLevel) -> SandboxLevel {
        let operands = shell::read_only_operands(words).unwrap_or_default();
        let written = operands.iter().filter(|operand| operand.is_write());
        let targets: Vec<_> = written.flat_map(|operand| self.targets(&operand.named, part)).collect();
        if targets.is_empty() || !targets.iter().all(|target| self.is_allowed(&Need::Write(target.clone()))) {
            return unruled;
        }
        match targets.iter().all(|target| self.ground.is_inside(&target.real)) {
            true => SandboxLevel::WorkspaceWrite.max(unruled),
            false => SandboxLevel::Full,
        }
    }

    /// Files outside the project, or with credentials, that a line reads, as far as rules allow it.
    fn readable(&self, parts: &[Part]) -> Vec<PathBuf> {
        let mut readable = Vec::new();
        for part in parts {
            let names: Vec<String> = match &part.deed {
                Deed::Run(words) => shell::read_only_operands(words)
                    .map(|operands| operands.into_iter().map(|operand| operand.named).collect())
                    .unwrap_or_default(),
                Deed::Take(word) | Deed::Enter(word) => word.text().map(String::from).into_iter().collect(),
                Deed::Put(_) => Vec::new(),
            };
            for target in names.iter().flat_map(|name| self.targets(name, part)) {
                // Whatever else is in the project is in sight.
                let is_closed = !self.ground.is_inside(&target.real) || holds_credentials(&target.real);
                let need = Need::Read(target.clone());
                if is_closed && self.is_allowed(&need) && !readable.contains(&target.real) {
                    readable.push(target.real);
                }
            }
        }
        readable
    }
}
