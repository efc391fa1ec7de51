//! Abilities and limits of sandboxed commands.
//!
//! Every test runs in Landlock, and in bubblewrap where that works; skipped mechanisms are printed.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used)]

mod everyday_work;
mod file_access;
mod hostile_commands;
mod random_commands;
mod scratch_project;
mod system_calls;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_process::sandbox::{Sandbox, SandboxPolicy};
use pal_process::{
    CancelToken, CaptureLimits, CommandInput, CommandOutcome, CommandSpec, Program, StreamMode, run_command,
};

/// Scratch folder with a workspace, a temporary folder and an outside, for one sandbox mechanism.
struct SandboxFixture {
    _folder: tempfile::TempDir,
    sandbox: Sandbox,
    root: PathBuf,
    temporary: PathBuf,
    outside: PathBuf,
    policy: SandboxPolicy,
}

impl SandboxFixture {
    fn new(sandbox: Sandbox) -> SandboxFixture {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("it is there");
        let [root, temporary, outside] = ["root", "temporary", "outside"].map(|name| {
            std::fs::create_dir(real.join(name)).expect("made");
            real.join(name)
        });
        std::fs::write(outside.join("file"), "as it was").expect("written");
        let writable = vec![root.clone(), temporary.clone()];
        let policy = SandboxPolicy { writable, ..SandboxPolicy::default() };
        SandboxFixture { _folder: folder, sandbox, root, temporary, outside, policy }
    }

    /// Runs a shell line in the workspace.
    fn shell(&self, line: &str) -> CommandOutcome {
        self.run("sh", &["-c", line])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> CommandOutcome {
        let program = Program {
            path: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            directory: self.root.clone(),
            environment: vec![
                ("OUT".into(), Some(self.outside.clone().into())),
                ("TMPDIR".into(), Some(self.temporary.clone().into())),
                ("HOME".into(), Some(self.root.clone().into())),
            ],
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_sandbox-helper"));
        finished(self.sandbox.wrap(program, &self.policy, helper).expect("a sandbox"))
    }

    /// Checks that nothing outside has changed.
    fn check_outside(&self, what: &str) {
        let names: Vec<_> = std::fs::read_dir(&self.outside)
            .expect("it is there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["file"], "{}: {what}", self.sandbox);
        let text = std::fs::read_to_string(self.outside.join("file")).expect("it is there");
        assert_eq!(text, "as it was", "{}: {what}", self.sandbox);
    }
}

fn finished(program: Program) -> CommandOutcome {
    let spec = CommandSpec {
        program,
        input: CommandInput::Nothing,
        streams: StreamMode::Merged,
        keep: CaptureLimits::up_to(100_000),
        limit: Some(Duration::from_secs(60)),
    };
    run_command(spec, &CancelToken::new(), &|_| ()).expect("it starts")
}

/// Fixtures for each sandbox mechanism of this machine.
fn sandbox_fixtures() -> Vec<SandboxFixture> {
    let landlock = Sandbox::detect_landlock().expect("these tests need a kernel with Landlock and seccomp");
    let mut sandbox_fixtures = vec![SandboxFixture::new(landlock)];
    match Sandbox::detect() {
        bubblewrap @ Sandbox::Bubblewrap { .. } => sandbox_fixtures.push(SandboxFixture::new(bubblewrap)),
        _ => eprintln!("NOT TESTED: bubblewrap does not work on this machine"),
    }
    sandbox_fixtures
}
