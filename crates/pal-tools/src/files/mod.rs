//! The tools that show and change files.

mod diff;
mod disk;
mod edit;
mod page;
mod read;
mod replace;
mod write;

pub use edit::Edit;
pub use read::Read;
pub use write::Write;

pub(crate) use disk::open;

use pal_model::FileSeen;

use crate::{Output, Running};

/// What the model knows of a file that it is shown whole by other means, as it is now.
pub fn file_seen(real: &std::path::Path) -> Option<FileSeen> {
    let bytes = std::fs::read(real).ok()?;
    Some(FileSeen { print: disk::print_of(&bytes), call: None, lines: None })
}

/// Notes that the model knows a file now: at once for the calls beside this one, and in what the log remembers.
fn note(output: &mut Output, running: &Running<'_>, real: &std::path::Path, seen: FileSeen) {
    running.workspace.note_seen(real, seen.clone());
    // A path that is no Unicode cannot stand in the log: it is known until the program ends.
    if let Some(path) = real.to_str() {
        output.aftermath.files.insert(path.to_owned(), seen);
    }
    output.touched.push(real.to_owned());
}
