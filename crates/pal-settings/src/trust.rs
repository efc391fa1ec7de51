//! Trust in a project: what its own files may set.
//!
//! A cloned repository brings settings that the user has not read. Until the user trusts the project, they cannot run a
//! command, widen access or raise costs beyond the user's own choice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Condition under which a file in a repository may set something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrustRequirement {
    /// It may.
    Free,
    /// Only if the user trusts the project.
    Needed,
    /// It may switch it off; switching it on needs trust.
    UnlessOff,
    /// These words are harmless; any other needs trust.
    UnlessOneOf(&'static [&'static str]),
    /// These words stand from strict to lax, or from cheap to dear: it may choose one that does not stand behind what holds
    /// already, and the first where that is nothing. Any other needs trust.
    UnlessStricter(&'static [&'static str]),
    /// It may lower what holds already; more needs trust.
    UnlessLower,
}

impl TrustRequirement {
    /// True if a value needs the user's trust; `held` is the value without it.
    pub(crate) fn is_needed(self, value: &Value, held: &Value) -> bool {
        match self {
            TrustRequirement::Free => false,
            TrustRequirement::Needed => true,
            TrustRequirement::UnlessOff => value.as_bool() != Some(false),
            TrustRequirement::UnlessOneOf(harmless) => {
                !value.as_str().is_some_and(|value| harmless.contains(&value))
            }
            TrustRequirement::UnlessStricter(words) => {
                let place = |word: &Value| words.iter().position(|known| word.as_str() == Some(known));
                place(value).is_none_or(|place_of_value| place_of_value > place(held).unwrap_or(0))
            }
            TrustRequirement::UnlessLower => match (value.as_f64(), held.as_f64()) {
                (Some(value), Some(held)) => value > held,
                (_, _) => false,
            },
        }
    }
}

/// Files of a project that can run commands or widen permissions. Trust is bound to their content, not to their path.
pub const TRUSTED_FILES: [&str; 5] = [
    ".pal/settings.toml",
    ".pal/settings.local.toml",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
];

/// File in the home directory that records trusted content.
const RECORD: &str = "trust.json";

/// The user's trust in a project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProjectTrust {
    /// Not trusted.
    No,
    /// Trusted before, but these files have changed since.
    Changed(Vec<String>),
    /// Trusted with its current files.
    Yes,
}

/// The user's trust in a project: its root, links resolved, is listed in settings or was trusted by
/// `pal trust`; and the files that trust is about are those that were there then. The first time that a listed project
/// is seen, they are recorded. If the administrator has a list, only that counts (`must_be_listed`).
pub(crate) fn trust_of(
    project: &Path,
    trusted: &[PathBuf],
    must_be_listed: bool,
    home: Option<&Path>,
) -> ProjectTrust {
    let project = real(project);
    let is_listed = trusted.iter().any(|folder| real(folder) == project);
    let recorded = home.and_then(|home| read_record(home).remove(&project.display().to_string()));
    let now = fingerprints(&project);
    match recorded {
        _ if must_be_listed && !is_listed => ProjectTrust::No,
        None if !is_listed => ProjectTrust::No,
        None => {
            // A home that cannot be written keeps nothing, and nothing is compared then.
            let _ = home.map(|home| record_trust(home, &project));
            ProjectTrust::Yes
        }
        Some(recorded) if recorded == now => ProjectTrust::Yes,
        Some(recorded) => {
            let is_changed = |name: &&&str| recorded.get(**name) != now.get(**name);
            ProjectTrust::Changed(
                TRUSTED_FILES.iter().filter(is_changed).map(|name| (*name).to_owned()).collect(),
            )
        }
    }
}

/// Records the current content of a project's files as trusted.
pub fn record_trust(home: &Path, project: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut record = read_record(home);
    let project = real(project);
    record.insert(project.display().to_string(), fingerprints(&project));
    let text = serde_json::to_string_pretty(&record).map_err(std::io::Error::other)?;
    let new = home.join(format!("{RECORD}.new-{}", std::process::id()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    std::fs::rename(new, home.join(RECORD))
}

/// File in the home directory that records content that the user did not want to trust.
const DECLINED: &str = "declined.json";

/// Returns whether the user has declined to trust the current content of a project's files.
pub fn is_trust_declined(home: &Path, project: &Path) -> bool {
    let project = real(project);
    let declined = read_record_file(home, DECLINED).remove(&project.display().to_string());
    declined.is_some_and(|declined| declined == fingerprints(&project))
}

/// Records that the user does not want to trust the current content of a project's files.
pub fn record_declined_trust(home: &Path, project: &Path) -> std::io::Result<()> {
    let mut record = read_record_file(home, DECLINED);
    let project = real(project);
    record.insert(project.display().to_string(), fingerprints(&project));
    let text = serde_json::to_string_pretty(&record).map_err(std::io::Error::other)?;
    crate::text_file::replace_text(&home.join(DECLINED), &text)
}

/// Names of a project's files that trust is about.
pub fn files_to_trust(project: &Path) -> Vec<String> {
    fingerprints(&real(project)).into_keys().collect()
}

type Fingerprints = BTreeMap<String, String>;

fn read_record(home: &Path) -> BTreeMap<String, Fingerprints> {
    read_record_file(home, RECORD)
}

fn read_record_file(home: &Path, name: &str) -> BTreeMap<String, Fingerprints> {
    let text = std::fs::read_to_string(home.join(name)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The fingerprint of each file that trust is about.
fn fingerprints(project: &Path) -> Fingerprints {
    let of_file = |name: &&str| {
        let path = project.join(name);
        // Only regular files are read: a pipe would never end.
        let content = std::fs::metadata(&path)
            .ok()
            .filter(|found| found.is_file())
            .map(|_| std::fs::read(&path))?
            .ok()?;
        Some(((*name).to_owned(), blake3::hash(&content).to_hex().to_string()))
    };
    TRUSTED_FILES.iter().filter_map(of_file).collect()
}

/// A path with its links followed, as it is if it leads nowhere.
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Notice about ignored settings, with the next step.
pub(crate) fn notice(file: &str, keys: &[&str], project: &Path, trust: &ProjectTrust) -> String {
    let are = if keys.len() == 1 { "is" } else { "are" };
    let why = match trust {
        ProjectTrust::Changed(files) => {
            format!("{} changed since you trusted this project", files.join(", "))
        }
        _ => "this project is not trusted".to_owned(),
    };
    format!(
        "{file}: {} {are} ignored, because {why}; `pal trust` in {} shows what it would run, and trusts it",
        keys.join(", "),
        real(project).display()
    )
}
