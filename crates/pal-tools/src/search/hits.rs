//! What a pattern hits in a file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use pal_process::Cancel;

use crate::files::open;

/// Most characters of a line that are shown.
const LINE_CHARACTERS_MAX: usize = 500;

/// Characters before a hit that are shown of a line that is too long.
const CHARACTERS_BEFORE: usize = 100;

/// Most memory for a file that is searched as a whole.
const HEAP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most threads that search at once.
const THREADS_MAX: usize = 8;

/// How to search.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Whether capital and small letters are the same.
    pub(super) ignores_case: bool,
    /// Whether a hit may span lines.
    pub(super) spans_lines: bool,
    /// Lines to keep before each hit.
    pub(super) before: usize,
    /// Lines to keep behind each hit.
    pub(super) behind: usize,
    /// Most rows to keep of a file; none are kept if it is 0.
    pub(super) rows_max: usize,
    /// Whether the first hit is enough.
    pub(super) is_one_enough: bool,
}

/// A search that files can be given to.
#[derive(Debug)]
pub(super) struct Search<'a> {
    matcher: RegexMatcher,
    how: How,
    cancel: &'a Cancel,
}

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// The lines that are shown of it.
    pub(super) rows: Vec<Row>,
    /// How many lines have a hit.
    pub(super) count: u64,
}

/// A line that is shown.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) is_hit: bool,
    /// Whether lines were left out before it.
    pub(super) is_apart: bool,
}

impl<'a> Search<'a> {
    /// Reads a pattern.
    pub(super) fn new(pattern: &str, how: How, cancel: &'a Cancel) -> Result<Search<'a>, String> {
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
        Ok(Search { matcher, how, cancel })
    }

    /// Searches files beside each other; the hits come in the order of the files, those without are left out.
    pub(super) fn files(&self, files: &[PathBuf]) -> Vec<(PathBuf, Hits)> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || {
            let mut searcher = self.searcher();
            while let Some((at, path)) = take(files, &next) {
                if self.cancel.is_cancelled() {
                    break;
                }
                // A file that went away or may not be read is not there, as for any other search.
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

    fn file(&self, searcher: &mut Searcher, path: &Path) -> io::Result<Hits> {
        let file = Stoppable { file: open(path)?, cancel: self.cancel };
        let mut collector = Collector { search: self, hits: Hits::default(), is_apart: false };
        searcher.search_reader(&self.matcher, file, &mut collector)?;
        Ok(collector.hits)
    }

    /// A line as it is shown: around the hit, if it is too long to be shown whole.
    fn shown(&self, line: &[u8]) -> String {
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

/// The next file that nobody has taken yet.
fn take<'f>(files: &'f [PathBuf], next: &AtomicUsize) -> Option<(usize, &'f Path)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    files.get(at).map(|path| (at, path.as_path()))
}

/// A file whose reading ends when the call is cancelled, however large it is.
struct Stoppable<'a> {
    file: std::fs::File,
    cancel: &'a Cancel,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

/// Takes what the searcher finds in one file.
struct Collector<'a> {
    search: &'a Search<'a>,
    hits: Hits,
    is_apart: bool,
}

impl Collector<'_> {
    fn row(&mut self, number: u64, line: &[u8], is_hit: bool) {
        if self.hits.rows.len() < self.search.how.rows_max {
            let is_apart = std::mem::take(&mut self.is_apart);
            self.hits.rows.push(Row { number, text: self.search.shown(line), is_hit, is_apart });
        }
    }
}

impl Sink for Collector<'_> {
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
            self.hits = Hits::default();
        }
        Ok(())
    }
}
