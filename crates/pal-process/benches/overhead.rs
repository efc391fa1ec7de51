//! Overhead of the sandbox for a read-only command: medians of commands that run in turn, without a sandbox
//! and in each of this machine's. `PAL=path` uses that program as the helper, as sessions do, instead of the
//! small one of the tests.

#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_process::sandbox::{Sandbox, SandboxPolicy, SandboxProbe, ThreadSandbox};
use pal_process::{
    CancelToken, CaptureLimits, CommandInput, CommandSpec, Program, StreamMode, adopt_orphans, run_command,
};

const ROUNDS: usize = 200;

fn main() {
    let project = std::env::current_dir().unwrap_or_default();
    // As a session does.
    adopt_orphans(&project);
    let helper = std::env::var_os("PAL")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_sandbox-helper")), PathBuf::from);
    let mut ways = vec![("no sandbox", RunMethod::Bare)];
    ways.extend(
        SandboxProbe::default().thread_sandbox().map(|sandbox| ("by thread", RunMethod::Thread(sandbox))),
    );
    ways.extend(Sandbox::detect_landlock().ok().map(|sandbox| ("Landlock", RunMethod::Sandboxed(sandbox))));
    ways.extend(
        Some(Sandbox::detect())
            .filter(|sandbox| matches!(sandbox, Sandbox::Bubblewrap { .. }))
            .map(|sandbox| ("bubblewrap", RunMethod::Sandboxed(sandbox))),
    );
    let mut took: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    // Criterion's flags and test runs mean one round.
    let rounds = if std::env::args().any(|argument| argument == "--test") { 1 } else { ROUNDS };
    for _ in 0..rounds {
        for ((_, way), took) in ways.iter().zip(&mut took) {
            let begun = Instant::now();
            once(way, &project, &helper);
            took.push(begun.elapsed());
        }
    }
    let medians: Vec<f64> = took.iter_mut().map(|took| median(took)).collect();
    for ((name, _), median) in ways.iter().zip(&medians) {
        println!("{name:12} {median:6.2} ms  +{:.2} ms  x{:.2}", median - medians[0], median / medians[0]);
    }
}

/// Way in which a command is run.
enum RunMethod {
    Bare,
    Thread(ThreadSandbox),
    Sandboxed(Sandbox),
}

fn once(way: &RunMethod, project: &Path, helper: &Path) {
    let program = Program {
        path: "bash".into(),
        arguments: vec!["-c".into(), "cat Cargo.toml".into()],
        directory: project.to_owned(),
        environment: Vec::new(),
        thread_setup: None,
    };
    let policy = SandboxPolicy::read_only(&[project.to_owned()]);
    let program = match way {
        RunMethod::Bare => program,
        RunMethod::Thread(sandbox) => sandbox.confine(program, &policy),
        RunMethod::Sandboxed(sandbox) => match sandbox.wrap(program, &policy, helper) {
            Ok(program) => program,
            Err(error) => panic!("{error}"),
        },
    };
    let spec = CommandSpec {
        program,
        input: CommandInput::Nothing,
        streams: StreamMode::Merged,
        keep: CaptureLimits::up_to(100_000),
        limit: Some(Duration::from_secs(10)),
    };
    let done = run_command(spec, &CancelToken::new(), &|_| ());
    assert!(done.is_ok_and(|done| done.status.is_success()));
}

fn median(took: &mut [Duration]) -> f64 {
    took.sort();
    took[took.len() / 2].as_secs_f64() * 1e3
}
