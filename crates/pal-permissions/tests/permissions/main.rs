//! Verdicts that users rely on.

mod evasions;
mod everyday_commands;
mod file_verdicts;
mod reported_bypasses;
mod rule_properties;
mod rule_syntax;
mod sandbox_levels;

use std::path::{Component, Path, PathBuf};

use pal_permissions::{
    PermissionContext, PermissionMode, PermissionRequest, RuleSet, SandboxLimits, SourcedRule, TargetPath,
    ToolAccess, Verdict, authorize,
};

/// Parses rules, one per line: `allow`, `ask` or `deny` and the rule.
fn rules(text: &str) -> RuleSet {
    let mut rules = RuleSet::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, rule) = line.split_once(' ').unwrap_or((line, ""));
        let rule = rule.parse().unwrap_or_else(|error| panic!("{error}"));
        let placed = SourcedRule { rule, origin: String::from("project settings") };
        match kind {
            "allow" => rules.allow.push(placed),
            "ask" => rules.ask.push(placed),
            "deny" => rules.deny.push(placed),
            other => panic!("{other}"),
        }
    }
    rules
}

/// Links of the simulated disk with their targets.
const LINKS: [(&str, &str); 8] = [
    ("/project/link", "/etc"),
    ("/project/src/innocent.rs", "/project/src/secret/key.rs"),
    ("/project/docs/page.md", "/home/me/diary.md"),
    ("/project/sub/link", "/project/deep/down"),
    ("/project/notes", "/project/.env"),
    ("/project/own", "/home/me/.palimpsest"),
    ("/proc/self/cwd", "/project"),
    ("/proc/self/root", "/"),
];

/// Folders of the simulated disk.
const FOLDERS: [&str; 5] = ["/project", "/project/src", "/project/sub", "/second", "/etc"];

/// Follows links as the file system would.
fn resolve(named: &str, directory: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for component in directory.join(named).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(real.pop()),
            other => real.push(other),
        }
        if let Some((_, end)) = LINKS.iter().find(|(link, _)| real == Path::new(link)) {
            real = PathBuf::from(end);
        }
    }
    real
}

fn context() -> PermissionContext<'static> {
    PermissionContext {
        roots: vec![PathBuf::from("/project"), PathBuf::from("/second")],
        home: Some(PathBuf::from("/home/me")),
        session: PathBuf::from("/home/me/.palimpsest/projects/p/sessions/s"),
        own: Some(PathBuf::from("/home/me/.palimpsest")),
        memory: Some(PathBuf::from("/home/me/.palimpsest/projects/p/memory")),
        directory: PathBuf::from("/project"),
        resolve: &resolve,
        is_folder: &|path| FOLDERS.iter().any(|folder| path == Path::new(folder)),
        sandbox: SandboxLimits::default(),
    }
}

fn target(named: &str) -> TargetPath {
    let expanded = named.replacen('~', "/home/me", usize::from(named.starts_with('~')));
    TargetPath { named: String::from(named), real: resolve(&expanded, Path::new("/project")) }
}

fn run(command: &str, mode: PermissionMode, rules: &RuleSet) -> Verdict {
    let needs = [ToolAccess::Run(String::from(command))];
    authorize(&PermissionRequest { tool: "Bash", needs: &needs, mode }, rules, &context())
}

fn read(path: &str, mode: PermissionMode, rules: &RuleSet) -> Verdict {
    authorize(
        &PermissionRequest { tool: "Read", needs: &[ToolAccess::Read(target(path))], mode },
        rules,
        &context(),
    )
}

fn write(path: &str, mode: PermissionMode, rules: &RuleSet) -> Verdict {
    authorize(
        &PermissionRequest { tool: "Edit", needs: &[ToolAccess::Write(target(path))], mode },
        rules,
        &context(),
    )
}
