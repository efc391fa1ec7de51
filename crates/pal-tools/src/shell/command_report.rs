//! Texts about commands for the model.

use std::path::Path;
use std::time::Duration;

use pal_process::{
    BackgroundCommand, BackgroundOutput, BackgroundState, CapturedOutput, EndedProcess, EndedProcesses,
};

/// Maximum characters of a command line in a sentence.
const LINE_CHARACTERS_MAX: usize = 80;

/// Notice shown once if Landlock is the only sandbox.
pub(super) const LANDLOCK: &str = "the sandbox of this machine is Landlock: commands can change what is in the workspace, but \
    make nothing new directly in its top folder, because .git, .pal and other places there are closed to them. Write makes \
    files there; bubblewrap, once installed, has no such limit";

/// Describes the state of a background command.
pub(super) fn describe_command(task: &BackgroundCommand) -> String {
    let (id, time) = (&task.id, seconds(task.took));
    let how = match task.state {
        BackgroundState::Running => format!("is running, since {time}"),
        BackgroundState::Ended(status) => format!("ended with {status} after {time}"),
        BackgroundState::Killed => format!("was ended after {time}"),
        BackgroundState::PrintedTooMuch => {
            format!("was ended after {time} because it printed more than max_command_output_mb allows")
        }
    };
    let left = match task.left_processes {
        false => String::new(),
        true if task.ended.is_empty() => " Processes that it left running were ended.".to_owned(),
        true => format!(" Processes that it left running were ended: {}.", EndedProcesses(&task.ended)),
    };
    format!("{id} ({}) {how}.{left} Its output is in {}", line(&task.command_line), task.file.display())
}

/// Describes terminated leftover processes.
pub(super) fn describe_leftovers(ended: &[EndedProcess]) -> String {
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

/// Describes a file that was moved aside.
pub(super) fn describe_moved_file(path: &Path) -> String {
    format!(
        "{} was renamed to {}.blocked: programs outside the sandbox would run what it says. Only the user may put it there",
        path.display(),
        path.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// Formats new output of a background command below its state.
pub(super) fn render_output(news: &BackgroundOutput) -> String {
    let mut told = format!("[{}]\n", describe_command(&news.task));
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

/// Formats captured output with the location of the rest.
pub(super) fn render_captured(output: &CapturedOutput) -> String {
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

/// Cuts after the last line end, if near.
fn cut_at_line_end(head: &[u8]) -> &[u8] {
    match head.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if head.len() - end < 1_000 => &head[..=end],
        _ => head,
    }
}

/// Cuts after the first line end, if near.
fn cut_at_line_start(tail: &[u8]) -> &[u8] {
    match tail.iter().take(1_000).position(|byte| *byte == b'\n') {
        Some(end) => &tail[end + 1..],
        None => tail,
    }
}

/// Formats a duration.
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
