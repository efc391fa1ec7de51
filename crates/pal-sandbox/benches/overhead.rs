//! What the sandbox adds to a read-only command: medians of commands that run in turn, without a sandbox and in each of
//! this machine's. `PAL=path` takes that program as the helper, as sessions do, in the place of the small one of the tests.

#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_process::{Cancel, Input, Keep, Program, Spec, Streams, adopt_orphans, run};
use pal_sandbox::{Fence, Policy, SandboxProbe, ThreadSandbox};

const ROUNDS: usize = 200;

fn main() {
    let project = std::env::current_dir().unwrap_or_default();
    // As a session does.
    adopt_orphans(&project);
    let helper = std::env::var_os("PAL")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_pal-fenced")), PathBuf::from);
    let mut ways = vec![("no sandbox", Way::Bare)];
    ways.extend(SandboxProbe::default().thread_sandbox().map(|sandbox| ("by thread", Way::Thread(sandbox))));
    ways.extend(Fence::detect_landlock().ok().map(|fence| ("Landlock", Way::Fence(fence))));
    ways.extend(
        Some(Fence::detect())
            .filter(|fence| matches!(fence, Fence::Bubblewrap { .. }))
            .map(|fence| ("bubblewrap", Way::Fence(fence))),
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

/// How a command runs.
enum Way {
    Bare,
    Thread(ThreadSandbox),
    Fence(Fence),
}

fn once(way: &Way, project: &Path, helper: &Path) {
    let program = Program {
        path: "bash".into(),
        arguments: vec!["-c".into(), "cat Cargo.toml".into()],
        directory: project.to_owned(),
        environment: Vec::new(),
        thread_setup: None,
    };
    let policy = Policy::read_only(&[project.to_owned()]);
    let program = match way {
        Way::Bare => program,
        Way::Thread(sandbox) => sandbox.confine(program, &policy),
        Way::Fence(fence) => match fence.wrap(program, &policy, helper) {
            Ok(program) => program,
            Err(error) => panic!("{error}"),
        },
    };
    let spec = Spec {
        program,
        input: Input::Nothing,
        streams: Streams::Merged,
        keep: Keep::up_to(100_000),
        limit: Some(Duration::from_secs(10)),
    };
    let done = run(spec, &Cancel::new(), &|_| ());
    assert!(done.is_ok_and(|done| done.status.is_success()));
}

fn median(took: &mut [Duration]) -> f64 {
    took.sort();
    took[took.len() / 2].as_secs_f64() * 1e3
}
