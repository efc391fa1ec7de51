//! What the model is told of commands.

use std::path::Path;
use std::time::Duration;

use pal_process::{Captured, EndedProcess, EndedProcesses, News, State, Task};

/// A command line as it is named in a sentence.
const LINE_CHARACTERS_MAX: usize = 80;

/// What is told once where Landlock is all that there is.
pub(super) const LANDLOCK: &str = "the sandbox of this machine is Landlock: commands can change what is in the workspace, but \
    make nothing new directly in its top folder, because .git, .pal and other places there are closed to them. Write makes \
    files there; bubblewrap, once installed, has no such limit";

/// How a command in the background is, in a sentence.
pub(super) fn task(task: &Task) -> String {
    let (id, time) = (&task.id, seconds(task.took));
    let how = match task.state {
        State::Running => format!("is running, since {time}"),
        State::Ended(status) => format!("ended with {status} after {time}"),
        State::Killed => format!("was ended after {time}"),
        State::PrintedTooMuch => {
            format!("was ended after {time} because it printed more than max_command_output_mb allows")
        }
    };
    let left = match task.left_processes {
        false => String::new(),
        true if task.ended.is_empty() => " Processes that it left running were ended.".to_owned(),
        true => format!(" Processes that it left running were ended: {}.", EndedProcesses(&task.ended)),
    };
    format!("{id} ({}) {how}.{left} Its output is in {}", line(&task.what), task.file.display())
}

/// What is said of processes that a command left behind.
pub(super) fn left_behind(ended: &[EndedProcess]) -> String {
    let keeps = "`run_in_background` keeps a command running";
    match ended {
        [] => format!("processes that it left running were ended: {keeps}"),
        [_] => format!("a process that it left running was ended: {}. {keeps}", EndedProcesses(ended)),
        several => {
            let count = several.len();
            format!("{count} processes that it left running were ended: {}. {keeps}", EndedProcesses(ended))
        }
    }
}

/// What is said of a file that no command may make.
pub(super) fn removed(path: &Path) -> String {
    format!(
        "{} was renamed to {}.blocked: programs outside the sandbox would run what it says. Only the user may put it there",
        path.display(),
        path.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// What a command in the background printed, below a line about it.
pub(super) fn news(news: &News) -> String {
    let mut told = format!("[{}]\n", task(&news.task));
    if let Some(why) = &news.failed {
        told.push_str(&format!("[its output cannot be read: {why}]\n"));
    }
    if news.left_out > 0 {
        told.push_str(&format!("[{} bytes before what follows are only in the file]\n", news.left_out));
    }
    if news.output.is_empty() {
        told.push_str("(nothing new)");
    }
    told.push_str(&String::from_utf8_lossy(&news.output));
    told
}

/// What was kept of an output, and where the rest is.
pub(super) fn captured(output: &Captured) -> String {
    if output.left_out == 0 {
        return String::from_utf8_lossy(&output.head).into_owned();
    }
    let place = match (&output.file, &output.file_failed) {
        (Some((file, _)), None) => format!("all of it is in {}", file.display()),
        (Some((file, bytes)), Some(why)) => {
            format!("the first {bytes} bytes are in {}: {why}", file.display())
        }
        (None, Some(why)) => format!("they could not be kept: {why}"),
        (None, None) => "they were not kept".to_owned(),
    };
    let (head, tail) = (cut_at_line_end(&output.head), cut_at_line_start(&output.tail));
    let left_out = output.total() - (head.len() + tail.len()) as u64;
    format!(
        "{}\n[… {left_out} of {} bytes left out; {place} …]\n{}",
        String::from_utf8_lossy(head).trim_end_matches('\n'),
        output.total(),
        String::from_utf8_lossy(tail)
    )
}

/// Up to the last line end, if one is near.
fn cut_at_line_end(head: &[u8]) -> &[u8] {
    match head.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if head.len() - end < 1_000 => &head[..=end],
        _ => head,
    }
}

/// From behind the first line end, if one is near.
fn cut_at_line_start(tail: &[u8]) -> &[u8] {
    match tail.iter().take(1_000).position(|byte| *byte == b'\n') {
        Some(end) => &tail[end + 1..],
        None => tail,
    }
}

/// A time in words.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn line(command: &str) -> String {
    let first = command.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(LINE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None if first.len() < command.trim().len() => format!("{first} …"),
        None => first.to_owned(),
    }
}
