//! `Edit` tool: replaces pieces of a file.

use pal_model::KnownFile;
use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::file_diff::diff;
use super::file_io;
use super::replacement::Replacement;
use super::write_tool::{ExistingFile, read_existing, write_recorded};
use crate::path_resolution::describe_io_error;
use crate::restored_tags::restore_tags;
use crate::tool_input::lenient;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Replaces one or more pieces of a file, all or none.
#[derive(Clone, Copy, Debug)]
pub struct EditTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditInput {
    file_path: String,
    #[serde(default)]
    old_string: Option<String>,
    #[serde(default)]
    new_string: Option<String>,
    #[serde(default, deserialize_with = "lenient::bool_or_false")]
    replace_all: bool,
    #[serde(default)]
    edits: Option<Vec<EditItem>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct OneEdit")]
struct EditItem {
    old_string: String,
    new_string: String,
    #[serde(default, deserialize_with = "lenient::bool_or_false")]
    replace_all: bool,
}

impl ToolHandler for EditTool {
    fn name(&self) -> &'static str {
        "Edit"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: EditInput = input.read()?;
        let target = workspace.resolve(&fields.file_path);
        fields.replacements()?;
        Ok(vec![ToolAccess::Write(target)])
    }

    fn check_feasible(&self, input: &ToolInput, workspace: &Workspace) -> Result<(), String> {
        let fields: EditInput = input.read()?;
        let named = fields.file_path.clone();
        let real = workspace.resolve(&named).real;
        edited_file(&named, &real, fields, workspace).map(|_| ())
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        edit(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

impl EditInput {
    /// Replacements in order, from either input form.
    fn replacements(self) -> Result<Vec<Replacement>, String> {
        match (self.old_string, self.new_string, self.edits) {
            (Some(old), Some(new), None) => {
                Ok(vec![Replacement { old, new, is_everywhere: self.replace_all }])
            }
            (None, None, Some(edits)) if !edits.is_empty() => Ok(edits
                .into_iter()
                .map(|edit| Replacement {
                    old: edit.old_string,
                    new: edit.new_string,
                    is_everywhere: edit.replace_all,
                })
                .collect()),
            (Some(_), None, None) => {
                Err(String::from("`new_string` is missing; to delete, give an empty one."))
            }
            (None, Some(_), None) => Err(String::from("`old_string` is missing.")),
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                Err(String::from("Give either `old_string` and `new_string`, or `edits`, but not both."))
            }
            (None, None, _) => {
                Err(String::from("Say what to replace: `old_string` and `new_string`, or a list of `edits`."))
            }
        }
    }
}

/// Content of a file before and after an edit.
struct EditedFile {
    old: Vec<u8>,
    new: Vec<u8>,
    /// Number of changed places.
    places: usize,
    /// Permissions of the file; none if it is new.
    permissions: Option<std::fs::Permissions>,
    /// Version that the model saw.
    seen: Option<KnownFile>,
}

/// Applies an edit to the current content of its file; an error for the model if it does not fit.
fn edited_file(
    named: &str,
    real: &std::path::Path,
    fields: EditInput,
    workspace: &Workspace,
) -> Result<EditedFile, String> {
    let replacements = fields.replacements()?;
    let found = read_existing(named, real, workspace)?;
    if found.is_none() && replacements.first().is_none_or(|first| !first.old.is_empty()) {
        return Err(format!("{named} does not exist. To make it, use Write, or give an empty `old_string`."));
    }
    let (old, permissions, seen) = match found {
        Some(ExistingFile { bytes, permissions, seen }) => (bytes, Some(permissions), seen),
        None => (Vec::new(), None, None),
    };
    let (new, places) = apply_replacements(&old, &replacements)?;
    Ok(EditedFile { old, new, places, permissions, seen })
}

fn edit(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: EditInput = input.read()?;
    let named = fields.file_path.clone();
    let real = context.writable(&named)?;
    let _writing = context.workspace.lock_writing();
    let EditedFile { old, new, places, permissions, seen } =
        edited_file(&named, &real, fields, context.workspace)?;
    if let Some(keeper) = context.workspace.recorded_folder_of(&real) {
        let new = String::from_utf8(new).map_err(|_| format!("{named} is no text."))?;
        let old = permissions.is_some().then_some(old.as_slice());
        return write_recorded(&named, &real, (old, &new), keeper, context);
    }
    let prior = permissions.as_ref().map(|permissions| (old.as_slice(), permissions));
    context.workspace.keep_version(&real, prior, &new);
    file_io::replace(&real, &new, permissions.clone()).map_err(|err| describe_io_error(&named, &err))?;
    let said = match places {
        _ if permissions.is_none() => format!("Created {named}:"),
        1 => format!("Changed {named}:"),
        places => format!("Changed {named} in {places} places:"),
    };
    let mut output = ToolOutput::text(format!("{said}\n{}", diff(&old, &new)).trim_end());
    // Only the change was shown, so a later read cannot refer to this call.
    let lines = seen.and_then(|seen| seen.lines);
    super::record_seen_file(
        &mut output,
        context,
        &real,
        KnownFile { fingerprint: file_io::fingerprint(&new), call: None, lines },
    );
    Ok(output)
}

/// Applies all replacements in sequence; returns the new content and the number of changed places.
fn apply_replacements(old: &[u8], replacements: &[Replacement]) -> Result<(Vec<u8>, usize), String> {
    let (mut bytes, mut places) = (old.to_vec(), 0);
    for (at, replacement) in replacements.iter().enumerate() {
        if bytes.is_empty() && replacement.old.is_empty() {
            bytes = restore_tags(&replacement.new).into_bytes();
            places += 1;
            continue;
        }
        let replaced = replacement.apply(&bytes).map_err(|wrong| match replacements.len() {
            1 => wrong,
            all => format!("Nothing was changed. Edit {} of {all}: {wrong}", at + 1),
        })?;
        (bytes, places) = (replaced.bytes, places + replaced.places);
    }
    if bytes == old {
        return Err(String::from("The edits leave the file as it is: nothing was changed."));
    }
    Ok((bytes, places))
}
