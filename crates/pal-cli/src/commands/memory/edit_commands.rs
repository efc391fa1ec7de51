//! Commands that change memories: add, edit, remove.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_memory::{
    Author, MemoryFile, MemoryHeader, MemoryKind, MemoryLocation, MemoryStore, MemoryWriteResult,
    first_sentence,
};
use pal_project::find_project;
use serde_json::json;

use super::{MemoryCommandRun, failure, home, report_manual_changes};
use crate::arguments::MemoryKindArg;
use crate::commands::compact::{editor, run_editor};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::open_session::now;
use crate::settings::Settings;
use crate::terminal_style::yellow;

/// Maximum characters of a name taken from the text.
const NAME_CHARACTERS: usize = 60;
/// Maximum characters of a description taken from the text.
const DESCRIPTION_CHARACTERS: usize = 120;

impl MemoryCommandRun<'_> {
    pub(super) fn add(
        &mut self,
        text: &str,
        kind: MemoryKindArg,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<ExitCode, Failure> {
        let text = if text == "-" { standard_input()? } else { text.to_owned() };
        if text.trim().is_empty() {
            return Err(Failure::usage_error(
                "nothing to remember: the text is empty",
                "give the text to remember",
            ));
        }
        let mut memory = self.open()?;
        let written = write_new(&mut memory, &text, kind.into(), name, description)?;
        self.print_change(&memory, &written, "remembered")
    }

    pub(super) fn edit(&mut self, name: &str) -> Result<ExitCode, Failure> {
        let editor = editor(self.settings)?.to_owned();
        let (memory, slug) = self.find(name)?;
        let before = memory.read_file(&slug).map_err(|error| failure(&error))?;
        // The lock is not held while the editor is open.
        drop(memory);
        let after = edited(&editor, &slug, &before)?;
        let mut memory = self.open()?;
        if after == before {
            writeln!(self.out, "{slug} is unchanged")?;
            return Ok(ExitCode::SUCCESS);
        }
        let written = memory.write_file(&slug, &after, &Author::Person, now());
        let written = written.map_err(|error| failure(&error))?;
        self.print_change(&memory, &written, "changed")
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<ExitCode, Failure> {
        let (mut memory, slug) = self.find(name)?;
        let written = memory.remove(&slug, &Author::Person, now()).map_err(|error| failure(&error))?;
        self.print_change(&memory, &written, "removed")
    }

    fn print_change(
        &mut self,
        memory: &MemoryStore,
        written: &MemoryWriteResult,
        done: &str,
    ) -> Result<ExitCode, Failure> {
        for masked in &written.masked {
            let words = format!("line {}: a secret was not written ({})", masked.line, masked.kind);
            self.notices.add(yellow(&words));
        }
        if self.is_json {
            let path = memory.path().join(format!("{}.md", written.slug));
            let object = json!({
                "slug": written.slug, "point": written.point, "path": path, "masked": written.masked,
            });
            writeln!(self.out, "{object}")?;
        } else {
            writeln!(
                self.out,
                "{done}: {}  {}",
                self.colors.cyan(&written.slug),
                self.colors.dim(&format!("(change {}; undo with `pal memory undo`)", written.point))
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A memory that [`remember`] has saved.
pub(crate) struct SavedMemory {
    pub(crate) slug: String,
    /// Number of the change in the history.
    pub(crate) point: u64,
    pub(crate) path: PathBuf,
}

/// Saves a text as a memory of the current directory's project.
pub(crate) fn remember(
    kind: MemoryKind,
    text: &str,
    settings: &Settings,
    notices: &Notices,
) -> Result<SavedMemory, Failure> {
    let directory = std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?;
    let location = MemoryLocation::of_project(home(settings)?, &find_project(&directory));
    let mut memory = location.open(now()).map_err(|error| failure(&error))?;
    report_manual_changes(&memory, notices);
    let written = write_new(&mut memory, text, kind, None, None)?;
    for masked in &written.masked {
        notices.add(format_args!("line {}: a secret was not written ({})", masked.line, masked.kind));
    }
    let path = memory.path().join(format!("{}.md", written.slug));
    Ok(SavedMemory { slug: written.slug.to_string(), point: written.point, path })
}

/// Writes a new memory; name and description default to the first sentence of the text.
fn write_new(
    memory: &mut MemoryStore,
    text: &str,
    kind: MemoryKind,
    name: Option<&str>,
    description: Option<&str>,
) -> Result<MemoryWriteResult, Failure> {
    // The name becomes a file name and must not contain a secret.
    let clean = pal_memory::mask_secrets(text).text;
    let name = name.map_or_else(|| first_sentence(&clean, NAME_CHARACTERS), str::to_owned);
    let name = pal_memory::mask_secrets(&name).text.into_owned();
    let description =
        description.map_or_else(|| first_sentence(&clean, DESCRIPTION_CHARACTERS), str::to_owned);
    let head = MemoryHeader { name, description, kind, modified: None, origin: Author::Person };
    let slug = memory.unused_slug(&head.name);
    let topic = MemoryFile::new(head, format!("{}\n", text.trim_end()));
    memory.write(&slug, &topic, &Author::Person, now()).map_err(|error| failure(&error))
}

impl From<MemoryKindArg> for MemoryKind {
    fn from(name: MemoryKindArg) -> MemoryKind {
        match name {
            MemoryKindArg::User => MemoryKind::User,
            MemoryKindArg::Feedback => MemoryKind::Feedback,
            MemoryKindArg::Project => MemoryKind::Project,
            MemoryKindArg::Reference => MemoryKind::Reference,
        }
    }
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::of_file(Path::new("standard input"), &error))?;
    Ok(text)
}

/// A text as the user's editor leaves it. The file that it is edited in is outside of the memory directory: a half-written
/// text is no memory.
fn edited(editor: &str, slug: &str, text: &str) -> Result<String, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::of_file(&std::env::temp_dir(), &error))?;
    let path = folder.path().join(format!("{slug}.md"));
    let refused = |error: std::io::Error| Failure::of_file(&path, &error);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(refused)?;
    drop(file);
    run_editor(editor, &path)?;
    let after = std::fs::read_to_string(&path).map_err(refused)?;
    if after.trim().is_empty() {
        return Err(Failure::with_hint(
            "the memory was emptied, so nothing was changed",
            format!("`pal memory rm {slug}` removes it"),
        ));
    }
    Ok(after)
}
