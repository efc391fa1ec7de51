//! Real commands in a real sandbox, with a dummy helper.

use std::sync::Arc;
use std::time::Duration;

use pal_permissions::{Confinement, SandboxLevel};
use pal_process::CancelToken;
use pal_process::sandbox::{Sandbox, SandboxPolicy};
use serde_json::json;

use super::tests::{ShellFixture, text_of};
use super::{SandboxConfig, Shell, shell_tools};

/// Workspace with a repository in this sandbox.
fn fixture(mechanism: Sandbox) -> ShellFixture {
    let mut fixture = ShellFixture::new();
    fixture.succeed("git init -q .");
    let helper = fixture.outside.join("helper");
    std::fs::write(&helper, "#!/bin/sh\nshift 3\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let policy = SandboxPolicy { writable: vec![fixture.root.clone()], ..SandboxPolicy::default() };
    let guarded = vec![fixture.root.clone()];
    let sandbox =
        SandboxConfig { probe: mechanism.into(), policy, guarded, helper, ..SandboxConfig::default() };
    fixture.confinement = Confinement::whole(SandboxLevel::WorkspaceWrite);
    fixture.shell = Arc::new(Shell::new(&fixture.workspace.session, Some(sandbox.into()), Vec::new()));
    fixture.tools = shell_tools(&fixture.shell);
    fixture
}

fn bubblewrapped() -> Option<ShellFixture> {
    match Sandbox::detect() {
        mechanism @ Sandbox::Bubblewrap { .. } => Some(fixture(mechanism)),
        _ => {
            eprintln!("NOT TESTED: bubblewrap does not work on this machine");
            None
        }
    }
}

#[test]
fn nothing_is_planted_and_placeholders_are_removed() {
    let Some(fixture) = bubblewrapped() else { return };
    for line in [
        "mkdir -p .pal && echo evil > .pal/settings.toml",
        "rm -rf .claude; mkdir .claude && echo evil > .claude/settings.json",
        "mv .git .git2 && cp -r .git2 .git && echo evil >> .git/config",
    ] {
        assert!(fixture.bash(line).1, "{line}");
    }
    let left = || [".pal", ".claude"].map(|name| fixture.root.join(name).exists());
    assert_eq!(left(), [false, false]);
    let text = fixture.succeed("echo /tmp > .git/commondir");
    assert!(
        text.contains("commondir was renamed") && !fixture.root.join(".git/commondir").exists(),
        "{text}"
    );

    // While a background command runs, its placeholders stay.
    fixture.call("Bash", &json!({"command": "sleep 1000", "run_in_background": true}));
    fixture.succeed("true");
    assert_eq!(left(), [true, true]);
    fixture.call("KillBash", &json!({"task_id": "task_1"}));
    fixture.shell.background.wait("task_1", Duration::from_secs(10), &CancelToken::new());
    fixture.shell.take_finished();
    assert_eq!(left(), [false, false]);

    // A folder of the user stays.
    std::fs::create_dir(fixture.root.join(".pal")).unwrap();
    fixture.succeed("true");
    assert_eq!(left(), [true, false]);
}

#[test]
fn no_leftovers_are_reported_when_there_are_none() {
    let Some(fixture) = bubblewrapped() else { return };
    for _ in 0..20 {
        assert_eq!(fixture.succeed("echo a | cat"), "a");
    }
}

#[test]
fn the_landlock_notice_is_shown_once() {
    let fixture = fixture(Sandbox::Landlock { abi: 1 });
    let text = fixture.succeed("echo a");
    assert!(text.starts_with("a\n[the sandbox of this machine is Landlock: "), "{text}");
    assert_eq!(fixture.succeed("echo a"), "a");
    let (text, _) = text_of(&fixture.call("Bash", &json!({"command": "ls -A"})));
    assert_eq!(text, ".git", "it holds no places");
}
