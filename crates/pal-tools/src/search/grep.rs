//! Grep: searches in the contents of files.

use std::path::{Path, PathBuf};

use pal_permissions::Need;
use serde::Deserialize;

use super::glob::below;
use super::hits::{Hits, How, Search};
use super::walk::{Pattern, Wanted, files, newest_first, types_named};
use crate::input::lenient;
use crate::quoted::meant;
use crate::{Input, Output, Running, Tool, Workspace};

/// Lines of output unless the call says otherwise.
const LINES_DEFAULT: u64 = 250;

/// Most lines of output, whatever the call says.
const LINES_MAX: u64 = 10_000;

/// Most bytes of output. Results that are longer are put aside into a file, which would then have to be read.
const BYTES_MAX: usize = 48_000;

/// Files that are searched before it is looked whether there is enough to show.
const BATCH: usize = 512;

/// Most lines around a hit.
const AROUND_MAX: u64 = 50;

/// Searches in the contents of files, with ripgrep's own parts.
#[derive(Clone, Copy, Debug)]
pub struct Grep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Option<Mode>,
    #[serde(default, rename = "-A", deserialize_with = "lenient::whole_number")]
    behind: Option<u64>,
    #[serde(default, rename = "-B", deserialize_with = "lenient::whole_number")]
    before: Option<u64>,
    #[serde(default, rename = "-C", deserialize_with = "lenient::whole_number")]
    around: Option<u64>,
    #[serde(default, rename = "-n", deserialize_with = "lenient::perhaps")]
    numbers: Option<bool>,
    #[serde(default, rename = "-i", deserialize_with = "lenient::yes_or_no")]
    ignores_case: bool,
    #[serde(default, deserialize_with = "lenient::yes_or_no")]
    multiline: bool,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    head_limit: Option<u64>,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    offset: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    FilesWithMatches,
    Count,
}

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "Grep"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        Ok(vec![Need::Read(workspace.resolve(fields.root()))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        grep(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

impl Fields {
    fn root(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }

    fn mode(&self) -> Mode {
        self.output_mode.unwrap_or(Mode::FilesWithMatches)
    }

    /// The lines of output to leave out, and how many to show.
    fn window(&self) -> (usize, usize) {
        let limit = match self.head_limit {
            // As other programs have it: as many as there is room for.
            Some(0) => LINES_MAX,
            limit => limit.unwrap_or(LINES_DEFAULT).min(LINES_MAX),
        };
        let offset = self.offset.unwrap_or(0);
        (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn how(&self) -> How {
        let shows = self.mode() == Mode::Content;
        let lines = |one: Option<u64>| one.or(self.around).unwrap_or(0).min(AROUND_MAX) as usize;
        let (offset, limit) = self.window();
        How {
            ignores_case: self.ignores_case,
            spans_lines: self.multiline,
            before: if shows { lines(self.before) } else { 0 },
            behind: if shows { lines(self.behind) } else { 0 },
            rows_max: if shows { offset.saturating_add(limit).saturating_add(1) } else { 0 },
            is_one_enough: self.mode() == Mode::FilesWithMatches,
        }
    }
}

fn grep(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let root = running.readable(fields.root())?;
    if !root.exists() {
        return Err(format!("{} does not exist.", fields.root()));
    }
    let wanted = Wanted {
        pattern: fields.glob.as_deref().filter(|glob| !glob.is_empty()).map(Pattern::new).transpose()?,
        types: fields.file_type.as_deref().filter(|name| !name.is_empty()).map(types_named).transpose()?,
        links: false,
    };
    let search = Search::new(&meant(&fields.pattern), fields.how(), running.cancel)?;
    let files = files(&root, &wanted, running);
    let rows = match fields.mode() {
        Mode::Content => content(&fields, &search, &files, &Shown::new(running.workspace, &root)),
        mode => {
            let shown = Shown::new(running.workspace, &root);
            let found = newest_first(search.files(&files));
            let row = |(path, hits): &(PathBuf, Hits)| match mode {
                Mode::Count => format!("{}:{}", shown.path(path), hits.count),
                _ => shown.path(path),
            };
            found.iter().map(row).collect()
        }
    };
    if running.cancel.is_cancelled() {
        return Err(String::from("The search was cancelled."));
    }
    let mut output = Output::text(&told(&fields, &rows, files.len()));
    if root.is_file() {
        output.touched.push(root);
    }
    Ok(output)
}

/// How paths are shown.
struct Shown {
    directory: PathBuf,
    /// Whether there is only one file, whose name need not stand before every line.
    is_one_file: bool,
}

impl Shown {
    fn new(workspace: &Workspace, root: &Path) -> Shown {
        Shown { directory: workspace.resolve(".").real, is_one_file: root.is_file() }
    }

    fn path(&self, path: &Path) -> String {
        below(path, &self.directory)
    }
}

/// The lines that are hit and those around them. Stops when there are enough.
fn content(fields: &Fields, search: &Search<'_>, files: &[PathBuf], shown: &Shown) -> Vec<String> {
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

fn content_rows(fields: &Fields, path: &Path, hits: &Hits, shown: &Shown, is_first: bool) -> Vec<String> {
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

/// The part of the rows that was asked for, and whether there are more.
fn told(fields: &Fields, rows: &[String], searched: usize) -> String {
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
            Mode::Content => String::from("There is more"),
            _ => format!("These are {shown} of {}", rows.len()),
        };
        text.push_str(&format!("\n[{all}. Narrow the search, or go on with offset {next}.]"));
    }
    text
}
