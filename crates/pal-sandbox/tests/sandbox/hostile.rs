//! Hostile commands: judged, and run for real in the read-only sandbox, whatever the judge said of them.

use pal_permissions::{Mode, Placed, Rules, SandboxLevel, Verdict, confine};

use crate::fixture::{Fixture, SECRET, fixtures};

const COMMANDS: &str = include_str!("../../../pal-permissions/tests/hostile/commands.txt");

/// Commands of the list that do no harm and may run: what they would show is hidden from them by the sandbox alone.
fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// Does something in each sandbox of this machine, side by side.
fn in_each(act: impl Fn(&Fixture) + Sync) {
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

/// Checks that nothing changed, nobody was reached, nothing secret was shown, and no process was ended.
fn check(fixture: &Fixture, command: &str, what: &str, act: impl FnOnce() -> String) {
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
            fixture.fence
        );
    }
    assert!(!output.contains(SECRET), "{} {what}: {command}\n{output}", fixture.fence);
    assert!(!fixture.was_reached(), "{} {what}: {command} reached the port", fixture.fence);
    assert!(fixture.victim_lives(), "{} {what}: {command} ended a process", fixture.fence);
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

/// The judge lets next to none of them through, and what it lets through does no harm where it then runs.
#[test]
fn no_hostile_command_does_harm_where_the_judge_lets_it_run() {
    for fixture in fixtures() {
        let none = Rules::default();
        let mut allowed = Vec::new();
        for command in commands().map(|command| fixture.fill_in(command)) {
            for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
                if fixture.judge(&command, mode, &none) != Verdict::Allow {
                    continue;
                }
                allowed.push(command.clone());
                let confinement = fixture.with_ground(|ground| confine(&command, mode, &none, ground));
                assert!(confinement.level <= SandboxLevel::WorkspaceWrite, "{command}: {confinement:?}");
                let policy = fixture.policy(confinement.level);
                check(&fixture, &command, mode.name(), || fixture.shell(&command, &policy).output.text());
            }
        }
        allowed.dedup();
        assert!(allowed.is_empty(), "{}: the judge lets them through: {allowed:#?}", fixture.fence);
    }
}

#[test]
fn rules_do_not_cover_what_they_do_not_say() {
    const RULES: &str = include_str!("../../../pal-permissions/tests/hostile/rules.txt");
    let fixture = fixtures().remove(0);
    let mut allowed = Vec::new();
    for line in RULES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (rule, command) = line.split_once(" => ").expect("a rule and a command");
        let command = fixture.fill_in(command);
        let rule = rule.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut rules = Rules::default();
        rules.allow.push(Placed { rule, origin: String::from("user settings") });
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            if fixture.judge(&command, mode, &rules) == Verdict::Allow {
                allowed.push(format!("{} in {}", line, mode.name()));
            }
        }
    }
    assert!(allowed.is_empty(), "{allowed:#?}");
}

/// What people do all day still works in the read-only sandbox.
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
                fixture.fence,
                done.output.text()
            );
        }
        for (command, refused) in [("cat .env", "denied"), ("cat link/file", ""), ("echo x > new", "")] {
            let done = fixture.shell(command, &policy);
            assert!(!done.status.is_success(), "{}: {command}", fixture.fence);
            assert!(done.output.text().contains(refused), "{}: {}", fixture.fence, done.output.text());
        }
    }
}
