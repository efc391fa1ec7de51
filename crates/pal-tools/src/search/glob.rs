//! Glob: lists files by the pattern of their paths.

use std::path::{Path, PathBuf};

use pal_permissions::Need;
use serde::Deserialize;

use super::walk::{Pattern, Wanted, files, newest_first};
use crate::{Input, Output, Running, Tool, Workspace};

/// Most files that are listed.
const FILES_MAX: usize = 100;

/// Lists files by the pattern of their paths, the most recently changed first.
#[derive(Clone, Copy, Debug)]
pub struct Glob;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

impl Tool for Glob {
    fn name(&self) -> &'static str {
        "Glob"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        let (root, pattern) = fields.root_and_pattern();
        Pattern::new(&pattern)?;
        Ok(vec![Need::Read(workspace.resolve(&root))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        glob(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

impl Fields {
    /// The folder to look in and the pattern below it: the parts of the pattern that are plain names belong to the folder,
    /// so that `src/**/*.rs` looks nowhere else, and absolute patterns and such with `..` are no special case.
    fn root_and_pattern(&self) -> (String, String) {
        let mut root = PathBuf::from(self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."));
        let mut parts: Vec<&str> = self.pattern.split('/').collect();
        if self.pattern.starts_with('/') {
            root = PathBuf::from("/");
        }
        if parts.first() == Some(&"~") {
            root = PathBuf::from("~");
            parts.remove(0);
        }
        let plain =
            parts.iter().take(parts.len() - 1).take_while(|part| !part.contains(['*', '?', '[', '{']));
        let plain = plain.count();
        if plain == 0 {
            return (root.display().to_string(), parts.join("/"));
        }
        root.extend(parts[..plain].iter().filter(|part| !part.is_empty()));
        // What follows stands right below the folder: without the slash it would fit anywhere.
        let rest = parts[plain..].join("/");
        let rest = if rest.contains('/') { rest } else { format!("/{rest}") };
        (root.display().to_string(), rest)
    }
}

fn glob(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let (root, pattern) = fields.root_and_pattern();
    let real = running.readable(&root)?;
    if !real.is_dir() {
        return Err(format!("{root} is no folder that is there."));
    }
    let wanted = Wanted { pattern: Some(Pattern::new(&pattern)?), types: None, links: true };
    let found: Vec<(PathBuf, ())> =
        files(&real, &wanted, running).into_iter().map(|path| (path, ())).collect();
    if running.cancel.is_cancelled() {
        return Err(String::from("The search was cancelled."));
    }
    let all = found.len();
    let listed: Vec<PathBuf> =
        newest_first(found).into_iter().take(FILES_MAX).map(|(path, ())| path).collect();
    Ok(Output::text(&told(&listed, all, &fields.pattern, running.workspace)))
}

fn told(listed: &[PathBuf], all: usize, pattern: &str, workspace: &Workspace) -> String {
    if listed.is_empty() {
        return format!("[No file fits {pattern}. Files that the repository ignores are left out.]");
    }
    let directory = workspace.resolve(".").real;
    let mut text: String = listed.iter().map(|path| format!("{}\n", below(path, &directory))).collect();
    if all > listed.len() {
        text.push_str(&format!(
            "\n[The {} most recently changed of {all} files. Narrow the pattern to see the others.]",
            listed.len()
        ));
    }
    text
}

/// A path as it is shown: relative to the working directory, where it is below it.
pub(super) fn below(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).display().to_string()
}
