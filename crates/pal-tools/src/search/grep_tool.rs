//! `Grep` tool: searches file contents.

use std::path::{Path, PathBuf};

use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::file_search::{FileHits, FileSearch, SearchOptions};
use super::file_walk::{FileFilter, PathGlob, newest_first, types_named, walk_files};
use super::glob_tool::below;
use crate::restored_tags::restore_tags;
use crate::tool_input::lenient;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Default number of output lines.
const LINES_DEFAULT: u64 = 250;

/// Maximum lines of output.
const LINES_MAX: u64 = 10_000;

/// Maximum bytes of output. Longer results would be spilled to a file, which would have to be read in turn.
const BYTES_MAX: usize = 48_000;

/// Number of files searched before checking whether there is enough to show.
const BATCH: usize = 512;

/// Maximum context lines around a hit.
const AROUND_MAX: u64 = 50;

/// Searches file contents with the libraries of ripgrep.
#[derive(Clone, Copy, Debug)]
pub struct GrepTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrepInput {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Option<GrepOutputMode>,
    #[serde(default, rename = "-A", deserialize_with = "lenient::whole_number")]
    behind: Option<u64>,
    #[serde(default, rename = "-B", deserialize_with = "lenient::whole_number")]
    before: Option<u64>,
    #[serde(default, rename = "-C", deserialize_with = "lenient::whole_number")]
    around: Option<u64>,
    #[serde(default, rename = "-n", deserialize_with = "lenient::optional_bool")]
    numbers: Option<bool>,
    #[serde(default, rename = "-i", deserialize_with = "lenient::bool_or_false")]
    ignores_case: bool,
    #[serde(default, deserialize_with = "lenient::bool_or_false")]
    multiline: bool,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    head_limit: Option<u64>,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    offset: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GrepOutputMode {
    Content,
    FilesWithMatches,
    Count,
}

impl ToolHandler for GrepTool {
    fn name(&self) -> &'static str {
        "Grep"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: GrepInput = input.read()?;
        Ok(vec![ToolAccess::Read(workspace.resolve(fields.root()))])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        grep(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

impl GrepInput {
    fn root(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }

    fn mode(&self) -> GrepOutputMode {
        self.output_mode.unwrap_or(GrepOutputMode::FilesWithMatches)
    }

    /// Number of output lines to skip and to show.
    fn window(&self) -> (usize, usize) {
        let limit = match self.head_limit {
            // 0 means unlimited, as in other programs.
            Some(0) => LINES_MAX,
            limit => limit.unwrap_or(LINES_DEFAULT).min(LINES_MAX),
        };
        let offset = self.offset.unwrap_or(0);
        (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn search_options(&self) -> SearchOptions {
        let shows = self.mode() == GrepOutputMode::Content;
        let lines = |one: Option<u64>| one.or(self.around).unwrap_or(0).min(AROUND_MAX) as usize;
        let (offset, limit) = self.window();
        SearchOptions {
            ignores_case: self.ignores_case,
            spans_lines: self.multiline,
            before: if shows { lines(self.before) } else { 0 },
            behind: if shows { lines(self.behind) } else { 0 },
            rows_max: if shows { offset.saturating_add(limit).saturating_add(1) } else { 0 },
            is_one_enough: self.mode() == GrepOutputMode::FilesWithMatches,
        }
    }
}

fn grep(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: GrepInput = input.read()?;
    let root = context.readable(fields.root())?;
    if !root.exists() {
        return Err(format!("{} does not exist.", fields.root()));
    }
    let wanted = FileFilter {
        pattern: fields.glob.as_deref().filter(|glob| !glob.is_empty()).map(PathGlob::new).transpose()?,
        types: fields.file_type.as_deref().filter(|name| !name.is_empty()).map(types_named).transpose()?,
        links: false,
    };
    let search = FileSearch::new(&restore_tags(&fields.pattern), fields.search_options(), context.cancel)?;
    let files = walk_files(&root, &wanted, context);
    let rows = match fields.mode() {
        GrepOutputMode::Content => {
            content(&fields, &search, &files, &PathDisplay::new(context.workspace, &root))
        }
        mode => {
            let shown = PathDisplay::new(context.workspace, &root);
            let found = newest_first(search.files(&files));
            let row = |(path, hits): &(PathBuf, FileHits)| match mode {
                GrepOutputMode::Count => format!("{}:{}", shown.path(path), hits.count),
                _ => shown.path(path),
            };
            found.iter().map(row).collect()
        }
    };
    if context.cancel.is_cancelled() {
        return Err(String::from("The search was cancelled."));
    }
    let mut output = ToolOutput::text(&render_rows(&fields, &rows, files.len()));
    if root.is_file() {
        output.touched.push(root);
    }
    Ok(output)
}

/// Formatting of paths in the output.
struct PathDisplay {
    directory: PathBuf,
    /// True for a single file, whose name is not repeated on every line.
    is_one_file: bool,
}

impl PathDisplay {
    fn new(workspace: &Workspace, root: &Path) -> PathDisplay {
        PathDisplay { directory: workspace.resolve(".").real, is_one_file: root.is_file() }
    }

    fn path(&self, path: &Path) -> String {
        below(path, &self.directory)
    }
}

/// Matching lines with context. Stops when there are enough.
fn content(
    fields: &GrepInput,
    search: &FileSearch<'_>,
    files: &[PathBuf],
    shown: &PathDisplay,
) -> Vec<String> {
    let (offset, limit) = fields.window();
    let enough = offset.saturating_add(limit).saturating_add(1);
    let mut rows = Vec::new();
    let mut bytes = 0;
    for batch in files.chunks(BATCH) {
        for (path, hits) in search.files(batch) {
            for row in content_rows(fields, &path, &hits, shown, rows.is_empty()) {
                bytes += row.len();
                rows.push(row);
            }
            if rows.len() >= enough || offset == 0 && bytes > BYTES_MAX {
                return rows;
            }
        }
    }
    rows
}

fn content_rows(
    fields: &GrepInput,
    path: &Path,
    hits: &FileHits,
    shown: &PathDisplay,
    is_first: bool,
) -> Vec<String> {
    let has_context = fields.around.or(fields.before).or(fields.behind).is_some_and(|lines| lines > 0);
    let path = if shown.is_one_file { String::new() } else { shown.path(path) };
    let mut rows = Vec::new();
    for (at, row) in hits.rows.iter().enumerate() {
        if has_context && (row.is_apart || at == 0 && !is_first) {
            rows.push(String::from("--"));
        }
        let sign = if row.is_hit { ':' } else { '-' };
        let mut line = path.clone();
        if !line.is_empty() {
            line.push(sign);
        }
        if fields.numbers.unwrap_or(true) {
            line.push_str(&format!("{}{sign}", row.number));
        }
        line.push_str(&row.text);
        rows.push(line);
    }
    rows
}

/// Formats the requested rows and notes whether there are more.
fn render_rows(fields: &GrepInput, rows: &[String], searched: usize) -> String {
    if rows.is_empty() {
        let files = if searched == 1 { "1 file was" } else { &format!("{searched} files were") };
        return format!(
            "[Nothing fits {}. {files} searched; ignored and hidden ones are left out.]",
            fields.pattern
        );
    }
    let (offset, limit) = fields.window();
    let mut text = String::new();
    let mut shown = 0;
    for row in rows.iter().skip(offset).take(limit) {
        if text.len() + row.len() > BYTES_MAX {
            break;
        }
        text.push_str(row);
        text.push('\n');
        shown += 1;
    }
    let next = offset.saturating_add(shown);
    if shown == 0 {
        return format!("[There are {} lines of output: none at offset {offset}.]", rows.len());
    }
    if next < rows.len() {
        let all = match fields.mode() {
            GrepOutputMode::Content => String::from("There is more"),
            _ => format!("These are {shown} of {}", rows.len()),
        };
        text.push_str(&format!("\n[{all}. Narrow the search, or go on with offset {next}.]"));
    }
    text
}
