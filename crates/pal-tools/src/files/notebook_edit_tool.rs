//! `NotebookEdit` tool: replaces, inserts and deletes cells of Jupyter notebooks.

use pal_model::KnownFile;
use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::file_diff::diff;
use super::file_io;
use super::notebook::{CellKind, Notebook};
use super::write_tool::{ExistingFile, read_existing, write_recorded};
use crate::path_resolution::describe_io_error;
use crate::restored_tags::restore_tags;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Changes one cell of a notebook.
#[derive(Clone, Copy, Debug)]
pub struct NotebookEditTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotebookEditInput {
    notebook_path: String,
    #[serde(default)]
    cell_id: Option<String>,
    #[serde(default)]
    new_source: Option<String>,
    #[serde(default)]
    cell_type: Option<CellType>,
    #[serde(default)]
    edit_mode: CellEdit,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum CellEdit {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl ToolHandler for NotebookEditTool {
    fn name(&self) -> &'static str {
        "NotebookEdit"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: NotebookEditInput = input.read()?;
        fields.check()?;
        Ok(vec![ToolAccess::Write(workspace.resolve(&fields.notebook_path))])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        edit(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

impl NotebookEditInput {
    fn check(&self) -> Result<(), String> {
        if !self.notebook_path.to_lowercase().ends_with(".ipynb") {
            return Err(String::from("`notebook_path` is no .ipynb file: change other files with Edit."));
        }
        match self.edit_mode {
            CellEdit::Replace | CellEdit::Insert if self.new_source.is_none() => {
                Err(String::from("`new_source` is missing: the new text of the cell."))
            }
            CellEdit::Replace | CellEdit::Delete if self.cell_id.is_none() => {
                Err(String::from("`cell_id` is missing: its `id` in the file, or its number, as `cell-0`."))
            }
            CellEdit::Insert if self.cell_type.is_none() => {
                Err(String::from("`cell_type` is missing: a new cell is `code`, `markdown` or `raw`."))
            }
            _ => Ok(()),
        }
    }

    /// Text of the notebook after the change.
    fn apply(&self, old: &str, seed: &str) -> Result<String, String> {
        let notebook = Notebook::parse(old)?;
        let source = restore_tags(self.new_source.as_deref().unwrap_or_default());
        let at = self.cell_id.as_deref().map(|id| notebook.find(id)).transpose()?;
        let kind = self.cell_type.map(|kind| match kind {
            CellType::Code => CellKind::Code,
            CellType::Markdown => CellKind::Markdown,
            CellType::Raw => CellKind::Raw,
        });
        match self.edit_mode {
            CellEdit::Replace => notebook.replace(at.unwrap_or_default(), &source, kind),
            CellEdit::Insert => {
                let after = at.map_or(0, |at| at + 1).min(notebook.len());
                Ok(notebook.insert(after, &source, kind.unwrap_or(CellKind::Code), seed))
            }
            CellEdit::Delete => Ok(notebook.delete(at.unwrap_or_default())),
        }
    }
}

fn edit(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: NotebookEditInput = input.read()?;
    fields.check()?;
    let named = &fields.notebook_path;
    let real = context.writable(named)?;
    let _writing = context.workspace.lock_writing();
    let Some(ExistingFile { bytes, permissions, seen }) = read_existing(named, &real, context.workspace)?
    else {
        return Err(format!("{named} does not exist. Make a notebook with Write."));
    };
    let old = std::str::from_utf8(&bytes).map_err(|_| format!("{named} is no text."))?;
    let new =
        fields.apply(old, context.call.as_str()).map_err(|why| format!("{named} was not changed: {why}."))?;
    if new == old {
        return Err(format!("{named} was not changed: the cell has exactly this source."));
    }
    if let Some(keeper) = context.workspace.recorded_folder_of(&real) {
        return write_recorded(named, &real, (Some(&bytes), &new), keeper, context);
    }
    context.workspace.keep_version(&real, Some((&bytes, &permissions)), new.as_bytes());
    file_io::replace(&real, new.as_bytes(), Some(permissions))
        .map_err(|err| describe_io_error(named, &err))?;
    let text = format!("Changed {named}:\n{}", diff(&bytes, new.as_bytes()));
    let mut output = ToolOutput::text(text.trim_end());
    // Only the change was shown, so a later read cannot refer to this call.
    let lines = seen.and_then(|seen| seen.lines);
    let fingerprint = file_io::fingerprint(new.as_bytes());
    super::record_seen_file(&mut output, context, &real, KnownFile { fingerprint, call: None, lines });
    Ok(output)
}
