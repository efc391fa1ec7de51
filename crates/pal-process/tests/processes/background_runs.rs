//! Commands that run in the background of a session.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use pal_process::{BackgroundCommands, BackgroundState, CancelToken, ProcessStatus};

use crate::{eventually, has_gone, shell};

const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_command_is_started_read_and_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().join("background"), 1 << 30);
    let task =
        background.start(shell("echo $$; sleep 0.2; echo up; sleep 1000"), "a server").expect("a shell");
    assert_eq!(
        (task.id.as_str(), task.command_line.as_str(), task.state),
        ("task_1", "a server", BackgroundState::Running)
    );
    let mode = std::fs::metadata(&task.file).expect("its file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let seen = std::cell::RefCell::new(String::new());
    assert!(eventually(|| {
        let news = background.read_new_output(&task.id, 1_000).expect("it is known");
        seen.borrow_mut().push_str(&String::from_utf8_lossy(&news.output));
        seen.borrow().contains("up\n")
    }));
    let seen = seen.into_inner();
    let pid = seen.strip_suffix("\nup\n").expect("every line once");
    assert!(background.take_finished().is_empty());
    let killed = background.kill(&task.id).expect("it is known");
    assert_eq!(killed.state, BackgroundState::Killed);
    assert!(has_gone(pid));
    assert!(background.take_finished().is_empty(), "who killed it knows");
    assert_eq!(background.list(), [killed]);
}

#[test]
fn an_end_is_reported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    let one = background.start(shell("echo one; exit 4"), "one").expect("a shell");
    let two = background.start(shell("kill -9 $$"), "two").expect("a shell");
    let ended = |id: &str| background.wait(id, LONG, &CancelToken::new()).expect("it is known").state;
    assert_eq!(ended(&one.id), BackgroundState::Ended(ProcessStatus::Exited(4)));
    assert_eq!(ended(&two.id), BackgroundState::Ended(ProcessStatus::Signalled(9)));
    assert_eq!(background.read_new_output(&one.id, 100).expect("it is known").output, b"one\n");
    let told: Vec<String> = background.take_finished().into_iter().map(|task| task.command_line).collect();
    assert_eq!(told, ["two"], "the end of the other was seen with its output");
    assert!(background.take_finished().is_empty());
}

#[test]
fn only_the_newest_output_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    let task = background.start(shell("yes | head -c 100000; echo end"), "much").expect("a shell");
    background.wait(&task.id, LONG, &CancelToken::new());
    let news = background.read_new_output(&task.id, 8).expect("it is known");
    assert_eq!((news.output.as_slice(), news.left_out), (b"y\ny\nend\n".as_slice(), 99_996));
    let news = background.read_new_output(&task.id, 8).expect("it is known");
    assert_eq!((news.output.len(), news.left_out), (0, 0));
}

#[test]
fn dropping_ends_all_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    let lines = ["echo $$; sleep 1000", "trap '' TERM; echo $$; while :; do sleep 0.1; done"];
    let tasks: Vec<_> =
        lines.iter().map(|line| background.start(shell(line), line).expect("a shell")).collect();
    let read = |number: usize| std::fs::read_to_string(&tasks[number].file).expect("its file");
    assert!(eventually(|| read(0).ends_with('\n') && read(1).ends_with('\n')));
    drop(background);
    assert!(has_gone(&read(0)) && has_gone(&read(1)));
}

#[test]
fn a_command_that_leaves_processes_behind_ends_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    let task = background.start(shell("sleep 1000 & echo $!"), "left").expect("a shell");
    let task = background.wait(&task.id, LONG, &CancelToken::new()).expect("it is known");
    assert_eq!((task.state, task.left_processes), (BackgroundState::Ended(ProcessStatus::Exited(0)), true));
    assert!(has_gone(&std::fs::read_to_string(&task.file).expect("its file")));
}

#[test]
fn a_command_that_prints_without_end_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    background.limit_outputs(100_000);
    let task = background.start(shell("while :; do echo 0123456789; done"), "endless").expect("a shell");
    let task = background.wait(&task.id, LONG, &CancelToken::new()).expect("it is known");
    assert_eq!(task.state, BackgroundState::PrintedTooMuch);
    let bytes = std::fs::metadata(&task.file).expect("its file").len();
    assert_eq!(bytes, 100_000, "what it printed before that was noticed is cut off");
}

#[test]
fn outputs_of_an_earlier_run_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("task_1.txt"), "old").expect("written");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    assert_eq!(background.start(shell(":"), "new").expect("a shell").id, "task_2");
    let mut missing = shell(":");
    missing.path = "no-such-program-here".into();
    assert!(background.start(missing, "missing").is_err());
    assert_eq!(background.start(shell(":"), "newer").expect("a shell").id, "task_3");
    assert_eq!(std::fs::read_to_string(folder.path().join("task_1.txt")).expect("it is there"), "old");
}

#[test]
fn a_wait_ends_at_its_timeout_or_on_cancel() {
    let folder = tempfile::tempdir().expect("a folder");
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 30);
    let task = background.start(shell("sleep 1000"), "long").expect("a shell");
    let began = Instant::now();
    let cancel = CancelToken::new();
    let after = background.wait(&task.id, Duration::from_millis(50), &cancel).expect("it is known");
    assert_eq!(after.state, BackgroundState::Running);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel();
        });
        background.wait(&task.id, LONG, &cancel);
    });
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(background.wait("task_9", LONG, &CancelToken::new()).is_none());
}
