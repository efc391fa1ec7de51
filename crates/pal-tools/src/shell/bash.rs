//! Bash: a command, waited for or left in the background.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pal_permissions::{Confinement, Need, SandboxLevel};
use pal_process::{Finished, Input as Stdin, Keep, Overflow, Spec, Status, Stopped, Streams, run};
use serde::Deserialize;

use super::{Shell, script, told};
use crate::input::lenient;
use crate::{Input, Output, Running, Tool, Workspace};

/// How long a command may take unless the call says otherwise.
const TIME_MS: u64 = 120_000;

/// How long a command may take at most.
const TIME_MS_MAX: u64 = 600_000;

/// The longest command line: systems take no longer argument than 128 KiB.
const COMMAND_BYTES_MAX: usize = 100_000;

/// Outputs up to this length are given as they are: the pipeline knows best what to show of them.
const OUTPUT_BYTES_MAX: usize = 400_000;

/// Of longer outputs, so much is shown of either end.
const END_BYTES: usize = 8_000;

/// The folder of the session with outputs that are too long for a result.
const OUTPUTS: &str = "outputs";

/// Runs a command.
#[derive(Clone, Debug)]
pub struct Bash(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    command: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    timeout: Option<u64>,
    /// For whoever watches.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, deserialize_with = "lenient::yes_or_no")]
    run_in_background: bool,
}

impl Tool for Bash {
    fn name(&self) -> &'static str {
        "Bash"
    }

    fn only_looks(&self, _: &Input) -> bool {
        // What a command line does is for permissions to judge.
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        checked(input).map(|fields| vec![Need::Run(fields.command)])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        let fields = match checked(input) {
            Ok(fields) => fields,
            Err(wrong) => return Output::error(&wrong),
        };
        let (directory, moved) = start_directory(running.workspace);
        let output = if fields.run_in_background {
            self.start(&fields, directory, running.confinement)
        } else {
            self.wait(&fields, &directory, running)
        };
        let mut output = output.unwrap_or_else(|wrong| Output::error(&wrong));
        if let Some(note) = moved {
            output.content.insert(0, pal_model::Block::text(&note));
            let now = running.workspace.directory();
            output.aftermath.directory.get_or_insert(now.to_string_lossy().into_owned());
        }
        output
    }
}

impl Bash {
    fn start(
        &self,
        fields: &Fields,
        directory: PathBuf,
        confinement: &Confinement,
    ) -> Result<Output, String> {
        if !self.0.allows_background {
            return Err(
                "Commands in the background are switched off: leave `run_in_background` out.".to_owned()
            );
        }
        let (program, _holding) = self
            .0
            .command(&fields.command, str::to_owned, directory, confinement)
            .map_err(|error| error.to_string())?;
        let task = self.0.background.start(program, &fields.command).map_err(|error| error.to_string())?;
        Ok(Output::text(&format!(
            "Running in the background as {}. Its output goes to {}; BashOutput shows what is new, KillBash ends it.",
            task.id,
            task.file.display()
        )))
    }

    fn wait(&self, fields: &Fields, directory: &Path, running: &Running<'_>) -> Result<Output, String> {
        let workspace = running.workspace;
        let limit = Duration::from_millis(fields.timeout.unwrap_or(TIME_MS).clamp(1, TIME_MS_MAX));
        let (program, holding) = self
            .0
            .command(&fields.command, script::framed, directory.to_owned(), running.confinement)
            .map_err(|error| error.to_string())?;
        let overflow = overflow(&workspace.session, running.call.as_str(), self.0.output_bytes_max);
        let spec = Spec {
            program,
            input: Stdin::Report,
            streams: Streams::Merged,
            keep: Keep { whole_max: OUTPUT_BYTES_MAX, head: END_BYTES, tail: END_BYTES, overflow },
            limit: Some(limit),
        };
        let shown = Shown { progress: running.progress, pending: RefCell::default() };
        let mut done =
            run(spec, running.cancel, &|bytes| shown.push(bytes)).map_err(|error| error.to_string())?;
        // Bubblewrap ends what is left behind with the command; what is still going then is its own.
        if self.0.is_bubblewrapped(running.confinement) {
            done.left_processes = false;
            done.ended.clear();
        }
        // The model reads it in the result, the user when the program ends.
        pal_process::tell_later(done.ended.clone());
        shown.finish();

        let mut text = told::captured(&done.output);
        let mut note = |note: String| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{note}]\n"));
        };
        endings(&done, limit).into_iter().for_each(&mut note);
        drop(holding);
        let removed = self.0.tidy();
        removed.iter().map(|path| told::removed(path)).for_each(&mut note);
        if running.confinement.level == SandboxLevel::WorkspaceWrite {
            self.0.weakness().into_iter().for_each(&mut note);
        }
        let mut output = Output::default();
        if let Some(now) = script::reported(&done.report) {
            let (now, outside) = within(workspace, now);
            outside.into_iter().for_each(&mut note);
            if now != directory {
                workspace.change_directory(&now);
                output.aftermath.directory = Some(now.to_string_lossy().into_owned());
            }
        }
        if text.is_empty() {
            text.push_str("(it printed nothing)");
        }
        output.is_error = !done.status.is_success() || done.stopped.is_some();
        output.content = Output::text(text.trim_end_matches('\n')).content;
        Ok(output)
    }
}

fn checked(input: &Input) -> Result<Fields, String> {
    let fields: Fields = input.read()?;
    if fields.command.trim().is_empty() {
        return Err("`command` is empty: say what to run.".to_owned());
    }
    if fields.command.contains('\0') {
        return Err("`command` holds a zero byte, which no command line can.".to_owned());
    }
    if fields.command.len() > COMMAND_BYTES_MAX {
        return Err(format!(
            "`command` has {} bytes, more than the {COMMAND_BYTES_MAX} that a command line may have. Write it into a \
             file with Write, and run that.",
            fields.command.len()
        ));
    }
    Ok(fields)
}

/// Where the next command starts: the working directory, or the first root if that is gone, and a note that says so.
fn start_directory(workspace: &Workspace) -> (PathBuf, Option<String>) {
    let directory = workspace.directory();
    if directory.is_dir() {
        return (directory, None);
    }
    let root = workspace.roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    workspace.change_directory(&root);
    let note =
        format!("[the working directory {} is gone: it is {} now]", directory.display(), root.display());
    (root, Some(note))
}

/// A directory as the working directory, which stays inside the workspace; a note if it had to be another.
fn within(workspace: &Workspace, directory: PathBuf) -> (PathBuf, Option<String>) {
    match workspace.roots.first() {
        Some(first) if !workspace.roots.iter().any(|root| directory.starts_with(root)) => {
            let note = format!(
                "{} is outside of the workspace: the working directory is {} again",
                directory.display(),
                first.display()
            );
            (first.clone(), Some(note))
        }
        _ => (directory, None),
    }
}

/// What has to be said of how a command ended.
fn endings(done: &Finished, limit: Duration) -> Vec<String> {
    let mut notes = Vec::new();
    match (done.stopped, done.status) {
        (Some(Stopped::Cancelled), _) => {
            notes.push(format!("cancelled after {}", told::seconds(done.took)));
        }
        (Some(Stopped::TimedOut), _) => notes.push(format!(
            "not done after {}, its limit, and therefore ended. A higher `timeout` gives it up to {TIME_MS_MAX} ms, \
             `run_in_background` lets it go on beside",
            told::seconds(limit)
        )),
        (None, Status::Exited(0)) => {}
        (None, status) => notes.push(status.to_string()),
    }
    // What a command that was stopped had started in its own group was stopped with it; what had left the group is news.
    if done.left_processes && (done.stopped.is_none() || !done.ended.is_empty()) {
        notes.push(told::left_behind(&done.ended));
    }
    notes
}

/// The file for an output that is too long, named after the call.
fn overflow(session: &Path, call: &str, bytes_max: u64) -> Option<Overflow> {
    use std::os::unix::fs::DirBuilderExt;
    let name: String = call
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' })
        .take(100)
        .collect();
    let folder = session.join(OUTPUTS);
    // Where the folder cannot be made, making the file fails as well and says why.
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    Some(Overflow { file: folder.join(format!("{name}.txt")), bytes_max })
}

/// Hands what a command prints to whoever watches, in whole characters.
struct Shown<'a> {
    progress: &'a (dyn Fn(&str) + Sync),
    pending: RefCell<Vec<u8>>,
}

impl Shown<'_> {
    fn push(&self, bytes: &[u8]) {
        let mut pending = self.pending.borrow_mut();
        pending.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => pending.len(),
        };
        if whole > 0 {
            (self.progress)(&String::from_utf8_lossy(&pending[..whole]));
            pending.drain(..whole);
        }
    }

    fn finish(&self) {
        let rest = self.pending.take();
        if !rest.is_empty() {
            (self.progress)(&String::from_utf8_lossy(&rest));
        }
    }
}
