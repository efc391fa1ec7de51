//! Tools that read and change files.

mod edit_tool;
mod file_diff;
mod file_io;
mod notebook;
mod notebook_edit_tool;
mod read_tool;
mod replacement;
mod text_page;
mod write_tool;

pub use edit_tool::EditTool;
pub use notebook_edit_tool::NotebookEditTool;
pub use read_tool::ReadTool;
pub use write_tool::WriteTool;

pub(crate) use file_diff::diff;
pub(crate) use file_io::{CHANGED_BYTES_MAX, fingerprint, open, read_for_change, replace};

use pal_model::KnownFile;

use crate::{ToolContext, ToolOutput};

/// Fingerprint of a file's content; none if it cannot be read or is too large to be changed.
pub(crate) fn file_fingerprint(real: &std::path::Path) -> Option<String> {
    let (bytes, _) = file_io::read_for_change(real).ok()??;
    Some(file_io::fingerprint(&bytes))
}

/// State of a file that the model was shown completely by other means.
pub fn file_seen(real: &std::path::Path) -> Option<KnownFile> {
    let bytes = std::fs::read(real).ok()?;
    Some(KnownFile { fingerprint: file_io::fingerprint(&bytes), call: None, lines: None })
}

/// Records that the model knows a file: in the workspace, for parallel calls, and in the output, for the log.
fn record_seen_file(
    output: &mut ToolOutput,
    context: &ToolContext<'_>,
    real: &std::path::Path,
    seen: KnownFile,
) {
    context.workspace.record_seen(real, seen.clone());
    // A non-Unicode path cannot be logged: it is known until the program ends.
    if let Some(path) = real.to_str() {
        output.aftermath.files.insert(path.to_owned(), seen);
    }
    output.touched.push(real.to_owned());
}
