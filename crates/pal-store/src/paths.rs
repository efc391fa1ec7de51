//! Where logs are kept: `$PAL_HOME/projects/<slug>/sessions/<id>/log.jsonl`.
//!
//! Pure functions of given values, but for [`home_from_environment`], the one place that asks the environment.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pal_model::EntryId;
use xxhash_rust::xxh3::xxh3_64;

/// The longest slug without a hash, in bytes. Names of 255 bytes are allowed, but deep paths add up.
const SLUG_BYTES_MAX: usize = 100;

/// The home of pal: `pal_home` if it is set, else `.palimpsest` in the user's home; none without either.
pub fn home(pal_home: Option<OsString>, user_home: Option<OsString>) -> Option<PathBuf> {
    let is_set = |value: &OsString| !value.is_empty();
    let user_home = user_home.filter(is_set).map(|home| Path::new(&home).join(".palimpsest"));
    pal_home.filter(is_set).map(PathBuf::from).or(user_home)
}

/// The home of pal by the variables `PAL_HOME` and `HOME`.
pub fn home_from_environment() -> Option<PathBuf> {
    home(env::var_os("PAL_HOME"), env::var_os("HOME"))
}

/// The name of a project's folder, from the absolute path of the project: everything but ASCII letters and digits
/// becomes `-`. A long name is cut, and a name that lost letters of other scripts would be shared by many; both
/// end with a hash of the path.
pub fn slug(project: &Path) -> String {
    let bytes = project.as_os_str().as_encoded_bytes();
    let text = project.to_string_lossy();
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut slug: String = text.chars().map(dashed).collect();
    if slug.len() > SLUG_BYTES_MAX || !text.is_ascii() {
        slug.truncate(SLUG_BYTES_MAX);
        slug.push_str(&format!("-{:016x}", xxh3_64(bytes)));
    }
    slug
}

/// The folder of a project.
pub fn project_directory(home: &Path, project: &Path) -> PathBuf {
    home.join("projects").join(slug(project))
}

/// The folder of a session.
pub fn session_directory(home: &Path, project: &Path, session: EntryId) -> PathBuf {
    project_directory(home, project).join("sessions").join(session.to_string())
}

/// The log in a session's folder.
pub fn log_path(session_directory: &Path) -> PathBuf {
    session_directory.join("log.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_plain_short_and_apart() {
        assert_eq!(slug(Path::new("/home/a b/x_y.rs")), "-home-a-b-x-y-rs");
        let (one, two) = (slug(Path::new("/home/项目一")), slug(Path::new("/home/项目二")));
        assert_ne!(one, two);
        assert!(one.starts_with("-home----"), "{one}");
        let long = "/deep".repeat(60);
        let (one, two) = (slug(Path::new(&long)), slug(Path::new(&format!("{long}r"))));
        assert_ne!(one, two);
        assert_eq!(one.len(), SLUG_BYTES_MAX + 17);
        assert_eq!(slug(Path::new(&long)), one);
    }

    #[test]
    fn the_home_is_what_was_asked_for() {
        let some = |text: &str| Some(OsString::from(text));
        assert_eq!(home(some("/p"), some("/h")), Some(PathBuf::from("/p")));
        assert_eq!(home(some(""), some("/h")), Some(PathBuf::from("/h/.palimpsest")));
        assert_eq!(home(None, some("")), None);
        let session = session_directory(Path::new("/p"), Path::new("/src/a"), EntryId::from_bits(1));
        let expected = "/p/projects/-src-a/sessions/00000000-0000-0000-0000-000000000001/log.jsonl";
        assert_eq!(log_path(&session), Path::new(expected));
    }
}
