//! Pattern search in files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use pal_process::CancelToken;

use crate::files::open;

/// Maximum displayed characters of a line.
const LINE_CHARACTERS_MAX: usize = 500;

/// Characters shown before a hit in a long line.
const CHARACTERS_BEFORE: usize = 100;

/// Maximum memory for a file that is searched as a whole.
const HEAP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum parallel search threads.
const THREADS_MAX: usize = 8;

/// Options of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchOptions {
    /// True to ignore case.
    pub(super) ignores_case: bool,
    /// True if a hit may span lines.
    pub(super) spans_lines: bool,
    /// Context lines before each hit.
    pub(super) before: usize,
    /// Context lines after each hit.
    pub(super) behind: usize,
    /// Maximum rows kept per file; 0 for none.
    pub(super) rows_max: usize,
    /// True to stop at the first hit of a file.
    pub(super) is_one_enough: bool,
}

/// Compiled search.
#[derive(Debug)]
pub(super) struct FileSearch<'a> {
    matcher: RegexMatcher,
    how: SearchOptions,
    cancel: &'a CancelToken,
}

/// Hits in a file.
#[derive(Debug, Default)]
pub(super) struct FileHits {
    /// Displayed lines.
    pub(super) rows: Vec<HitRow>,
    /// Number of lines with a hit.
    pub(super) count: u64,
}

/// Displayed line.
#[derive(Debug)]
pub(super) struct HitRow {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) is_hit: bool,
    /// True if lines were skipped before it.
    pub(super) is_apart: bool,
}

impl<'a> FileSearch<'a> {
    /// Compiles a pattern.
    pub(super) fn new(
        pattern: &str,
        how: SearchOptions,
        cancel: &'a CancelToken,
    ) -> Result<FileSearch<'a>, String> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).case_insensitive(how.ignores_case).dot_matches_new_line(how.spans_lines);
        if !how.spans_lines {
            builder.crlf(true);
        }
        let matcher = builder.build(pattern).map_err(|err| match err.to_string() {
            said if said.contains("\\n") && !how.spans_lines => {
                format!("{said}\nA pattern that holds a line end needs `multiline`.")
            }
            said => format!("The pattern is wrong: {said}"),
        })?;
        Ok(FileSearch { matcher, how, cancel })
    }

    /// Searches files in parallel; hits come in the order of the files, files without hits are left out.
    pub(super) fn files(&self, files: &[PathBuf]) -> Vec<(PathBuf, FileHits)> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || {
            let mut searcher = self.searcher();
            while let Some((at, path)) = next_file(files, &next) {
                if self.cancel.is_cancelled() {
                    break;
                }
                // A vanished or unreadable file is skipped.
                if let Ok(hits) = self.file(&mut searcher, path)
                    && hits.count > 0
                    && let Ok(mut found) = found.lock()
                {
                    found.push((at, hits));
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(files.len().div_ceil(16)) {
                scope.spawn(work);
            }
            work();
        });
        let mut found = found.into_inner().unwrap_or_default();
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(at, hits)| (files[at].clone(), hits)).collect()
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(true)
            .multi_line(self.how.spans_lines)
            .before_context(self.how.before)
            .after_context(self.how.behind)
            .heap_limit(Some(HEAP_BYTES_MAX))
            .binary_detection(BinaryDetection::quit(0));
        if !self.how.spans_lines {
            builder.line_terminator(LineTerminator::crlf());
        }
        builder.build()
    }

    fn file(&self, searcher: &mut Searcher, path: &Path) -> io::Result<FileHits> {
        let file = CancellableFile { file: open(path)?, cancel: self.cancel };
        let mut collector = HitCollector { search: self, hits: FileHits::default(), is_apart: false };
        searcher.search_reader(&self.matcher, file, &mut collector)?;
        Ok(collector.hits)
    }

    /// Formats a line; a long one around its hit.
    fn format_line(&self, line: &[u8]) -> String {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        let length = text.chars().count();
        if length <= LINE_CHARACTERS_MAX {
            return text.into_owned();
        }
        let hit = self.matcher.find(line).ok().flatten().map_or(0, |hit| hit.start());
        let hit = String::from_utf8_lossy(&line[..hit]).chars().count();
        let from = hit.saturating_sub(CHARACTERS_BEFORE).min(length - LINE_CHARACTERS_MAX);
        let shown: String = text.chars().skip(from).take(LINE_CHARACTERS_MAX).collect();
        let before = if from > 0 { "…" } else { "" };
        let behind = if from + LINE_CHARACTERS_MAX < length { "…" } else { "" };
        format!("{before}{shown}{behind} [line of {length} characters]")
    }
}

/// Next file that no thread has taken.
fn next_file<'f>(files: &'f [PathBuf], next: &AtomicUsize) -> Option<(usize, &'f Path)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    files.get(at).map(|path| (at, path.as_path()))
}

/// File reader that stops when the call is cancelled.
struct CancellableFile<'a> {
    file: std::fs::File,
    cancel: &'a CancelToken,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

/// Collector of the hits in one file.
struct HitCollector<'a> {
    search: &'a FileSearch<'a>,
    hits: FileHits,
    is_apart: bool,
}

impl HitCollector<'_> {
    fn row(&mut self, number: u64, line: &[u8], is_hit: bool) {
        if self.hits.rows.len() < self.search.how.rows_max {
            let is_apart = std::mem::take(&mut self.is_apart);
            self.hits.rows.push(HitRow { number, text: self.search.format_line(line), is_hit, is_apart });
        }
    }
}

impl Sink for HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        let first = hit.line_number().unwrap_or(0);
        for (line, number) in hit.lines().zip(first..) {
            self.hits.count += 1;
            self.row(number, line, true);
        }
        Ok(!self.search.how.is_one_enough)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.row(context.line_number().unwrap_or(0), context.bytes(), false);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.is_apart = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() {
            self.hits = FileHits::default();
        }
        Ok(())
    }
}
