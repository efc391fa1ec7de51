//! What permissions say, as users rely on it.

mod confinement;
mod files;
mod holes;
mod laws;
mod ordinary;
mod round;
mod rules;

use std::path::{Component, Path, PathBuf};

use pal_permissions::{Ground, Mode, Need, Placed, Request, Rules, SandboxPolicy, Target, Verdict, judge};

/// Rules as they are written in settings: each line `allow`, `ask` or `deny` and the rule.
fn rules(text: &str) -> Rules {
    let mut rules = Rules::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, rule) = line.split_once(' ').unwrap_or((line, ""));
        let rule = rule.parse().unwrap_or_else(|error| panic!("{error}"));
        let placed = Placed { rule, origin: String::from("project settings") };
        match kind {
            "allow" => rules.allow.push(placed),
            "ask" => rules.ask.push(placed),
            "deny" => rules.deny.push(placed),
            other => panic!("{other}"),
        }
    }
    rules
}

/// Links of the pretended disk: what they are called and where they lead.
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

/// Folders of the pretended disk.
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

fn ground() -> Ground<'static> {
    Ground {
        roots: vec![PathBuf::from("/project"), PathBuf::from("/second")],
        home: Some(PathBuf::from("/home/me")),
        session: PathBuf::from("/home/me/.palimpsest/projects/p/sessions/s"),
        own: Some(PathBuf::from("/home/me/.palimpsest")),
        memory: Some(PathBuf::from("/home/me/.palimpsest/projects/p/memory")),
        directory: PathBuf::from("/project"),
        resolve: &resolve,
        is_folder: &|path| FOLDERS.iter().any(|folder| path == Path::new(folder)),
        sandbox: SandboxPolicy::default(),
    }
}

fn target(named: &str) -> Target {
    let expanded = named.replacen('~', "/home/me", usize::from(named.starts_with('~')));
    Target { named: String::from(named), real: resolve(&expanded, Path::new("/project")) }
}

fn run(command: &str, mode: Mode, rules: &Rules) -> Verdict {
    let needs = [Need::Run(String::from(command))];
    judge(&Request { tool: "Bash", needs: &needs, mode }, rules, &ground())
}

fn read(path: &str, mode: Mode, rules: &Rules) -> Verdict {
    judge(&Request { tool: "Read", needs: &[Need::Read(target(path))], mode }, rules, &ground())
}

fn write(path: &str, mode: Mode, rules: &Rules) -> Verdict {
    judge(&Request { tool: "Edit", needs: &[Need::Write(target(path))], mode }, rules, &ground())
}
