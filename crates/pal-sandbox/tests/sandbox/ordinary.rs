//! Ordinary work goes on, and what cannot be fenced in does not run.

use std::path::Path;
use std::time::{Duration, Instant};

use pal_process::{Cancel, Input, Keep, Program, Spec, Status, Stopped, Streams, run};
use pal_sandbox::{Fence, HELPER_ARGUMENT, Policy};

use crate::yards;

#[test]
fn git_commits_and_compilers_start() {
    for yard in yards() {
        let git = "set -e; git init -q .; git config user.email a@example.org; git config user.name A; echo x > f; \
                   git add f; git commit -qm 'First'; git log --format=%s; git status --porcelain; git gc -q";
        let done = yard.shell(git);
        assert_eq!(
            (done.output.text().as_str(), done.status),
            ("First\n", Status::Exited(0)),
            "{}",
            yard.fence
        );
        for line in ["seq 3 | sort -r | xargs -n1 -P3 echo", "find . -name f -exec cat {} +", "ls -la", "ps"]
        {
            let done = yard.shell(line);
            assert!(done.status.is_success(), "{}: {line}: {}", yard.fence, done.output.text());
        }
        let cargo = yard.run(env!("CARGO"), &["--version"]);
        assert!(cargo.output.text().starts_with("cargo "), "{}: {}", yard.fence, cargo.output.text());
    }
}

#[test]
fn a_build_with_threads_and_processes_works() {
    for yard in yards() {
        let program = "fn main() { std::thread::spawn(|| println!(\"built\")).join().unwrap(); \
                       std::process::Command::new(\"true\").status().unwrap(); }";
        std::fs::write(yard.root.join("main.rs"), program).expect("written");
        let mut compiler = std::path::PathBuf::from(env!("CARGO"));
        compiler.set_file_name("rustc");
        let done = yard.shell(&format!("{} main.rs -o main && ./main", compiler.display()));
        assert_eq!(done.output.text(), "built\n", "{}", yard.fence);
    }
}

#[test]
fn status_and_output_pass_through() {
    for yard in yards() {
        let done = yard.shell("echo out; echo err >&2; exit 7");
        assert_eq!(
            (done.output.text().as_str(), done.status),
            ("out\nerr\n", Status::Exited(7)),
            "{}",
            yard.fence
        );
    }
}

#[test]
fn a_fenced_command_is_ended_with_all_that_it_started() {
    for yard in yards() {
        let program = Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), "trap 'echo bye; exit' TERM; sleep 987654 & wait".into()],
            directory: yard.root.clone(),
            environment: Vec::new(),
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_pal-fenced"));
        let spec = Spec {
            program: yard.fence.wrap(program, &yard.policy, helper).expect("a fence"),
            input: Input::Nothing,
            streams: Streams::Merged,
            keep: Keep::up_to(1_000),
            limit: Some(Duration::from_millis(700)),
        };
        let began = Instant::now();
        let done = run(spec, &Cancel::new(), &|_| ()).expect("it starts");
        assert_eq!(done.stopped, Some(Stopped::TimedOut), "{}", yard.fence);
        assert!(began.elapsed() < Duration::from_secs(5), "{}: {:?}", yard.fence, began.elapsed());
        let left = std::process::Command::new("pgrep").args(["-f", "sleep 987654"]).output();
        assert!(left.is_err() || left.is_ok_and(|left| left.stdout.is_empty()), "{}", yard.fence);
    }
}

#[test]
fn a_report_comes_through_the_fence() {
    for yard in yards() {
        let program = Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), "exec 9>&0 </dev/null; cat; pwd -P >&9".into()],
            directory: yard.root.clone(),
            environment: Vec::new(),
            thread_setup: None,
        };
        let helper = Path::new(env!("CARGO_BIN_EXE_pal-fenced"));
        let spec = Spec {
            program: yard.fence.wrap(program, &yard.policy, helper).expect("a fence"),
            input: Input::Report,
            streams: Streams::Merged,
            keep: Keep::up_to(1_000),
            limit: Some(Duration::from_secs(20)),
        };
        let done = run(spec, &Cancel::new(), &|_| ()).expect("it starts");
        let expected = format!("{}\n", yard.root.display());
        assert_eq!((done.report, done.output.total()), (expected.into_bytes(), 0), "{}", yard.fence);
    }
}

#[test]
fn what_cannot_be_fenced_in_does_not_run() {
    let program = || Program {
        path: "sh".into(),
        arguments: vec!["-c".into(), "echo ran".into()],
        directory: "/".into(),
        environment: Vec::new(),
        thread_setup: None,
    };
    let helper = Path::new(env!("CARGO_BIN_EXE_pal-fenced"));
    let none = Fence::None { why: "this is a test".to_owned() };
    let error = none.wrap(program(), &Policy::default(), helper).expect_err("there is no fence");
    let text = error.to_string();
    assert!(
        text.contains("did not run")
            && text.contains("this is a test")
            && text.contains("Install bubblewrap")
    );

    // A policy that the helper does not understand is none.
    for order in ["", "{}", r#"{"landlock":true,"policy":{},"more":1}"#, r#"{"landlock":true}"#] {
        let arguments = [HELPER_ARGUMENT, order, "--", "echo", "ran"].map(Into::into).to_vec();
        let done = crate::finished(Program { path: helper.into(), arguments, ..program() });
        assert_eq!(done.status, Status::Exited(126), "{order}");
        assert!(!done.output.text().contains("ran\n"), "{order}");
    }
}
