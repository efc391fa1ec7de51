//! `Bash` tool: runs a command in the foreground or background.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_process::{
    CaptureLimits, CapturedOutput, CommandInput as Stdin, CommandOutcome, CommandSpec, OverflowFile,
    ProcessStatus, StreamMode, TerminationCause, run_command,
};
use serde::Deserialize;

use super::{Shell, command_report, command_script};
use crate::output_files::{output_path, store_output};
use crate::tool_input::lenient;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Default timeout of a command in milliseconds.
const TIME_MS: u64 = 120_000;

/// Maximum timeout of a command in milliseconds.
const TIME_MS_MAX: u64 = 600_000;

/// Maximum bytes of a command line: systems limit an argument to 128 KiB.
const COMMAND_BYTES_MAX: usize = 100_000;

/// Maximum bytes of an output returned whole: later layers decide what to show.
const OUTPUT_BYTES_MAX: usize = 400_000;

/// Bytes shown of either end of a longer output.
const END_BYTES: usize = 8_000;

/// Runs a command.
#[derive(Clone, Debug)]
pub struct BashTool(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BashInput {
    command: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    timeout: Option<u64>,
    /// Shown to the user only.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, deserialize_with = "lenient::bool_or_false")]
    run_in_background: bool,
}

impl ToolHandler for BashTool {
    fn name(&self) -> &'static str {
        "Bash"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        // The permission check classifies command lines.
        false
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        checked(input).map(|fields| vec![ToolAccess::Run(fields.command)])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        let fields = match checked(input) {
            Ok(fields) => fields,
            Err(wrong) => return ToolOutput::error(&wrong),
        };
        let (directory, moved) = start_directory(context.workspace);
        let output = if fields.run_in_background {
            self.start(&fields, directory, context.confinement)
        } else {
            self.wait(&fields, &directory, context)
        };
        let mut output = output.unwrap_or_else(|wrong| ToolOutput::error(&wrong));
        if let Some(note) = moved {
            output.content.insert(0, pal_model::ContentBlock::text(&note));
            let now = context.workspace.directory();
            output.aftermath.directory.get_or_insert(now.to_string_lossy().into_owned());
        }
        output
    }
}

impl BashTool {
    fn start(
        &self,
        fields: &BashInput,
        directory: PathBuf,
        confinement: &Confinement,
    ) -> Result<ToolOutput, String> {
        if !self.0.allows_background {
            return Err(
                "Commands in the background are switched off: leave `run_in_background` out.".to_owned()
            );
        }
        let (program, _guard) = self
            .0
            .build_program(&fields.command, str::to_owned, directory, confinement)
            .map_err(|error| error.to_string())?;
        let task = self.0.background.start(program, &fields.command).map_err(|error| error.to_string())?;
        Ok(ToolOutput::text(&format!(
            "Running in the background as {}. Its output goes to {}; BashOutput shows what is new, KillBash ends it.",
            task.id,
            task.file.display()
        )))
    }

    fn wait(
        &self,
        fields: &BashInput,
        directory: &Path,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, String> {
        let workspace = context.workspace;
        let limit = Duration::from_millis(fields.timeout.unwrap_or(TIME_MS).clamp(1, TIME_MS_MAX));
        let (program, guard) = self
            .0
            .build_program(
                &fields.command,
                command_script::wrap_command,
                directory.to_owned(),
                context.confinement,
            )
            .map_err(|error| error.to_string())?;
        let overflow = overflow(&workspace.session, context.call.as_str(), self.0.output_bytes_max);
        let spec = CommandSpec {
            program,
            input: Stdin::Report,
            streams: StreamMode::Merged,
            keep: CaptureLimits { whole_max: OUTPUT_BYTES_MAX, head: END_BYTES, tail: END_BYTES, overflow },
            limit: Some(limit),
        };
        let shown = ProgressStream { progress: context.progress, pending: RefCell::default() };
        let mut done = run_command(spec, context.cancel, &|bytes| shown.push(bytes))
            .map_err(|error| error.to_string())?;
        // Bubblewrap ends leftovers with the command; remaining processes are its own.
        if self.0.is_bubblewrapped(context.confinement) {
            done.left_processes = false;
            done.ended.clear();
        }
        // The model reads it in the result, the user at the end of the program.
        pal_process::report_later(done.ended.clone());
        shown.finish();

        let mut text = command_report::render_captured(&done.output);
        let kept = keep_bytes(&done.output, &workspace.session, context.call.as_str());
        let mut note = |note: String| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{note}]\n"));
        };
        kept.into_iter().for_each(&mut note);
        endings(&done, limit).into_iter().for_each(&mut note);
        drop(guard);
        let removed = self.0.remove_placeholders();
        removed.iter().map(|path| command_report::describe_moved_file(path)).for_each(&mut note);
        if context.confinement.level == SandboxLevel::WorkspaceWrite {
            self.0.landlock_notice().into_iter().for_each(&mut note);
        }
        let mut output = ToolOutput::default();
        if let Some(now) = command_script::parse_report(&done.report) {
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
        output.content = ToolOutput::text(text.trim_end_matches('\n')).content;
        Ok(output)
    }
}

fn checked(input: &ToolInput) -> Result<BashInput, String> {
    let fields: BashInput = input.read()?;
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

/// Start directory of the next command: the working directory, or the first root with a note if that is gone.
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

/// Limits the working directory to the workspace; returns a note if it had to change.
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

/// Notes on how a command ended.
fn endings(done: &CommandOutcome, limit: Duration) -> Vec<String> {
    let mut notes = Vec::new();
    match (done.stopped, done.status) {
        (Some(TerminationCause::Cancelled), _) => {
            notes.push(format!("cancelled after {}", command_report::seconds(done.took)));
        }
        (Some(TerminationCause::TimedOut), _) => notes.push(format!(
            "not done after {}, its limit, and therefore ended. A higher `timeout` gives it up to {TIME_MS_MAX} ms, \
             `run_in_background` lets it go on beside",
            command_report::seconds(limit)
        )),
        (None, ProcessStatus::Exited(0)) => {}
        (None, status) => notes.push(status.to_string()),
    }
    // Processes in the group of a stopped command ended with it; those outside the group are worth a note.
    if done.left_processes && (done.stopped.is_none() || !done.ended.is_empty()) {
        notes.push(command_report::describe_leftovers(&done.ended));
    }
    notes
}

/// File for a long output.
fn overflow(session: &Path, call: &str, bytes_max: u64) -> Option<OverflowFile> {
    Some(OverflowFile { file: output_path(session, call, "txt"), bytes_max })
}

/// Stores output that is no text, byte for byte, and returns a note about it. Longer output has a file already.
fn keep_bytes(output: &CapturedOutput, session: &Path, call: &str) -> Option<String> {
    if output.left_out > 0 || std::str::from_utf8(&output.head).is_ok() {
        return None;
    }
    Some(match store_output(session, call, "bin", &output.head) {
        Ok(path) => format!(
            "bytes that are no UTF-8 are shown as \u{fffd}; the output is in {} as it was printed",
            path.display()
        ),
        Err(error) => format!("bytes that are no UTF-8 are shown as \u{fffd} and could not be kept: {error}"),
    })
}

/// Passes command output to the observer in whole characters.
struct ProgressStream<'a> {
    progress: &'a (dyn Fn(&str) + Sync),
    pending: RefCell<Vec<u8>>,
}

impl ProgressStream<'_> {
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
