//! Source files of the workspace, read once, with the few things that the checks need of them.
//!
//! The files are formatted by rustfmt, so definitions are found line by line and no parser is needed.

use std::fs;
use std::io;
use std::path::Path;

/// One `.rs` file.
pub(crate) struct SourceFile {
    /// Path from the root of the workspace.
    pub(crate) path: String,
    /// Crate that it belongs to.
    pub(crate) crate_name: String,
    /// Whether it is in `src`, not in `tests` or `benches`, and no test module.
    pub(crate) is_library: bool,
    pub(crate) text: String,
}

/// A struct, enum, trait, union or type alias.
#[derive(Debug, PartialEq)]
pub(crate) struct TypeDefinition {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_public: bool,
    /// Number of named fields, for structs.
    pub(crate) fields: usize,
}

/// Reads all source files of the workspace, sorted by path.
pub(crate) fn read_tree(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        read_folder(root, &entry?.path(), &mut files)?;
    }
    read_folder(root, &root.join("xtask"), &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(SourceFile::new(&relative.to_string_lossy(), text));
        }
    }
    Ok(())
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: String) -> SourceFile {
        let parts: Vec<&str> = path.split('/').collect();
        let crate_name =
            parts.get(usize::from(parts.first() == Some(&"crates"))).copied().unwrap_or_default();
        let is_test = |part: &&str| matches!(*part, "tests" | "benches" | "tests.rs" | "laws.rs");
        SourceFile {
            path: path.to_owned(),
            crate_name: crate_name.to_owned(),
            is_library: !parts.iter().any(is_test),
            text,
        }
    }

    /// Lines before the test module at the end of the file, with their numbers from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = |line: &str| line == "#[cfg(test)]";
        self.text
            .lines()
            .enumerate()
            .take_while(move |(_, line)| !is_test(line))
            .map(|(idx, line)| (idx + 1, line))
    }

    /// Types that the file defines, those of its test module included.
    pub(crate) fn types(&self) -> Vec<TypeDefinition> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for (idx, line) in lines.iter().enumerate() {
            if let Some((name, is_public)) = defined_type(line) {
                let fields = count_fields(&lines[idx..]);
                found.push(TypeDefinition { name: name.to_owned(), line: idx + 1, is_public, fields });
            }
        }
        found
    }
}

/// The type that a line defines, and whether it is public.
fn defined_type(line: &str) -> Option<(&str, bool)> {
    let trimmed = line.trim_start();
    let is_indented = trimmed.len() < line.len();
    let (rest, is_public) = match trimmed.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (rest.split_once(") ")?.1, false),
        Some(rest) => (rest.strip_prefix(' ')?, true),
        None => (trimmed, false),
    };
    let (keyword, rest) = rest.split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        // An indented one is a member of a trait or of its implementation.
        "type" => !is_indented,
        _ => false,
    };
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (is_definition && name.starts_with(|letter: char| letter.is_ascii_uppercase()))
        .then_some((name, is_public))
}

/// Number of named fields of the struct that begins in the first line.
fn count_fields(lines: &[&str]) -> usize {
    let Some(first) = lines.first() else { return 0 };
    if !first.contains("struct ") || !first.ends_with('{') {
        return 0;
    }
    let indent = first.len() - first.trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    lines[1..].iter().take_while(|line| **line != end).filter(|line| is_field(line, indent + 4)).count()
}

fn is_field(line: &str, indent: usize) -> bool {
    let trimmed = line.trim_start();
    if line.len() - trimmed.len() != indent {
        return false;
    }
    let rest = match trimmed.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        Some(_) | None => trimmed,
    };
    let name = rest.split(':').next().unwrap_or_default();
    rest.contains(": ")
        && !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_with_their_fields() {
        let text = "pub struct Log {\n    pub(crate) path: PathBuf,\n    /// A comment: not a field.\n    lock: Lock,\n}\n\
                    pub(crate) enum Kind {}\nimpl Iterator for X {\n    type Item = u8;\n}\n";
        let file = SourceFile::new("crates/pal-a/src/log.rs", text.to_owned());
        let types = file.types();
        assert_eq!(types.len(), 2);
        assert_eq!(types[0], TypeDefinition { name: "Log".into(), line: 1, is_public: true, fields: 2 });
        assert!(!types[1].is_public);
        assert_eq!((file.crate_name.as_str(), file.is_library), ("pal-a", true));
        assert!(!SourceFile::new("crates/pal-a/tests/x.rs", String::new()).is_library);
    }
}
