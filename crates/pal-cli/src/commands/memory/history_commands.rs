//! History of memories: log, diff and undo.

use std::io::Write;
use std::process::ExitCode;

use pal_memory::{Author, FileDiff, INDEX_FILE, MemoryChange};
use pal_report::{TextStyle, clip_line, sanitize_lines};
use serde_json::{Value, json};

use super::{MemoryCommandRun, failure};
use crate::failure::Failure;
use crate::open_session::now;
use crate::terminal_style::columns;

impl MemoryCommandRun<'_> {
    pub(super) fn log(&mut self, name: Option<&str>) -> Result<ExitCode, Failure> {
        let memory = self.open_existing_memory()?;
        let mut changes = match &memory {
            Some(memory) => memory.log().map_err(|error| failure(&error))?,
            None => Vec::new(),
        };
        if let Some(name) = name {
            changes = changes_of_memory(
                changes,
                name,
                memory.and_then(|memory| memory.find(name).ok()).as_deref(),
            )?;
        }
        changes.reverse();
        if self.is_json {
            writeln!(self.out, "{}", json!(changes))?;
            return Ok(ExitCode::SUCCESS);
        }
        if changes.is_empty() {
            writeln!(self.out, "No changes yet.")?;
        }
        let wide = changes.first().map_or(1, |change| change.id.to_string().len());
        for change in &changes {
            let time: String = change.at.to_string().replace('T', " ").chars().take(16).collect();
            let rest = columns().saturating_sub(wide + 19);
            let said = format!("{}  {}  {}", change.what.name(), files(change), change.by);
            let number = self.colors.cyan(&format!("{:>wide$}", change.id));
            writeln!(self.out, "{number}  {}  {}", self.colors.dim(&time), clip_line(&said, rest))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn diff(&mut self, from: Option<u64>, to: Option<u64>) -> Result<ExitCode, Failure> {
        let Some(memory) = self.open_existing_memory()? else { return self.print(&[]) };
        let to = to.unwrap_or(memory.point());
        let from = from.unwrap_or(to.saturating_sub(1));
        let differences = memory.diff(from, to).map_err(|error| failure(&error))?;
        self.print(&differences)
    }

    pub(super) fn undo(&mut self, to: Option<u64>) -> Result<ExitCode, Failure> {
        let nothing = || Failure::with_hint("nothing to undo", "`pal memory log` lists all changes");
        let mut memory = self.open_existing_memory()?.ok_or_else(nothing)?;
        let before = memory.point();
        let to = match to {
            Some(to) => to,
            None => memory.undo_point().map_err(|error| failure(&error))?.ok_or_else(nothing)?,
        };
        let written = memory.undo(to, &Author::Person, now()).map_err(|error| failure(&error))?;
        let differences = memory.diff(before, written.point).map_err(|error| failure(&error))?;
        if self.is_json {
            let files: Vec<&str> = differences.iter().map(|difference| difference.file.as_str()).collect();
            writeln!(self.out, "{}", json!({ "to": to, "point": written.point, "files": files }))?;
            return Ok(ExitCode::SUCCESS);
        }
        self.print(&differences)?;
        let back = format!("(change {}; undo with `pal memory undo {before}`)", written.point);
        writeln!(self.out, "restored to change {to}  {}", self.colors.dim(&back))?;
        Ok(ExitCode::SUCCESS)
    }

    fn print(&mut self, differences: &[FileDiff]) -> Result<ExitCode, Failure> {
        if self.is_json {
            let list: Vec<Value> = differences.iter().map(difference_object).collect();
            writeln!(self.out, "{}", Value::from(list))?;
            return Ok(ExitCode::SUCCESS);
        }
        print_diff(differences, self.colors, self.out)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints differences in the format of `diff -u`.
pub(crate) fn print_diff(
    differences: &[FileDiff],
    colors: TextStyle,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for difference in differences {
        for line in sanitize_lines(&difference.unified()).lines() {
            let line = match line.as_bytes().first() {
                _ if line.starts_with("+++") || line.starts_with("---") => colors.bold(line),
                Some(b'+') => colors.green(line),
                Some(b'-') => colors.paint("31", line),
                Some(b'@') => colors.cyan(line),
                _ => line.to_owned(),
            };
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Converts a difference to JSON.
pub(crate) fn difference_object(difference: &FileDiff) -> Value {
    let text =
        |side: &Option<Vec<u8>>| side.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    json!({
        "file": difference.file, "before": text(&difference.before), "after": text(&difference.after),
        "diff": difference.unified(),
    })
}

/// Filters the changes of one memory, which may no longer exist.
fn changes_of_memory(
    changes: Vec<MemoryChange>,
    name: &str,
    slug: Option<&str>,
) -> Result<Vec<MemoryChange>, Failure> {
    let file = format!("{}.md", slug.unwrap_or(name.trim_end_matches(".md")));
    let of_file = |change: &MemoryChange| change.files.iter().any(|changed| changed.file == file);
    let found: Vec<MemoryChange> = changes.into_iter().filter(of_file).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::with_hint(
            format!("no memory `{name}` has ever existed"),
            "`pal memory log` lists all changes",
        )),
    }
}

/// Lists the files of a change, without the index unless it is the only one.
fn files(change: &MemoryChange) -> String {
    let files: Vec<&str> = change.files.iter().map(|changed| changed.file.as_str()).collect();
    let named: Vec<&str> = files.iter().copied().filter(|file| *file != INDEX_FILE).collect();
    let to = change.to.map_or(String::new(), |to| format!("to {to}: "));
    format!("{to}{}", if named.is_empty() { files.join(", ") } else { named.join(", ") })
}
