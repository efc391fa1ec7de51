//! What commands behind the fence can do, and what they cannot.
//!
//! Every test runs behind Landlock, and behind bubblewrap where that works; what a machine cannot do is said aloud.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used)]

mod calls;
mod files;
mod fixture;
mod hostile;
mod ordinary;
mod property;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_process::{Cancel, Finished, Input, Keep, Program, Spec, Streams, run};
use pal_sandbox::{Fence, Policy};

/// A folder with a workspace, a place for temporary files and an outside, behind one fence.
struct Yard {
    _folder: tempfile::TempDir,
    fence: Fence,
    root: PathBuf,
    temporary: PathBuf,
    outside: PathBuf,
    policy: Policy,
}

impl Yard {
    fn new(fence: Fence) -> Yard {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("it is there");
        let [root, temporary, outside] = ["root", "temporary", "outside"].map(|name| {
            std::fs::create_dir(real.join(name)).expect("made");
            real.join(name)
        });
        std::fs::write(outside.join("file"), "as it was").expect("written");
        let writable = vec![root.clone(), temporary.clone()];
        let policy = Policy { writable, ..Policy::default() };
        Yard { _folder: folder, fence, root, temporary, outside, policy }
    }

    /// Runs a line of the shell in the workspace.
    fn shell(&self, line: &str) -> Finished {
        self.run("sh", &["-c", line])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Finished {
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
        let helper = Path::new(env!("CARGO_BIN_EXE_pal-fenced"));
        finished(self.fence.wrap(program, &self.policy, helper).expect("a fence"))
    }

    /// Nothing outside has changed.
    fn check_outside(&self, what: &str) {
        let names: Vec<_> = std::fs::read_dir(&self.outside)
            .expect("it is there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["file"], "{}: {what}", self.fence);
        let text = std::fs::read_to_string(self.outside.join("file")).expect("it is there");
        assert_eq!(text, "as it was", "{}: {what}", self.fence);
    }
}

fn finished(program: Program) -> Finished {
    let spec = Spec {
        program,
        input: Input::Nothing,
        streams: Streams::Merged,
        keep: Keep::up_to(100_000),
        limit: Some(Duration::from_secs(60)),
    };
    run(spec, &Cancel::new(), &|_| ()).expect("it starts")
}

/// A yard behind each fence of this machine.
fn yards() -> Vec<Yard> {
    let landlock = Fence::detect_landlock().expect("these tests need a kernel with Landlock and seccomp");
    let mut yards = vec![Yard::new(landlock)];
    match Fence::detect() {
        bubblewrap @ Fence::Bubblewrap { .. } => yards.push(Yard::new(bubblewrap)),
        _ => eprintln!("NOT TESTED: bubblewrap does not work on this machine"),
    }
    yards
}
