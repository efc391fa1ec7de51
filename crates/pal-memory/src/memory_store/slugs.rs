//! Slugs and file names of memories.

use pal_model::Timestamp;

use crate::error::MemoryError;
use crate::memory_dir::MemoryDir;
use crate::memory_file::MemoryFile;

/// Maximum length of a slug, in bytes.
const SLUG_BYTES_MAX: usize = 100;

/// File name of a slug.
pub(crate) fn file_of(slug: &str) -> String {
    format!("{slug}.md")
}

/// Slug of a file name.
pub(crate) fn slug_of(file: &str) -> &str {
    file.strip_suffix(".md").unwrap_or(file)
}

/// Checks that a slug is valid for a new memory.
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

/// Sets `modified`, if the file has front matter.
pub(super) fn dated(slug: &str, file: &str, now: Timestamp) -> String {
    if pal_model::split_front_matter(file).is_none() {
        return file.to_owned();
    }
    let mut topic = MemoryFile::parse(slug, file);
    topic.head.modified = Some(now);
    topic.render()
}

/// Ignores all dot files in git: a shared directory shares its memories, but not their history.
pub(super) fn keep_out_of_git(folder: &MemoryDir) -> Result<(), MemoryError> {
    const IGNORE: &str = ".gitignore";
    if folder.exists(IGNORE) { Ok(()) } else { folder.append_line(IGNORE, ".*").map(|_| ()) }
}
