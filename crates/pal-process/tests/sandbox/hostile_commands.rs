//! Hostile commands: checked, and run for real in the read-only sandbox regardless of the verdict.

use pal_permissions::{PermissionMode, RuleSet, SandboxLevel, SourcedRule, Verdict, confine_command};

use crate::scratch_project::{ProjectFixture, SECRET, fixtures};

const COMMANDS: &str = include_str!("../../../pal-permissions/tests/hostile/commands.txt");

/// Harmless commands of the list that may run: only the sandbox hides what they would show.
fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// Runs an action in each sandbox of this machine in parallel.
fn in_each(act: impl Fn(&ProjectFixture) + Sync) {
    std::thread::scope(|scope| {
        let running: Vec<_> = fixtures()
            .into_iter()
            .map(|fixture| {
                let act = &act;
                scope.spawn(move || act(&fixture))
            })
            .collect();
        running.into_iter().for_each(|one| one.join().expect("no harm was done"));
    });
}

/// Checks that nothing changed, no connection was made, no secret was shown, and no process was ended.
fn check(fixture: &ProjectFixture, command: &str, what: &str, act: impl FnOnce() -> String) {
    let folders = [&fixture.home, &fixture.outside, &fixture.project];
    let before = folders.map(|folder| fixture.snapshot(folder));
    let output = act();
    let after = folders.map(|folder| fixture.snapshot(folder));
    for (before, after) in before.iter().zip(&after) {
        let changed: Vec<_> = after.iter().filter(|(path, found)| before.get(*path) != Some(found)).collect();
        let gone: Vec<_> = before.keys().filter(|path| !after.contains_key(*path)).collect();
        assert!(
            changed.is_empty() && gone.is_empty(),
            "{} {what}: {command}\n{changed:?} {gone:?}",
            fixture.sandbox
        );
    }
    assert!(!output.contains(SECRET), "{} {what}: {command}\n{output}", fixture.sandbox);
    assert!(!fixture.was_reached(), "{} {what}: {command} reached the port", fixture.sandbox);
    assert!(fixture.victim_lives(), "{} {what}: {command} ended a process", fixture.sandbox);
}

#[test]
fn no_hostile_command_does_harm_in_the_read_only_sandbox() {
    in_each(|fixture| {
        let policy = fixture.policy(SandboxLevel::ReadOnly);
        for command in commands().map(|command| fixture.fill_in(command)) {
            check(fixture, &command, "read-only", || fixture.shell(&command, &policy).output.text());
        }
    });
}

/// Almost none are allowed, and those do no harm in their sandbox.
#[test]
fn no_hostile_command_does_harm_where_it_is_allowed() {
    for fixture in fixtures() {
        let none = RuleSet::default();
        let mut allowed = Vec::new();
        for command in commands().map(|command| fixture.fill_in(command)) {
            for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan] {
                if fixture.authorize_command(&command, mode, &none) != Verdict::Allow {
                    continue;
                }
                allowed.push(command.clone());
                let confinement =
                    fixture.with_context(|context| confine_command(&command, mode, &none, context));
                assert!(confinement.level <= SandboxLevel::WorkspaceWrite, "{command}: {confinement:?}");
                let policy = fixture.policy(confinement.level);
                check(&fixture, &command, mode.name(), || fixture.shell(&command, &policy).output.text());
            }
        }
        allowed.dedup();
        assert!(allowed.is_empty(), "{}: the judge lets them through: {allowed:#?}", fixture.sandbox);
    }
}

#[test]
fn rules_do_not_cover_unnamed_paths() {
    const RULES: &str = include_str!("../../../pal-permissions/tests/hostile/rules.txt");
    let fixture = fixtures().remove(0);
    let mut allowed = Vec::new();
    for line in RULES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (rule, command) = line.split_once(" => ").expect("a rule and a command");
        let command = fixture.fill_in(command);
        let rule = rule.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut rules = RuleSet::default();
        rules.allow.push(SourcedRule { rule, origin: String::from("user settings") });
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan] {
            if fixture.authorize_command(&command, mode, &rules) == Verdict::Allow {
                allowed.push(format!("{} in {}", line, mode.name()));
            }
        }
    }
    assert!(allowed.is_empty(), "{allowed:#?}");
}

/// Everyday read-only commands work in the sandbox.
#[test]
fn ordinary_read_only_commands_work_in_the_sandbox() {
    for fixture in fixtures() {
        let policy = fixture.policy(SandboxLevel::ReadOnly);
        for (command, wanted) in [
            ("cat README.md", "As it was."),
            ("ls -la src", "main.rs"),
            ("grep -rn 'fn main' --include='*.rs' src", "src/main.rs:1:fn main"),
            ("find . -name '*.rs'", "./src/main.rs"),
            (
                "git -c safe.directory='*' -c core.fsmonitor=false -c diff.external= log --oneline --no-patch",
                "First",
            ),
            ("wc -l README.md | cut -d' ' -f1", "2"),
            ("head -n 1 README.md && tail -n 1 README.md", "As it was."),
            ("diff README.md src/main.rs; echo $?", "1"),
            ("cat <<'EOF' | sort\nb\na\nEOF", "a\nb"),
            ("echo \"$(pwd)\"", "project"),
            ("uname -s", "Linux"),
            ("id -u", ""),
            ("free -m", "Mem"),
            ("test -f README.md && echo yes", "yes"),
        ] {
            let done = fixture.shell(command, &policy);
            assert!(
                done.output.text().contains(wanted),
                "{}: {command}: {}",
                fixture.sandbox,
                done.output.text()
            );
        }
        for (command, refused) in [("cat .env", "denied"), ("cat link/file", ""), ("echo x > new", "")] {
            let done = fixture.shell(command, &policy);
            assert!(!done.status.is_success(), "{}: {command}", fixture.sandbox);
            assert!(done.output.text().contains(refused), "{}: {}", fixture.sandbox, done.output.text());
        }
    }
}
