//! `Write` tool: creates a file or replaces its content.

use pal_model::KnownFile;
use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::file_diff::diff;
use super::file_io;
use super::replacement::{is_mostly_crlf, with_crlf};
use crate::path_resolution::describe_io_error;
use crate::restored_tags::restore_tags;
use crate::{RecordedFolder, RecordedWrite, ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Creates a file or replaces its content.
#[derive(Clone, Copy, Debug)]
pub struct WriteTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteInput {
    file_path: String,
    content: String,
}

impl ToolHandler for WriteTool {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: WriteInput = input.read()?;
        Ok(vec![ToolAccess::Write(workspace.resolve(&fields.file_path))])
    }

    fn check_feasible(&self, input: &ToolInput, workspace: &Workspace) -> Result<(), String> {
        let fields: WriteInput = input.read()?;
        let real = workspace.resolve(&fields.file_path).real;
        read_existing(&fields.file_path, &real, workspace).map(|_| ())
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        write(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

fn write(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: WriteInput = input.read()?;
    let named = &fields.file_path;
    let real = context.writable(named)?;
    let _writing = context.workspace.lock_writing();
    let existing = read_existing(named, &real, context.workspace)?;
    let mut content = restore_tags(&fields.content);
    // Read hides line ends, so the model cannot know that they were CR LF.
    if let Some(existing) = &existing
        && is_mostly_crlf(&existing.bytes)
        && !content.contains('\r')
    {
        content = with_crlf(&content);
    }
    if let Some(keeper) = context.workspace.recorded_folder_of(&real) {
        let old = existing.map(|existing| existing.bytes);
        return write_recorded(named, &real, (old.as_deref(), &content), keeper, context);
    }
    let permissions = existing.as_ref().map(|existing| existing.permissions.clone());
    let prior = existing.as_ref().map(|existing| (existing.bytes.as_slice(), &existing.permissions));
    context.workspace.keep_version(&real, prior, content.as_bytes());
    file_io::replace(&real, content.as_bytes(), permissions).map_err(|err| describe_io_error(named, &err))?;
    let said = match &existing {
        None => format!("Created {named} ({}).", lines_of(&content)),
        Some(existing) if existing.bytes == content.as_bytes() => {
            format!("{named} held exactly this already.")
        }
        Some(existing) => {
            format!("Replaced {named}:\n{}", diff(&existing.bytes, content.as_bytes()).trim_end())
        }
    };
    let mut output = ToolOutput::text(&said);
    let seen = KnownFile { fingerprint: file_io::fingerprint(content.as_bytes()), call: None, lines: None };
    super::record_seen_file(&mut output, context, &real, seen);
    Ok(output)
}

/// Writes a file through its recorded folder and reports the result.
pub(super) fn write_recorded(
    named: &str,
    real: &std::path::Path,
    (old, content): (Option<&[u8]>, &str),
    keeper: &dyn RecordedFolder,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, String> {
    let RecordedWrite { content, notes } = keeper.write(real, content)?;
    let said = match (&content, old) {
        (None, _) => format!("{named} is gone; its versions are kept."),
        (Some(content), Some(old)) => {
            format!("Changed {named}:\n{}", diff(old, content.as_bytes()).trim_end())
        }
        (Some(content), None) => format!("Created {named}. It holds now:\n{}", content.trim_end()),
    };
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    let mut output = ToolOutput::text(&(said + &notes));
    let print = file_io::fingerprint(content.unwrap_or_default().as_bytes());
    super::record_seen_file(
        &mut output,
        context,
        real,
        KnownFile { fingerprint: print, call: None, lines: None },
    );
    Ok(output)
}

/// File that is about to be changed.
pub(super) struct ExistingFile {
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: std::fs::Permissions,
    /// Version that the model saw.
    pub(super) seen: Option<KnownFile>,
}

/// Reads a file that is about to be changed, if it exists; an error if the model does not know its current
/// content. An empty file need not be known.
pub(super) fn read_existing(
    named: &str,
    real: &std::path::Path,
    workspace: &Workspace,
) -> Result<Option<ExistingFile>, String> {
    let found = file_io::read_for_change(real).map_err(|err| match err.kind() {
        std::io::ErrorKind::IsADirectory => format!("{named} is a folder, not a file."),
        _ => describe_io_error(named, &err),
    })?;
    let Some((bytes, permissions)) = found else { return Ok(None) };
    let seen = workspace.seen_file(real);
    match &seen {
        _ if bytes.is_empty() => {}
        None => {
            return Err(format!("{named} exists and you have not read it in this session. Read it first."));
        }
        Some(seen) if seen.fingerprint != file_io::fingerprint(&bytes) => {
            return Err(format!(
                "{named} has changed since you last saw it; another process or person may be working on it. Read it again first."
            ));
        }
        Some(_) => {}
    }
    Ok(Some(ExistingFile { bytes, permissions, seen }))
}

fn lines_of(content: &str) -> String {
    match content.lines().count() {
        1 => String::from("1 line"),
        lines => format!("{lines} lines"),
    }
}
