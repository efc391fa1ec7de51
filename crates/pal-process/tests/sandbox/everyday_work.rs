//! Everyday work in the sandbox; a command without a sandbox does not run.

use std::path::Path;
use std::time::{Duration, Instant};

use pal_process::sandbox::{HELPER_ARGUMENT, Sandbox, SandboxPolicy};
use pal_process::{
    CancelToken, CaptureLimits, CommandInput, CommandSpec, ProcessStatus, Program, StreamMode,
    TerminationCause, run_command,
};

use crate::sandbox_fixtures;

#[test]
fn git_commits_and_compilers_start() {
    for fixture in sandbox_fixtures() {
        let git = "set -e; git init -q .; git config user.email a@example.org; git config user.name A; echo x > f; \
                   git add f; git commit -qm 'First'; git log --format=%s; git status --porcelain; git gc -q";
        let done = fixture.shell(git);
        assert_eq!(
            (done.output.text().as_str(), done.status),
            ("First\n", ProcessStatus::Exited(0)),
            "{}",
            fixture.sandbox
        );
        for line in ["seq 3 | sort -r | xargs -n1 -P3 echo", "find . -name f -exec cat {} +", "ls -la", "ps"]
        {
            let done = fixture.shell(line);
            assert!(done.status.is_success(), "{}: {line}: {}", fixture.sandbox, done.output.text());
        }
        let cargo = fixture.run(env!("CARGO"), &["--version"]);
        assert!(cargo.output.text().starts_with("cargo "), "{}: {}", fixture.sandbox, cargo.output.text());
    }
}

#[test]
fn a_build_with_threads_and_processes_works() {
    for fixture in sandbox_fixtures() {
        let program = "fn main() { std::thread::spawn(|| println!(\"built\")).join().unwrap(); \
                       std::process::Command::new(\"true\").status().unwrap(); }";
        std::fs::write(fixture.root.join("main.rs"), program).expect("written");
        let mut compiler = std::path::PathBuf::from(env!("CARGO"));
        compiler.set_file_name("rustc");
        let done = fixture.shell(&format!("{} main.rs -o main && ./main", compiler.display()));
        assert_eq!(done.output.text(), "built\n", "{}", fixture.sandbox);
    }
}

#[test]
fn status_and_output_pass_through() {
    for fixture in sandbox_fixtures() {
        let done = fixture.shell("echo out; echo err >&2; exit 7");
        assert_eq!(
            (done.output.text().as_str(), done.status),
            ("out\nerr\n", ProcessStatus::Exited(7)),
            "{}",
            fixture.sandbox
        );
    }
}

#[test]
fn a_sandboxed_command_ends_with_its_processes() {
    for fixture in sandbox_fixtures() {
        let program = Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), "trap 'echo bye; exit' TERM; sleep 987654 & wait".into()],
            directory: fixture.root.clone(),
            environment: Vec::new(),
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_sandbox-helper"));
        let spec = CommandSpec {
            program: fixture.sandbox.wrap(program, &fixture.policy, helper).expect("a sandbox"),
            input: CommandInput::Nothing,
            streams: StreamMode::Merged,
            keep: CaptureLimits::up_to(1_000),
            limit: Some(Duration::from_millis(700)),
        };
        let began = Instant::now();
        let done = run_command(spec, &CancelToken::new(), &|_| ()).expect("it starts");
        assert_eq!(done.stopped, Some(TerminationCause::TimedOut), "{}", fixture.sandbox);
        assert!(began.elapsed() < Duration::from_secs(5), "{}: {:?}", fixture.sandbox, began.elapsed());
        let left = std::process::Command::new("pgrep").args(["-f", "sleep 987654"]).output();
        assert!(left.is_err() || left.is_ok_and(|left| left.stdout.is_empty()), "{}", fixture.sandbox);
    }
}

#[test]
fn a_report_passes_the_sandbox() {
    for fixture in sandbox_fixtures() {
        let program = Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), "exec 9>&0 </dev/null; cat; pwd -P >&9".into()],
            directory: fixture.root.clone(),
            environment: Vec::new(),
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_sandbox-helper"));
        let spec = CommandSpec {
            program: fixture.sandbox.wrap(program, &fixture.policy, helper).expect("a sandbox"),
            input: CommandInput::Report,
            streams: StreamMode::Merged,
            keep: CaptureLimits::up_to(1_000),
            limit: Some(Duration::from_secs(20)),
        };
        let done = run_command(spec, &CancelToken::new(), &|_| ()).expect("it starts");
        let expected = format!("{}\n", fixture.root.display());
        assert_eq!((done.report, done.output.total()), (expected.into_bytes(), 0), "{}", fixture.sandbox);
    }
}

#[test]
fn a_command_without_a_sandbox_does_not_run() {
    let program = || Program {
        path: "sh".into(),
        arguments: vec!["-c".into(), "echo ran".into()],
        directory: "/".into(),
        environment: Vec::new(),
        thread_setup: None,
    };
    let helper = Path::new(env!("CARGO_BIN_EXE_sandbox-helper"));
    let none = Sandbox::None { why: "this is a test".to_owned() };
    let error = none.wrap(program(), &SandboxPolicy::default(), helper).expect_err("there is no sandbox");
    let text = error.to_string();
    assert!(
        text.contains("did not run")
            && text.contains("this is a test")
            && text.contains("Install bubblewrap")
    );

    // The helper rejects an invalid policy.
    for order in ["", "{}", r#"{"landlock":true,"policy":{},"more":1}"#, r#"{"landlock":true}"#] {
        let arguments = [HELPER_ARGUMENT, order, "--", "echo", "ran"].map(Into::into).to_vec();
        let done = crate::finished(Program { path: helper.into(), arguments, ..program() });
        assert_eq!(done.status, ProcessStatus::Exited(126), "{order}");
        assert!(!done.output.text().contains("ran\n"), "{order}");
    }
}
