//! Foreground runs of real commands.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pal_process::{
    CancelToken, CaptureLimits, CommandInput, CommandOutcome, CommandSpec, OverflowFile, ProcessStatus,
    Program, StreamMode, TerminationCause, run_command,
};

use crate::{has_gone, shell};

fn spec(line: &str) -> CommandSpec {
    CommandSpec {
        program: shell(line),
        input: CommandInput::Nothing,
        streams: StreamMode::Merged,
        keep: CaptureLimits::up_to(100_000),
        limit: Some(Duration::from_secs(20)),
    }
}

fn finished(spec: CommandSpec) -> CommandOutcome {
    run_command(spec, &CancelToken::new(), &|_| ()).expect("a shell")
}

#[test]
fn both_outputs_come_in_the_order_in_which_they_were_written() {
    let shown = RefCell::new(Vec::new());
    let line = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 3";
    let done =
        run_command(spec(line), &CancelToken::new(), &|bytes| shown.borrow_mut().extend_from_slice(bytes));
    let done = done.expect("a shell");
    let text = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n";
    assert_eq!((done.output.text().as_str(), done.status), (text, ProcessStatus::Exited(3)));
    assert_eq!(shown.into_inner(), text.as_bytes());
    assert_eq!((done.stopped, done.left_processes), (None, false));
}

#[test]
fn separate_outputs_and_an_input_longer_than_a_pipe() {
    let input = b"0123456789\n".repeat(100_000);
    let separate = |line: &str| CommandSpec {
        input: CommandInput::Bytes(input.clone()),
        streams: StreamMode::Separate,
        keep: CaptureLimits::up_to(2_000_000),
        ..spec(line)
    };
    let done = finished(separate("cat; echo done >&2"));
    assert_eq!(done.output.head, input);
    assert_eq!(done.errors.text(), "done\n");
    let done = finished(separate("exec 0<&-; echo no, thanks"));
    assert_eq!((done.output.text().as_str(), done.status), ("no, thanks\n", ProcessStatus::Exited(0)));
    assert_eq!(finished(spec("cat")).output.total(), 0, "nothing stands on the input");
}

#[test]
fn the_environment_and_the_directory_are_those_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("it is there");
    let mut asked = spec("pwd -P; echo \"$PAL_TEST\"; echo \"${HOME-gone}\"");
    asked.program.directory = folder.path().to_owned();
    asked.program.environment = vec![("PAL_TEST".into(), Some("here".into())), ("HOME".into(), None)];
    assert_eq!(finished(asked).output.text(), format!("{}\nhere\ngone\n", real.display()));
}

#[test]
fn a_spawn_failure_names_the_program() {
    let program = Program { path: "no-such-program-here".into(), ..shell("") };
    let error = run_command(CommandSpec { program, ..spec("") }, &CancelToken::new(), &|_| ())
        .expect_err("there is none");
    assert!(error.to_string().starts_with("no-such-program-here could not be started: "), "{error}");
}

#[test]
fn a_limit_ends_a_command_and_keeps_what_it_printed() {
    let began = Instant::now();
    let limit = Some(Duration::from_millis(200));
    let done = finished(CommandSpec { limit, ..spec("echo so far; sleep 1000 & echo $!; wait") });
    assert_eq!(done.stopped, Some(TerminationCause::TimedOut));
    assert_eq!(done.status, ProcessStatus::Signalled(15));
    let text = done.output.text();
    let sleeper = text.strip_prefix("so far\n").expect("what it printed");
    assert!(has_gone(sleeper));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let began = Instant::now();
    let limit = Some(Duration::from_millis(100));
    let line = "trap 'echo not me' TERM; echo $$; while :; do sleep 0.05; done";
    let done = finished(CommandSpec { limit, ..spec(line) });
    assert_eq!((done.stopped, done.status), (Some(TerminationCause::TimedOut), ProcessStatus::Signalled(9)));
    let text = done.output.text();
    assert!(text.contains("not me"), "what it says to the signal is heard: {text:?}");
    assert!(has_gone(text.lines().next().expect("a number")));
    assert!((2.0..4.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
}

#[test]
fn cancel_takes_effect_at_once() {
    let cancel = CancelToken::new();
    let wish = cancel.clone();
    // Cancels after the first line.
    let wished = RefCell::new(None);
    let done = run_command(spec("echo $$; sleep 1000"), &cancel, &|_| {
        *wished.borrow_mut() = Some(Instant::now());
        wish.cancel();
    });
    let done = done.expect("a shell");
    let waited = wished.into_inner().expect("it printed").elapsed();
    assert_eq!(
        (done.stopped, done.status),
        (Some(TerminationCause::Cancelled), ProcessStatus::Signalled(15))
    );
    assert!(waited < Duration::from_millis(500), "{waited:?}");
    assert!(has_gone(&done.output.text()));

    let done = run_command(spec("echo never"), &cancel, &|_| ()).expect("no error");
    assert_eq!(
        (done.stopped, done.output.total()),
        (Some(TerminationCause::Cancelled), 0),
        "it is not even started"
    );
}

#[test]
fn cancel_from_another_thread_reaches_a_silent_command() {
    let cancel = CancelToken::new();
    let waited = std::thread::scope(|scope| {
        let wish = cancel.clone();
        let wisher = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            wish.cancel();
            Instant::now()
        });
        let done = run_command(spec("sleep 1000"), &cancel, &|_| ()).expect("a shell");
        assert_eq!(done.stopped, Some(TerminationCause::Cancelled));
        wisher.join().expect("no panic").elapsed()
    });
    assert!(waited < Duration::from_millis(500), "{waited:?}");
}

#[test]
fn leftover_processes_are_ended_without_delay() {
    for line in
        ["sleep 1000 & echo $!", "sleep 1000 >/dev/null 2>&1 & echo $!", "yes >&2 & echo $!; exec 1>&-"]
    {
        let began = Instant::now();
        let done = finished(CommandSpec { streams: StreamMode::Separate, ..spec(line) });
        // Far less than the leftovers would take, even on a busy machine.
        assert!(began.elapsed() < Duration::from_secs(5), "{line}: {:?}", began.elapsed());
        assert_eq!((done.status, done.left_processes), (ProcessStatus::Exited(0), true), "{line}");
        assert!(has_gone(&done.output.text()), "{line}");
    }
}

#[test]
fn a_process_outside_the_group_causes_no_delay() {
    let began = Instant::now();
    let done = finished(spec("setsid sh -c 'echo $$; sleep 3' & sleep 0.3"));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(done.status, ProcessStatus::Exited(0));
}

#[test]
fn a_stopped_command_can_be_ended() {
    let limit = Some(Duration::from_millis(200));
    let done = finished(CommandSpec { limit, ..spec("kill -STOP $$") });
    assert_eq!((done.stopped, done.status), (Some(TerminationCause::TimedOut), ProcessStatus::Signalled(15)));
}

#[test]
fn an_endless_output_stays_small_in_memory_and_whole_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("whole.txt");
    let overflow = Some(OverflowFile { file: file.clone(), bytes_max: 1 << 30 });
    let keep = CaptureLimits { whole_max: 400_000, head: 1_000, tail: 1_000, overflow };
    let done = finished(CommandSpec { keep, ..spec("yes | head -c 50000000; echo last") });
    assert_eq!((done.output.total(), done.output.head.len()), (50_000_005, 1_000));
    assert!(done.output.tail.ends_with(b"y\nlast\n"));
    assert!(done.output.head.capacity() + done.output.tail.capacity() < 1_000_000);
    assert_eq!(done.output.file, Some((file.clone(), 50_000_005)));
    let metadata = std::fs::metadata(&file).expect("the file");
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    assert_eq!((metadata.len(), mode), (50_000_005, 0o600));
}

#[test]
fn a_report_is_not_output() {
    let line = "exec 9>&0 </dev/null; cat; echo printed; echo reported >&9; exec 1>&- 2>&-; echo late >&9";
    let done = finished(CommandSpec { input: CommandInput::Report, ..spec(line) });
    assert_eq!(done.output.text(), "printed\n");
    assert_eq!(String::from_utf8_lossy(&done.report), "reported\nlate\n");
}

#[test]
fn many_commands_leave_nothing_behind() {
    let threads = || std::fs::read_dir("/proc/self/task").expect("Linux").count();
    let zombies = || {
        let own = std::process::id().to_string();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        children.split_whitespace().filter(|child| !crate::is_alive(child)).count()
    };
    for _ in 0..50 {
        let done = finished(spec("sleep 1000 & echo hi"));
        assert_eq!(done.output.text(), "hi\n");
    }
    assert!(crate::eventually(|| threads() < 40), "threads: {}", threads());
    assert!(crate::eventually(|| zombies() == 0));
}
