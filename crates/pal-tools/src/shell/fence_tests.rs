//! Real commands behind a real fence, whose last step is left out.

use std::sync::Arc;
use std::time::Duration;

use pal_permissions::{Confinement, SandboxLevel};
use pal_process::Cancel;
use pal_sandbox::{Fence, Policy};
use serde_json::json;

use super::tests::{Desk, said};
use super::{SandboxConfig, Shell, shell_tools};

/// A workspace with a repository behind this fence.
fn desk(fence: Fence) -> Desk {
    let mut desk = Desk::new();
    desk.well("git init -q .");
    let helper = desk.outside.join("helper");
    std::fs::write(&helper, "#!/bin/sh\nshift 3\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let policy = Policy { writable: vec![desk.root.clone()], ..Policy::default() };
    let guarded = vec![desk.root.clone()];
    let sandbox = SandboxConfig { probe: fence.into(), policy, guarded, helper, ..SandboxConfig::default() };
    desk.confinement = Confinement::whole(SandboxLevel::WorkspaceWrite);
    desk.shell = Arc::new(Shell::new(&desk.workspace.session, Some(sandbox.into()), Vec::new()));
    desk.tools = shell_tools(&desk.shell);
    desk
}

fn bubblewrapped() -> Option<Desk> {
    match Fence::detect() {
        fence @ Fence::Bubblewrap { .. } => Some(desk(fence)),
        _ => {
            eprintln!("NOT TESTED: bubblewrap does not work on this machine");
            None
        }
    }
}

#[test]
fn nothing_is_planted_and_nothing_is_left_behind() {
    let Some(desk) = bubblewrapped() else { return };
    for line in [
        "mkdir -p .pal && echo evil > .pal/settings.toml",
        "rm -rf .claude; mkdir .claude && echo evil > .claude/settings.json",
        "mv .git .git2 && cp -r .git2 .git && echo evil >> .git/config",
    ] {
        assert!(desk.bash(line).1, "{line}");
    }
    let left = || [".pal", ".claude"].map(|name| desk.root.join(name).exists());
    assert_eq!(left(), [false, false]);
    let text = desk.well("echo /tmp > .git/commondir");
    assert!(text.contains("commondir was renamed") && !desk.root.join(".git/commondir").exists(), "{text}");

    // As long as a command runs in the background, its fence stands.
    desk.call("Bash", &json!({"command": "sleep 1000", "run_in_background": true}));
    desk.well("true");
    assert_eq!(left(), [true, true]);
    desk.call("KillBash", &json!({"task_id": "task_1"}));
    desk.shell.background.wait("task_1", Duration::from_secs(10), &Cancel::new());
    desk.shell.finished_since_last_asked();
    assert_eq!(left(), [false, false]);

    // What the user has is the user's.
    std::fs::create_dir(desk.root.join(".pal")).unwrap();
    desk.well("true");
    assert_eq!(left(), [true, false]);
}

#[test]
fn a_command_that_leaves_nothing_behind_is_not_said_to() {
    let Some(desk) = bubblewrapped() else { return };
    for _ in 0..20 {
        assert_eq!(desk.well("echo a | cat"), "a");
    }
}

#[test]
fn what_landlock_cannot_do_is_told_once() {
    let desk = desk(Fence::Landlock { abi: 1 });
    let text = desk.well("echo a");
    assert!(text.starts_with("a\n[the sandbox of this machine is Landlock: "), "{text}");
    assert_eq!(desk.well("echo a"), "a");
    let (text, _) = said(&desk.call("Bash", &json!({"command": "ls -A"})));
    assert_eq!(text, ".git", "it holds no places");
}
