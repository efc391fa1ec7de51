//! Output styles: files that describe how the agent writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::skill_files::definition;
use crate::Workspace;

/// Maximum bytes of a style.
const STYLE_BYTES_MAX: u64 = 64 * 1024;

/// Maximum styles per folder.
const STYLES_MAX: usize = 100;

/// Texts of all output styles by name. Styles of the project beat those of the user, and `.pal` beats `.claude`.
pub fn output_styles(workspace: &Workspace) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for (folder, within) in workspace.definition_folders("output-styles") {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
        files.sort_unstable();
        for file in files.iter().take(STYLES_MAX) {
            let style = definition(file, file.file_stem(), within.as_deref(), STYLE_BYTES_MAX);
            if let Some(style) = style.filter(|style| !style.text.trim().is_empty()) {
                known.entry(style.name).or_insert_with(|| style.text.trim().to_owned());
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_found_by_name_and_the_nearest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in [
            ("project/.pal/output-styles/terse.md", "---\nname: Terse\n---\nOne line.\n"),
            ("project/.claude/output-styles/terse.md", "---\nname: Terse\n---\nAnother.\n"),
            ("home/.claude/output-styles/teacher.md", "Explain why.\n"),
            ("home/.claude/output-styles/empty.md", "---\nname: empty\n---\n\n"),
            ("home/.claude/output-styles/notes.txt", "no style"),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let home = Some(root.join("home"));
        let workspace = Workspace::new(
            vec![root.join("project")],
            root.clone(),
            home,
            Default::default(),
            Default::default(),
        );
        let styles = output_styles(&workspace);
        let found: Vec<(&str, &str)> =
            styles.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(found, [("Terse", "One line."), ("teacher", "Explain why.")]);
    }
}
