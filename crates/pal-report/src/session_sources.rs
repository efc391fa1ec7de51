//! Session files on this machine: where agents keep them, and the files that directories and patterns name.

use std::path::{Path, PathBuf};

/// Maximum depth of directories below a named one.
const DEPTH_MAX: usize = 12;

/// Directories of the user and of programs, as the environment states them.
#[derive(Clone, Debug, Default)]
pub struct AgentDirectories {
    /// Home directory of pal.
    pub pal_home: Option<PathBuf>,
    /// Home directory of the user.
    pub user_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`: one directory, or several separated by commas.
    pub claude_config: Option<String>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
}

impl AgentDirectories {
    /// Directories in which agents keep their sessions; only those that exist.
    pub fn session_roots(&self) -> Vec<PathBuf> {
        let mut roots = Vec::new();
        match self.claude_config.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(list) => {
                roots.extend(list.split(',').map(|directory| Path::new(directory.trim()).join("projects")));
            }
            None => {
                for name in [".claude/projects", ".config/claude/projects"] {
                    roots.extend(self.below_home(name));
                }
            }
        }
        let codex = self.codex_home.clone().or_else(|| self.below_home(".codex"));
        for name in ["sessions", "archived_sessions"] {
            roots.extend(codex.as_ref().map(|codex| codex.join(name)));
        }
        for name in
            [".pi/agent/sessions", ".copilot/session-state", ".copilot/history-session-state", ".gemini/tmp"]
        {
            roots.extend(self.below_home(name));
        }
        roots.extend(self.pal_home.as_ref().map(|home| home.join("projects")));
        roots.retain(|root| root.is_dir());
        roots
    }

    fn below_home(&self, name: &str) -> Option<PathBuf> {
        self.user_home.as_ref().map(|home| home.join(name))
    }
}

/// Lists the files below a directory that may be sessions, sorted. Links to directories are not followed.
pub fn list_session_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(directory, DEPTH_MAX, &mut found);
    found.sort();
    found
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if depth > 0 && !is_no_session_directory(&path) {
                collect(&path, depth - 1, found);
            }
        } else if may_be_session(&path) {
            found.push(path);
        }
    }
}

/// Returns true for a file that may be a session by its name: JSON lines or JSON. Logs that pal saved aside are not.
pub fn may_be_session(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    matches!(ending, Some("jsonl" | "json")) && name != "log.rescued.jsonl" && !name.starts_with('.')
}

/// Returns true for directories in which no sessions are: results and outputs beside a log of pal, and what tools keep for
/// themselves.
fn is_no_session_directory(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "node_modules" | ".git" => true,
        "tool-results" | "outputs" | "background" | "requests" => path.with_file_name("log.jsonl").is_file(),
        _ => false,
    }
}

/// Files that match a pattern with `*`, `?`, `**` and `[…]`, sorted; directories that match count with all their files.
/// An error names the defect of the pattern.
pub fn expand_pattern(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let (root, rest) = split_pattern(pattern);
    let glob = globset::GlobBuilder::new(&root.join(rest).to_string_lossy())
        .literal_separator(true)
        .build()
        .map_err(|error| error.to_string())?
        .compile_matcher();
    let mut found = Vec::new();
    collect_matches(&root, &glob, DEPTH_MAX, &mut found);
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns true if a name is a pattern rather than a path.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

fn collect_matches(directory: &Path, glob: &globset::GlobMatcher, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_directory = path.is_dir();
        if glob.is_match(&path) {
            if is_directory {
                collect(&path, depth, found);
            } else {
                found.push(path);
            }
        } else if is_directory && depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_matches(&path, glob, depth - 1, found);
        }
    }
}

/// Splits a pattern into the directory before its first wildcard and the rest.
fn split_pattern(pattern: &str) -> (PathBuf, PathBuf) {
    let mut root = PathBuf::new();
    let mut parts = Path::new(pattern).components().peekable();
    while let Some(part) = parts.next_if(|part| !is_pattern(&part.as_os_str().to_string_lossy())) {
        root.push(part);
    }
    let rest: PathBuf = parts.collect();
    if root.as_os_str().is_empty() {
        root.push(".");
    }
    (root, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_directories_name_session_files() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let made = [
            "a/one.jsonl",
            "a/b/two.json",
            "a/notes.md",
            "c/log.jsonl",
            "c/tool-results/4.json",
            "outputs/x.json",
        ];
        for name in made {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{}").unwrap();
        }
        let names = |files: Vec<PathBuf>| -> Vec<String> {
            files.iter().map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect()
        };
        assert_eq!(
            names(list_session_files(root)),
            ["a/b/two.json", "a/one.jsonl", "c/log.jsonl", "outputs/x.json"]
        );
        let expand =
            |pattern: &str| names(expand_pattern(&root.join(pattern).display().to_string()).unwrap());
        assert_eq!(expand("*/*.jsonl"), ["a/one.jsonl", "c/log.jsonl"]);
        assert_eq!(expand("**/*.json"), ["a/b/two.json", "c/tool-results/4.json", "outputs/x.json"]);
        assert_eq!(expand("[ab]"), ["a/b/two.json", "a/one.jsonl"], "a directory counts with its files");
        assert!(expand_pattern(&root.join("[").display().to_string()).is_err());
    }

    #[test]
    fn roots_follow_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_owned();
        for name in [".claude/projects", ".codex/sessions", "other/projects", "pal/projects"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let mut places = AgentDirectories {
            pal_home: Some(home.join("pal")),
            user_home: Some(home.clone()),
            ..AgentDirectories::default()
        };
        let names = [".claude/projects", ".codex/sessions", "pal/projects"].map(|name| home.join(name));
        assert_eq!(places.session_roots(), names);
        places.claude_config = Some(home.join("other").display().to_string());
        assert_eq!(places.session_roots()[0], home.join("other/projects"));
    }
}
