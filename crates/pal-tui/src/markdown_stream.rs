//! Incremental rendering of a streamed answer: finished lines can no longer change, the rest is the tail.
//!
//! A Markdown block is finished when the next one begins, a list item when the next item begins, a line of a code block at its
//! end. So printed lines never change, and the tail stays short for any input.

use pulldown_cmark::{Event, Parser, Tag};
use ratatui_core::text::Line;

use crate::markdown::{self, options};
use crate::styled_text::sanitize;
use crate::theme::Theme;

/// Maximum tail in bytes; a longer one is cut at the end of a word.
const TAIL_BYTES_MAX: usize = 6_000;

/// A streamed Markdown text.
#[derive(Clone, Debug, Default)]
pub struct MarkdownStream {
    /// Text that may still change.
    tail: String,
    /// Open code block that contains the tail.
    fence: Option<CodeFence>,
    /// Kind of the last finished block.
    last: LastBlock,
    /// Lines may have become finished: a line ended, or the tail is too long.
    is_due: bool,
}

#[derive(Clone, Debug)]
struct CodeFence {
    mark: char,
    length: usize,
    language: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum LastBlock {
    /// Nothing is finished yet.
    #[default]
    Nothing,
    /// A list with this marker, which may continue.
    List(char),
    /// A paragraph that was cut and continues.
    Cut,
    /// Anything else.
    Block,
}

impl MarkdownStream {
    /// Appends text.
    pub fn push(&mut self, text: &str) {
        self.tail.push_str(&sanitize(text));
        self.is_due |= text.contains('\n') || self.tail.len() > TAIL_BYTES_MAX;
    }

    /// Returns `true` if no unfinished text is left.
    pub fn is_empty(&self) -> bool {
        self.tail.trim().is_empty() && self.fence.is_none()
    }

    /// Takes the lines that became finished.
    pub fn take_finished(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        // An answer comes word by word, and most words finish nothing.
        if std::mem::take(&mut self.is_due) {
            while self.step(false, width, theme, &mut lines) {}
        }
        lines
    }

    /// Finishes all remaining text and resets the stream.
    pub fn finish(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = self.take_finished(width, theme);
        while self.step(true, width, theme, &mut lines) {}
        *self = MarkdownStream::default();
        lines
    }

    /// Renders the unfinished text as it looks now.
    pub fn tail(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut ahead = self.clone();
        let mut lines = Vec::new();
        while ahead.step(true, width, theme, &mut lines) {}
        lines
    }

    /// Finishes one block or line, if possible; `is_over` means that no more text comes.
    fn step(&mut self, is_over: bool, width: usize, theme: Theme, lines: &mut Vec<Line<'static>>) -> bool {
        match &self.fence {
            Some(fence) => {
                let fence = fence.clone();
                self.code(&fence, is_over, width, theme, lines)
            }
            None => self.blocks(is_over, width, theme, lines),
        }
    }

    /// Finishes lines of a code block.
    fn code(
        &mut self,
        fence: &CodeFence,
        is_over: bool,
        width: usize,
        theme: Theme,
        lines: &mut Vec<Line<'static>>,
    ) -> bool {
        let mut taken = 0;
        while let Some((line, length)) = next_line(&self.tail[taken..], is_over) {
            taken += length;
            if closes(line, fence) {
                self.fence = None;
                break;
            }
            lines.extend(markdown::code_line(line, &fence.language, width, theme));
        }
        self.tail.drain(..taken);
        taken > 0
    }

    /// Finishes all blocks before the last one, or up to a code block.
    fn blocks(&mut self, is_over: bool, width: usize, theme: Theme, lines: &mut Vec<Line<'static>>) -> bool {
        if self.tail.is_empty() {
            return false;
        }
        if let Some((start, end, fence)) = opening(&self.tail) {
            let before: String = self.tail[..start].to_owned();
            self.finished(&before, width, theme, lines);
            if self.last != LastBlock::Nothing {
                lines.push(Line::default());
            }
            self.last = LastBlock::Block;
            self.tail.drain(..end);
            self.fence = Some(fence);
            return true;
        }
        let cut = if is_over { self.tail.len() } else { settled_end(&self.tail) };
        let (cut, is_forced) = match cut {
            0 if self.tail.len() > TAIL_BYTES_MAX => (word_end(&self.tail), true),
            cut => (cut, false),
        };
        if cut == 0 {
            return false;
        }
        let chunk: String = self.tail.drain(..cut).collect();
        self.finished(&chunk, width, theme, lines);
        if is_forced {
            self.last = LastBlock::Cut;
        }
        true
    }

    fn finished(&mut self, chunk: &str, width: usize, theme: Theme, lines: &mut Vec<Line<'static>>) {
        if chunk.trim().is_empty() {
            return;
        }
        let (begins, ends) = edges(chunk);
        let goes_on =
            self.last == LastBlock::Cut || (matches!(begins, LastBlock::List(_)) && self.last == begins);
        if self.last != LastBlock::Nothing && !goes_on {
            lines.push(Line::default());
        }
        lines.extend(markdown::render_markdown(chunk, width, theme));
        self.last = ends;
    }
}

/// The first line of a text without its end, and how long it is with it; none as long as it may grow.
fn next_line(text: &str, is_over: bool) -> Option<(&str, usize)> {
    match text.find('\n') {
        Some(end) => Some((&text[..end], end + 1)),
        None if is_over && !text.is_empty() => Some((text, text.len())),
        None if text.len() > TAIL_BYTES_MAX => {
            let end = floor(text, TAIL_BYTES_MAX);
            Some((&text[..end], end))
        }
        None => None,
    }
}

/// The first line that opens a code block: where it begins and ends, and what it says. Only a whole line counts.
fn opening(text: &str) -> Option<(usize, usize, CodeFence)> {
    let mut start = 0;
    while let Some(length) = text[start..].find('\n') {
        let line = &text[start..start + length];
        if let Some(fence) = fence(line) {
            return Some((start, start + length + 1, fence));
        }
        start += length + 1;
    }
    None
}

fn fence(line: &str) -> Option<CodeFence> {
    let bare = line.trim_start_matches(' ');
    if line.len() - bare.len() > 3 {
        return None;
    }
    let mark = bare.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = bare.chars().take_while(|character| *character == mark).count();
    let language = bare[length..].trim();
    let is_fence = length >= 3 && !(mark == '`' && language.contains('`'));
    is_fence.then(|| {
        let language = language.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
        CodeFence { mark, length, language }
    })
}

fn closes(line: &str, fence: &CodeFence) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|character| character == fence.mark)
}

/// Offset up to which nothing can change: the start of the last block, or of the last item of a final list. Only complete
/// lines count: the rest of a line may change the meaning of its beginning.
fn settled_end(text: &str) -> usize {
    let text = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let mut depth = 0;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 || (depth == 1 && matches!(tag, Tag::Item)) {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule | Event::Html(_) if depth == 0 => last = range.start,
            _ => {}
        }
    }
    last
}

/// Kinds of the first and the last block.
fn edges(text: &str) -> (LastBlock, LastBlock) {
    let (mut first, mut last, mut depth) = (None, LastBlock::Block, 0);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    last = if matches!(tag, Tag::List(_)) {
                        LastBlock::List(list_marker(&text[range]))
                    } else {
                        LastBlock::Block
                    };
                    first.get_or_insert(last);
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ if depth == 0 => last = LastBlock::Block,
            _ => {}
        }
    }
    (first.unwrap_or(LastBlock::Block), last)
}

/// Marker of a list: its bullet, or the character after its numbers.
fn list_marker(list: &str) -> char {
    list.trim_start().chars().find(|character| !character.is_ascii_digit()).unwrap_or('.')
}

/// End of the last word within the maximum tail.
fn word_end(text: &str) -> usize {
    let most = floor(text, TAIL_BYTES_MAX);
    text[..most].rfind(['\n', ' ']).map_or(most, |at| at + 1)
}

fn floor(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
