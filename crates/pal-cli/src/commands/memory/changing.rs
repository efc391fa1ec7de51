//! Changing memories: new ones, edited ones, those that go.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use pal_memory::{Author, Head, Kind, Memory, Topic, Written, first_sentence};
use serde_json::json;

use super::{Desk, failure};
use crate::arguments::KindName;
use crate::aside;
use crate::commands::compact::{editor, run_editor};
use crate::failure::Failure;
use crate::stored::now;
use crate::table::yellow;

/// Characters of a name that is taken from a text.
const NAME_CHARACTERS: usize = 60;
/// Characters of a description that is taken from a text.
const DESCRIPTION_CHARACTERS: usize = 120;

impl Desk<'_> {
    pub(super) fn add(
        &mut self,
        text: &str,
        kind: KindName,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<ExitCode, Failure> {
        let text = if text == "-" { standard_input()? } else { text.to_owned() };
        if text.trim().is_empty() {
            return Err(Failure::wrong_use(
                "there is nothing to remember: the text is empty",
                "say what to remember",
            ));
        }
        // What is taken out of the text must not carry a secret into the name of a file.
        let clean = pal_memory::mask_secrets(&text).text;
        let name = name.map_or_else(|| first_sentence(&clean, NAME_CHARACTERS), str::to_owned);
        let name = pal_memory::mask_secrets(&name).text.into_owned();
        let description =
            description.map_or_else(|| first_sentence(&clean, DESCRIPTION_CHARACTERS), str::to_owned);
        let head = Head { name, description, kind: kind.into(), modified: None, origin: Author::Person };
        let mut memory = self.open()?;
        let slug = memory.free_slug(&head.name);
        let topic = Topic::new(head, format!("{}\n", text.trim_end()));
        let written = memory.write(&slug, &topic, &Author::Person, now());
        let written = written.map_err(|error| failure(&error))?;
        self.tell(&memory, &written, "remembered")
    }

    pub(super) fn edit(&mut self, name: &str) -> Result<ExitCode, Failure> {
        let editor = editor(self.settings)?.to_owned();
        let (memory, slug) = self.find(name)?;
        let before = memory.read_file(&slug).map_err(|error| failure(&error))?;
        // Nobody else waits while the editor is open.
        drop(memory);
        let after = edited(&editor, &slug, &before)?;
        let mut memory = self.open()?;
        if after == before {
            writeln!(self.out, "{slug} is as it was")?;
            return Ok(ExitCode::SUCCESS);
        }
        let written = memory.write_file(&slug, &after, &Author::Person, now());
        let written = written.map_err(|error| failure(&error))?;
        self.tell(&memory, &written, "changed")
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<ExitCode, Failure> {
        let (mut memory, slug) = self.find(name)?;
        let written = memory.remove(&slug, &Author::Person, now()).map_err(|error| failure(&error))?;
        self.tell(&memory, &written, "removed")
    }

    fn tell(&mut self, memory: &Memory, written: &Written, done: &str) -> Result<ExitCode, Failure> {
        for masked in &written.masked {
            let words = format!("line {}: a secret was not written ({})", masked.line, masked.kind);
            aside::tell(yellow(&words));
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
                self.colours.cyan(&written.slug),
                self.colours.dim(&format!("(change {}; `pal memory undo` takes it back)", written.point))
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Kind {
        match name {
            KindName::User => Kind::User,
            KindName::Feedback => Kind::Feedback,
            KindName::Project => Kind::Project,
            KindName::Reference => Kind::Reference,
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
