//! `Glob` tool: lists files by path pattern.

use std::path::{Path, PathBuf};

use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::file_walk::{FileFilter, PathGlob, newest_first, walk_files};
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Maximum number of listed files.
const FILES_MAX: usize = 100;

/// Lists files by path pattern, most recently changed first.
#[derive(Clone, Copy, Debug)]
pub struct GlobTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GlobInput {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

impl ToolHandler for GlobTool {
    fn name(&self) -> &'static str {
        "Glob"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: GlobInput = input.read()?;
        let (root, pattern) = fields.root_and_pattern();
        PathGlob::new(&pattern)?;
        Ok(vec![ToolAccess::Read(workspace.resolve(&root))])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        glob(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

impl GlobInput {
    /// Folder to search and pattern below it: leading plain components of the pattern belong to the folder,
    /// so that `src/**/*.rs` searches nowhere else, and absolute patterns and `..` need no special case.
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
        // The rest is directly below the folder; without the slash it would match anywhere.
        let rest = parts[plain..].join("/");
        let rest = if rest.contains('/') { rest } else { format!("/{rest}") };
        (root.display().to_string(), rest)
    }
}

fn glob(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: GlobInput = input.read()?;
    let (root, pattern) = fields.root_and_pattern();
    let real = context.readable(&root)?;
    if !real.is_dir() {
        return Err(format!("{root} is no folder that is there."));
    }
    let wanted = FileFilter { pattern: Some(PathGlob::new(&pattern)?), types: None, links: true };
    let found: Vec<(PathBuf, ())> =
        walk_files(&real, &wanted, context).into_iter().map(|path| (path, ())).collect();
    if context.cancel.is_cancelled() {
        return Err(String::from("The search was cancelled."));
    }
    let all = found.len();
    let listed: Vec<PathBuf> =
        newest_first(found).into_iter().take(FILES_MAX).map(|(path, ())| path).collect();
    Ok(ToolOutput::text(&render_files(&listed, all, &fields.pattern, context.workspace)))
}

fn render_files(listed: &[PathBuf], all: usize, pattern: &str, workspace: &Workspace) -> String {
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

/// Path relative to the working directory, if below it.
pub(super) fn below(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).display().to_string()
}
