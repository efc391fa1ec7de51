//! Write: makes a file or replaces all of it.

use pal_model::FileSeen;
use pal_permissions::Need;
use serde::Deserialize;

use super::diff::diff;
use super::disk;
use super::replace::{is_mostly_crlf, with_crlf};
use crate::paths::trouble;
use crate::quoted::meant;
use crate::{Input, Keeper, Kept, Output, Running, Tool, Workspace};

/// Makes a file or replaces all of it.
#[derive(Clone, Copy, Debug)]
pub struct Write;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    file_path: String,
    content: String,
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        Ok(vec![Need::Write(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        write(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

fn write(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let named = &fields.file_path;
    let real = running.writable(named)?;
    let _writing = running.workspace.lock_writing();
    let existing = existing(named, &real, running)?;
    let mut content = meant(&fields.content);
    // Read shows lines without their ends, so whoever writes the file anew cannot know that they were of two characters.
    if let Some(existing) = &existing
        && is_mostly_crlf(&existing.bytes)
        && !content.contains('\r')
    {
        content = with_crlf(&content);
    }
    if let Some(keeper) = running.workspace.keeper_of(&real) {
        let old = existing.map(|existing| existing.bytes);
        return kept(named, &real, (old.as_deref(), &content), keeper, running);
    }
    let permissions = existing.as_ref().map(|existing| existing.permissions.clone());
    disk::replace(&real, content.as_bytes(), permissions).map_err(|err| trouble(named, &err))?;
    let said = match &existing {
        None => format!("Created {named} ({}).", lines_of(&content)),
        Some(existing) if existing.bytes == content.as_bytes() => {
            format!("{named} held exactly this already.")
        }
        Some(existing) => {
            format!("Replaced {named}:\n{}", diff(&existing.bytes, content.as_bytes()).trim_end())
        }
    };
    let mut output = Output::text(&said);
    let seen = FileSeen { print: disk::print_of(content.as_bytes()), call: None, lines: None };
    super::note(&mut output, running, &real, seen);
    Ok(output)
}

/// Has a file written by who puts it on record, and tells what became of it.
pub(super) fn kept(
    named: &str,
    real: &std::path::Path,
    (old, content): (Option<&[u8]>, &str),
    keeper: &dyn Keeper,
    running: &Running<'_>,
) -> Result<Output, String> {
    let Kept { content, notes } = keeper.write(real, content)?;
    let said = match (&content, old) {
        (None, _) => format!("{named} is gone; its versions are kept."),
        (Some(content), Some(old)) => {
            format!("Changed {named}:\n{}", diff(old, content.as_bytes()).trim_end())
        }
        (Some(content), None) => format!("Created {named}. It holds now:\n{}", content.trim_end()),
    };
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    let mut output = Output::text(&(said + &notes));
    let print = disk::print_of(content.unwrap_or_default().as_bytes());
    super::note(&mut output, running, real, FileSeen { print, call: None, lines: None });
    Ok(output)
}

/// A file that is about to be changed.
pub(super) struct Existing {
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: std::fs::Permissions,
    /// What the model saw of it.
    pub(super) seen: Option<FileSeen>,
}

/// What a file holds that is about to be changed, if there is one; an error if the model does not know it. An empty file
/// need not be known: there is nothing in it to lose.
pub(super) fn existing(
    named: &str,
    real: &std::path::Path,
    running: &Running<'_>,
) -> Result<Option<Existing>, String> {
    let found = disk::whole(real).map_err(|err| match err.kind() {
        std::io::ErrorKind::IsADirectory => format!("{named} is a folder, not a file."),
        _ => trouble(named, &err),
    })?;
    let Some((bytes, permissions)) = found else { return Ok(None) };
    let seen = running.workspace.seen(real);
    match &seen {
        _ if bytes.is_empty() => {}
        None => {
            return Err(format!("{named} exists and you have not read it in this session. Read it first."));
        }
        Some(seen) if seen.print != disk::print_of(&bytes) => {
            return Err(format!(
                "{named} has changed since you last saw it; somebody else may be working on it. Read it again first."
            ));
        }
        Some(_) => {}
    }
    Ok(Some(Existing { bytes, permissions, seen }))
}

fn lines_of(content: &str) -> String {
    match content.lines().count() {
        1 => String::from("1 line"),
        lines => format!("{lines} lines"),
    }
}
