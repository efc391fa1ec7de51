//! The prompt editor: several lines, a cursor, history, and placeholders for long pastes and images.

mod text_rows;

use std::path::PathBuf;

use unicode_segmentation::UnicodeSegmentation;

use crate::styled_text::sanitize_line;
pub(crate) use text_rows::lay_out_text;

/// A paste with more lines or characters is replaced by a placeholder.
const PASTE_LINES: usize = 8;
const PASTE_CHARACTERS: usize = 1_000;

/// A submitted prompt, as it is shown and as it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TypedPrompt {
    /// Text with placeholders for long pastes.
    pub(crate) shown: String,
    /// Text with long pastes in full.
    pub(crate) sent: String,
    /// Images whose placeholders are in the text.
    pub(crate) pictures: Vec<PathBuf>,
}

/// A multi-line editor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// Byte offset, on a character boundary.
    cursor: usize,
    earlier: Vec<String>,
    /// Index of the recalled prompt.
    recalled: Option<usize>,
    /// Text before an earlier prompt was recalled.
    draft: String,
    /// Placeholders of long pastes with their text.
    pastes: Vec<(String, String)>,
    /// Placeholders of images. They are kept, so that a recalled prompt still has its images.
    pictures: Vec<(String, PathBuf)>,
    killed: String,
}

impl Editor {
    /// Creates an empty editor with a history.
    pub(crate) fn new(earlier: Vec<String>) -> Editor {
        Editor { earlier, ..Editor::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the whole text.
    pub(crate) fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
        self.recalled = None;
    }

    /// Replaces a byte range and puts the cursor behind it.
    pub(crate) fn replace(&mut self, range: std::ops::Range<usize>, with: &str) {
        self.cursor = range.start + with.len();
        self.text.replace_range(range, with);
    }

    /// Moves the cursor to a byte offset on a character boundary.
    pub(crate) fn move_to(&mut self, at: usize) {
        self.cursor = at.min(self.text.len());
    }

    /// Earlier prompts, oldest first.
    pub(crate) fn earlier(&self) -> &[String] {
        &self.earlier
    }

    /// Replaces placeholders of long pastes by their text.
    pub(crate) fn expand_pastes(&mut self) -> &str {
        for (mark, text) in self.pastes.drain(..) {
            self.text = self.text.replacen(&mark, &text, 1);
        }
        self.cursor = self.text.len();
        &self.text
    }

    /// Takes the text and adds it to the history.
    pub(crate) fn take(&mut self) -> TypedPrompt {
        let shown = std::mem::take(&mut self.text);
        let mut sent = shown.clone();
        for (mark, text) in self.pastes.drain(..) {
            sent = sent.replacen(&mark, &text, 1);
        }
        self.cursor = 0;
        self.recalled = None;
        if !sent.trim().is_empty() && self.earlier.last() != Some(&sent) {
            self.earlier.push(sent.clone());
        }
        let has_mark = |(mark, _): &&(String, PathBuf)| sent.contains(mark.as_str());
        let pictures = self.pictures.iter().filter(has_mark).map(|(_, path)| path.clone()).collect();
        TypedPrompt { shown, sent, pictures }
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Inserts pasted text; a long one is stored and replaced by a placeholder.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines <= PASTE_LINES && text.chars().count() <= PASTE_CHARACTERS {
            self.insert(&text);
            return;
        }
        let number = self.pastes.len() + 1;
        let count = if lines == 1 {
            format!("{} characters", text.chars().count())
        } else {
            format!("{lines} lines")
        };
        let mark = format!("[pasted text {number}: {count}]");
        self.insert(&mark);
        self.pastes.push((mark, text));
    }

    /// Inserts a placeholder for a pasted image.
    pub(crate) fn paste_picture(&mut self, path: PathBuf) {
        let name = path.file_name().map_or(String::new(), |name| sanitize_line(&name.to_string_lossy()));
        let mark = format!("[picture {}: {name}]", self.pictures.len() + 1);
        self.insert(&mark);
        self.pictures.push((mark, path));
    }

    pub(crate) fn backspace(&mut self) {
        let from = self.before(self.cursor);
        self.cut(from, self.cursor);
    }

    pub(crate) fn delete(&mut self) {
        let to = self.after(self.cursor);
        self.cut(self.cursor, to);
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.before(self.cursor);
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.after(self.cursor);
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_before();
    }

    pub(crate) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let after = word.trim_start_matches(char::is_alphanumeric);
        self.cursor = self.text.len() - after.len();
    }

    pub(crate) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    pub(crate) fn kill_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line, removes the line break.
        let end = if end == self.cursor { self.after(end) } else { end };
        self.kill(self.cursor, end);
    }

    pub(crate) fn kill_to_start(&mut self) {
        let start = self.line_start();
        let start = if start == self.cursor { self.before(start) } else { start };
        self.kill(start, self.cursor);
    }

    pub(crate) fn kill_word(&mut self) {
        let start = self.word_before();
        self.kill(start, self.cursor);
    }

    pub(crate) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
    }

    /// Moves up one row; recalls an earlier prompt from the first row.
    pub(crate) fn up(&mut self, width: usize) {
        let laid = lay_out_text(&self.text, self.cursor, width);
        match laid.row.checked_sub(1) {
            Some(row) => self.cursor = laid.at(&self.text, row, laid.column),
            None => self.recall_earlier(),
        }
    }

    /// Moves down one row; recalls a later prompt from the last row.
    pub(crate) fn down(&mut self, width: usize) {
        let laid = lay_out_text(&self.text, self.cursor, width);
        if laid.row + 1 < laid.rows.len() {
            self.cursor = laid.at(&self.text, laid.row + 1, laid.column);
        } else {
            self.recall_later();
        }
    }

    fn recall_earlier(&mut self) {
        let at = self.recalled.unwrap_or(self.earlier.len());
        let Some(earlier) = at.checked_sub(1) else { return };
        if self.recalled.is_none() {
            self.draft = self.text.clone();
        }
        let text = self.earlier[earlier].clone();
        self.set(&text);
        self.recalled = Some(earlier);
    }

    fn recall_later(&mut self) {
        let Some(at) = self.recalled else { return };
        match self.earlier.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some(at + 1);
            }
            None => {
                let draft = std::mem::take(&mut self.draft);
                self.set(&draft);
            }
        }
    }

    fn kill(&mut self, from: usize, to: usize) {
        self.killed = self.text[from..to].to_owned();
        self.cut(from, to);
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.cursor = from;
    }

    /// Start of the previous character; a placeholder counts as one character.
    fn before(&self, at: usize) -> usize {
        let marks =
            self.pastes.iter().map(|(mark, _)| mark).chain(self.pictures.iter().map(|(mark, _)| mark));
        let length = match marks.into_iter().find(|mark| self.text[..at].ends_with(mark.as_str())) {
            Some(mark) => mark.len(),
            None => self.text[..at].graphemes(true).next_back().map_or(0, str::len),
        };
        at - length
    }

    fn after(&self, at: usize) -> usize {
        at + self.text[at..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let before = &self.text[..self.cursor];
        let word = before.trim_end_matches(|c: char| !c.is_alphanumeric());
        word.trim_end_matches(char::is_alphanumeric).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }
}

#[cfg(test)]
mod tests;
