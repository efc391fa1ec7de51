//! Paths of logs: `$PAL_HOME/projects/<slug>/sessions/<id>/log.jsonl`.
//!
//! Pure functions, except for [`home_from_environment`].

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pal_model::EntryId;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum length of a slug without a hash, in bytes. File names may have 255 bytes, but deep paths add up.
const SLUG_BYTES_MAX: usize = 100;

/// Home directory of pal: `pal_home` if set, else `.palimpsest` in the user's home; none without either.
pub fn home(pal_home: Option<OsString>, user_home: Option<OsString>) -> Option<PathBuf> {
    let is_set = |value: &OsString| !value.is_empty();
    let user_home = user_home.filter(is_set).map(|home| Path::new(&home).join(".palimpsest"));
    pal_home.filter(is_set).map(PathBuf::from).or(user_home)
}

/// Home directory of pal, from the variables `PAL_HOME` and `HOME`.
pub fn home_from_environment() -> Option<PathBuf> {
    home(env::var_os("PAL_HOME"), env::var_os("HOME"))
}

/// Directory name of a project, from its absolute path: everything but ASCII letters and digits becomes `-`. A name that
/// other paths would have as well ends with a hash of the path, since only `/` may become `-` without; long names are
/// truncated before it. So two projects never share a directory.
pub fn slug(project: &Path) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '/';
    slug_with_hash(project, |text| !text.chars().all(is_plain))
}

/// Directory name that a project had before names were distinct: `a_b`, `a-b` and `a/b` had the same.
pub fn former_slug(project: &Path) -> String {
    slug_with_hash(project, |text| !text.is_ascii())
}

fn slug_with_hash(project: &Path, is_ambiguous: impl Fn(&str) -> bool) -> String {
    let bytes = project.as_os_str().as_encoded_bytes();
    let text = project.to_string_lossy();
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut slug: String = text.chars().map(dashed).collect();
    if slug.len() > SLUG_BYTES_MAX || is_ambiguous(&text) {
        slug.truncate(SLUG_BYTES_MAX);
        slug.push_str(&format!("-{:016x}", xxh3_64(bytes)));
    }
    slug
}

/// Directory of a project.
pub fn project_directory(home: &Path, project: &Path) -> PathBuf {
    home.join("projects").join(slug(project))
}

/// Directory of a session.
pub fn session_directory(home: &Path, project: &Path, session: EntryId) -> PathBuf {
    project_directory(home, project).join("sessions").join(session.to_string())
}

/// Path of the log in a session's directory.
pub fn log_path(session_directory: &Path) -> PathBuf {
    session_directory.join("log.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_plain_short_and_distinct() {
        assert_eq!(slug(Path::new("/home/ab/xy")), "-home-ab-xy");
        let name = slug(Path::new("/home/a b/x_y.rs"));
        assert!(name.starts_with("-home-a-b-x-y-rs-") && name.len() == 33, "{name}");
        let alike = ["/src/a_b", "/src/a-b", "/src/a/b", "/src/a.b", "/src/a b", "/src-a/b"];
        let names: std::collections::BTreeSet<String> =
            alike.iter().map(|path| slug(Path::new(path))).collect();
        assert_eq!(names.len(), alike.len(), "{names:?}");
        assert!(alike.iter().all(|path| former_slug(Path::new(path)) == "-src-a-b"));
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
    fn home_prefers_pal_home_over_user_home() {
        let some = |text: &str| Some(OsString::from(text));
        assert_eq!(home(some("/p"), some("/h")), Some(PathBuf::from("/p")));
        assert_eq!(home(some(""), some("/h")), Some(PathBuf::from("/h/.palimpsest")));
        assert_eq!(home(None, some("")), None);
        let session = session_directory(Path::new("/p"), Path::new("/src/a"), EntryId::from_bits(1));
        let expected = "/p/projects/-src-a/sessions/00000000-0000-0000-0000-000000000001/log.jsonl";
        assert_eq!(log_path(&session), Path::new(expected));
    }
}
