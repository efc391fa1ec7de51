//! Edit: replaces pieces of a file.

use pal_model::FileSeen;
use pal_permissions::Need;
use serde::Deserialize;

use super::diff::diff;
use super::disk;
use super::replace::Replacement;
use super::write::{Existing, existing, kept};
use crate::input::lenient;
use crate::paths::trouble;
use crate::quoted::meant;
use crate::{Input, Output, Running, Tool, Workspace};

/// Replaces one or more pieces of a file: all of them or none.
#[derive(Clone, Copy, Debug)]
pub struct Edit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    file_path: String,
    #[serde(default)]
    old_string: Option<String>,
    #[serde(default)]
    new_string: Option<String>,
    #[serde(default, deserialize_with = "lenient::yes_or_no")]
    replace_all: bool,
    #[serde(default)]
    edits: Option<Vec<OneEdit>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    old_string: String,
    new_string: String,
    #[serde(default, deserialize_with = "lenient::yes_or_no")]
    replace_all: bool,
}

impl Tool for Edit {
    fn name(&self) -> &'static str {
        "Edit"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        let target = workspace.resolve(&fields.file_path);
        fields.replacements()?;
        Ok(vec![Need::Write(target)])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        edit(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

impl Fields {
    /// The replacements, in order, whichever way they were given.
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

fn edit(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let named = fields.file_path.clone();
    let replacements = fields.replacements()?;
    let real = running.writable(&named)?;
    let _writing = running.workspace.lock_writing();
    let found = existing(&named, &real, running)?;
    if found.is_none() && replacements.first().is_none_or(|first| !first.old.is_empty()) {
        return Err(format!("{named} does not exist. To make it, use Write, or give an empty `old_string`."));
    }
    let (old, permissions, seen) = match found {
        Some(Existing { bytes, permissions, seen }) => (bytes, Some(permissions), seen),
        None => (Vec::new(), None, None),
    };
    let (new, places) = applied(&old, &replacements)?;
    if let Some(keeper) = running.workspace.keeper_of(&real) {
        let new = String::from_utf8(new).map_err(|_| format!("{named} is no text."))?;
        let old = permissions.is_some().then_some(old.as_slice());
        return kept(&named, &real, (old, &new), keeper, running);
    }
    disk::replace(&real, &new, permissions.clone()).map_err(|err| trouble(&named, &err))?;
    let said = match places {
        _ if permissions.is_none() => format!("Created {named}:"),
        1 => format!("Changed {named}:"),
        places => format!("Changed {named} in {places} places:"),
    };
    let mut output = Output::text(format!("{said}\n{}", diff(&old, &new)).trim_end());
    // Only the change was shown, so there is no call that a later reading could be pointed to.
    let lines = seen.and_then(|seen| seen.lines);
    super::note(&mut output, running, &real, FileSeen { print: disk::print_of(&new), call: None, lines });
    Ok(output)
}

/// The file with all replacements made, each on what the one before it left, and how many places that were.
fn applied(old: &[u8], replacements: &[Replacement]) -> Result<(Vec<u8>, usize), String> {
    let (mut bytes, mut places) = (old.to_vec(), 0);
    for (at, replacement) in replacements.iter().enumerate() {
        if bytes.is_empty() && replacement.old.is_empty() {
            bytes = meant(&replacement.new).into_bytes();
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
