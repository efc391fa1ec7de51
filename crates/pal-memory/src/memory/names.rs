//! What memories are kept under, and what their files hold besides what was said.

use pal_model::Timestamp;

use crate::error::MemoryError;
use crate::folder::Folder;
use crate::topic::Topic;

/// The longest slug, in bytes.
const SLUG_BYTES_MAX: usize = 100;

/// The file of a memory.
pub(crate) fn file_of(slug: &str) -> String {
    format!("{slug}.md")
}

/// The memory of a file.
pub(crate) fn slug_of(file: &str) -> &str {
    file.strip_suffix(".md").unwrap_or(file)
}

/// Whether a new memory may be kept under this slug.
pub(crate) fn check_slug(slug: &str) -> Result<(), MemoryError> {
    let why = match () {
        () if slug.is_empty() => "it is empty",
        () if slug.len() > SLUG_BYTES_MAX => "it is too long",
        () if slug.starts_with(['.', '-']) => "it begins with a dot or a dash",
        () if slug.eq_ignore_ascii_case("memory") => "that is the index",
        () if !slug.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) => {
            "only letters, digits, dashes, underscores and dots are taken"
        }
        () => return Ok(()),
    };
    Err(MemoryError::BadSlug { name: slug.to_owned(), why })
}

/// A file with the time of its change, if it has front matter to say it in.
pub(super) fn dated(slug: &str, file: &str, now: Timestamp) -> String {
    if pal_model::front_matter(file).is_none() {
        return file.to_owned();
    }
    let mut topic = Topic::read(slug, file);
    topic.head.modified = Some(now);
    topic.file()
}

/// A directory inside a repository shares its memories, but neither their history nor what is made of them.
pub(super) fn keep_out_of_git(folder: &Folder) -> Result<(), MemoryError> {
    const IGNORE: &str = ".gitignore";
    if folder.has(IGNORE) { Ok(()) } else { folder.append_line(IGNORE, ".*").map(|_| ()) }
}
