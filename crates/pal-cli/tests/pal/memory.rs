//! `pal memory` as people use it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{CommandOutput, TestHome};

/// A project to remember things of.
struct MemoryProject {
    home: TestHome,
    directory: PathBuf,
}

impl MemoryProject {
    fn new() -> MemoryProject {
        let home = TestHome::new();
        let directory = home.path().join("project");
        fs::create_dir_all(directory.join(".git")).unwrap();
        MemoryProject { home, directory }
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.home.run_in(&self.directory, &[&["memory"], arguments].concat())
    }

    fn good(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The directory of its memories.
    fn memory(&self) -> PathBuf {
        let shown = self.json(&["list"]);
        let slug = shown[0]["slug"].as_str().unwrap().to_owned();
        let path = self.json(&["show", &slug])["path"].as_str().unwrap().to_owned();
        Path::new(&path).parent().unwrap().to_owned()
    }
}

#[test]
fn added_memories_are_listed_shown_and_found() {
    let project = MemoryProject::new();
    assert!(project.good(&[]).contains("No memories here yet"));
    assert!(!project.home.path().join("pal/projects").exists(), "looking makes nothing");
    let out = project.good(&["add", "We release on Fridays. Never on Mondays."]);
    assert!(out.contains("remembered: we-release-on-fridays"), "{out}");
    let _ = project.good(&["add", "--type", "feedback", "--name", "Small commits", "One thing a commit."]);
    let list = project.good(&["list"]);
    assert!(
        list.contains("small-commits") && list.contains("feedback") && list.contains("We release on Fridays"),
        "{list}"
    );
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let shown = project.good(&["show", "small commits"]);
    assert!(
        shown.starts_with("---\nname: Small commits\n") && shown.ends_with("One thing a commit.\n"),
        "{shown}"
    );
    let found = project.json(&["search", "when", "do", "we", "release"]);
    assert_eq!(found[0]["slug"], "we-release-on-fridays");
    assert_eq!(found[0]["type"], "project");
    assert_eq!(found[0]["origin"], "person");
    let said = project.home.run_with_input(
        &["memory", "--in", project.directory.to_str().unwrap(), "add", "-"],
        b"From a pipe.\n",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(project.json(&["list"]).as_array().unwrap().len(), 3);
}

#[test]
fn every_change_is_logged_and_can_be_undone() {
    let project = MemoryProject::new();
    let _ = project.good(&["add", "--name", "Port", "The port is 8080."]);
    let directory = project.memory();
    let before = fs::read(directory.join("port.md")).unwrap();
    fs::write(directory.join("port.md"), "by hand\n").unwrap();
    let said = project.run(&["log"]);
    assert!(
        said.err.contains("changed by hand since the last command, and now in the history: port.md"),
        "{}",
        said.err
    );
    assert!(
        said.out.contains("outside port.md person") && said.out.contains("write port.md person"),
        "{}",
        said.out
    );
    let _ = project.good(&["rm", "port"]);
    let log = project.json(&["log", "port"]);
    let whats: Vec<&str> =
        log.as_array().unwrap().iter().map(|change| change["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["remove", "outside", "write"]);
    let undone = project.good(&["undo"]);
    assert!(undone.contains("+by hand") && undone.contains("undo with"), "{undone}");
    assert_eq!(fs::read(directory.join("port.md")).unwrap(), b"by hand\n");
    let _ = project.good(&["undo"]);
    assert_eq!(fs::read(directory.join("port.md")).unwrap(), before, "once more goes back further");
    let diff = project.good(&["diff", "0", "1"]);
    assert!(diff.contains("--- /dev/null\n+++ b/MEMORY.md") && diff.contains("+The port is 8080."), "{diff}");
    let said = project.run(&["undo", "99"]);
    assert!(
        said.code == 1 && said.err.contains("no point 99") && said.err.contains("hint: `pal memory log`"),
        "{}",
        said.err
    );
}

#[test]
fn an_editor_changes_a_memory_and_secrets_are_masked() {
    let project = MemoryProject::new();
    let token = ["ghp_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let said = project.run(&["add", "--name", "Deploy", &format!("Deploy with {token}")]);
    assert!(said.code == 0 && said.err.contains("a secret was not written (github token)"), "{}", said.err);
    let arguments = ["memory", "edit", "deploy"];
    let path = std::env::var("PATH").unwrap();
    let said = project.home.run_in_with(
        &project.directory,
        &arguments,
        &[("EDITOR", "sed -i s/Deploy.with/Ship.by/"), ("PATH", &path)],
    );
    assert!(said.code == 0 && said.out.contains("changed: deploy"), "{} {}", said.out, said.err);
    let shown = project.good(&["show", "deploy"]);
    assert!(shown.contains("Ship.by [secret: github token]") && !shown.contains(&token), "{shown}");
    let said =
        project.home.run_in_with(&project.directory, &arguments, &[("EDITOR", "true"), ("PATH", &path)]);
    assert!(said.out.contains("deploy is unchanged"), "{}", said.out);
    let said = project.run(&["edit", "deploy"]);
    assert!(said.code == 1 && said.err.contains("no editor is configured"), "{}", said.err);
}

#[test]
fn agents_have_their_own_memories() {
    let project = MemoryProject::new();
    let _ = project.good(&["add", "Of the project."]);
    let _ = project.good(&["--agent", "reviewer", "add", "Of the reviewer everywhere."]);
    let _ = project.good(&["--agent", "reviewer", "--scope", "project", "add", "Of the reviewer here."]);
    let theirs = project.directory.join(".claude/agent-memory-local/reviewer");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(
        theirs.join("theirs.md"),
        "---\nname: Theirs\ndescription: from elsewhere\ntype: user\n---\ntext\n",
    )
    .unwrap();
    let count = |arguments: &[&str]| project.json(&[arguments, &["list"]].concat()).as_array().unwrap().len();
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--agent", "reviewer"]), 1);
    assert_eq!(count(&["--agent", "reviewer", "--scope", "project"]), 1);
    assert!(project.directory.join(".pal/agent-memory/reviewer/of-the-reviewer-here.md").exists());
    assert!(
        project
            .good(&["--agent", "reviewer", "--scope", "local", "show", "theirs"])
            .contains("from elsewhere")
    );
    let said = project.run(&["--agent", "reviewer", "--scope", "local", "rm", "theirs"]);
    assert!(said.code == 1 && said.err.contains("is read-only"), "{}", said.err);
    assert_eq!(project.run(&["--scope", "local", "list"]).code, 2, "a scope is one of an agent");
    assert_eq!(project.run(&["--agent", "../x", "list"]).code, 1);
}

#[test]
fn the_doctor_reports_problems_with_advice() {
    let project = MemoryProject::new();
    let _ = project.good(&["add", "--name", "One", "Always squash commits before a merge."]);
    assert!(project.good(&["doctor"]).contains("No problems found."));
    let _ = project.good(&["add", "--name", "Two", "Never squash commits before a merge."]);
    let said = project.run(&["doctor"]);
    assert_eq!(said.code, 1);
    let pairs = ["contradiction: one.md and two.md", "contradiction: two.md and one.md"];
    assert!(pairs.iter().any(|pair| said.out.contains(pair)), "{}", said.out);
    assert!(said.out.contains("decide which holds"), "{}", said.out);
    for (name, near) in [("on", "one"), ("twoo", "two")] {
        let said = project.run(&["show", name]);
        assert!(said.out.contains("One") || said.err.contains(near), "{} {}", said.out, said.err);
    }
    let said = project.run(&["add", "  "]);
    assert!(said.code == 2 && said.err.contains("nothing to remember"), "{}", said.err);
}
