//! What reaches the terminal. Finished lines are written once, above a region of a few lines that is ours.
//!
//! Each frame goes up to the region's top, writes what is finished, and draws the region; where nothing is finished, only the
//! lines that changed are written. The scrollback is never written to again. No question is ever put to the terminal, so
//! nothing hangs on a slow or odd one.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use crate::paint::{clipped_line, line_columns};

/// The region below the conversation: what is drawn anew, and where the cursor stands in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Live {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// Row and column of the cursor; none hides it.
    pub cursor: Option<(usize, usize)>,
}

/// A terminal that is written to.
pub struct Screen<W> {
    out: W,
    width: usize,
    height: usize,
    is_coloured: bool,
    /// The region as it stands there.
    drawn: Vec<Line<'static>>,
    /// The row of the region that the cursor is in, and its column.
    at: (usize, usize),
    /// Whether the region may look otherwise than it was drawn.
    is_stale: bool,
}

impl<W: Write> Screen<W> {
    /// A terminal of so many columns and rows, with the cursor at the beginning of a line.
    pub fn new(out: W, width: usize, height: usize, is_coloured: bool) -> Screen<W> {
        Screen { out, width, height, is_coloured, drawn: Vec::new(), at: (0, 0), is_stale: true }
    }

    /// What is written to.
    pub fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    /// Columns that text may take. The last one stays free: nothing wraps by itself, and a cursor fits behind every line.
    pub fn columns(&self) -> usize {
        self.width.saturating_sub(1).max(1)
    }

    /// Rows that the region may take.
    pub fn rows(&self) -> usize {
        self.height.saturating_sub(1).max(1)
    }

    /// The terminal has another size. Lines of the region that no longer fit were broken by it: they take more rows now.
    pub fn resize(&mut self, width: usize, height: usize) {
        if (width, height) == (self.width, self.height) {
            return;
        }
        let width_now = width.max(1);
        let rows_of = |line: &Line<'_>| line_columns(line).max(1).div_ceil(width_now);
        let above: usize = self.drawn.iter().take(self.at.0).map(rows_of).sum();
        let up = above + self.at.1 / width_now;
        (self.width, self.height) = (width, height);
        self.at = (up, self.at.1 % width_now);
        self.is_stale = true;
    }

    /// Writes finished lines for good and draws the region below them.
    pub fn frame(&mut self, finished: &[Line<'static>], live: &Live) -> io::Result<()> {
        let (lines, cursor) = self.fitted(live);
        if finished.is_empty() && !self.is_stale && lines == self.drawn && cursor == Some(self.at) {
            return Ok(());
        }
        let mut text = String::from("\x1b[?2026h\x1b[?25l");
        if finished.is_empty() && !self.is_stale && lines.len() == self.drawn.len() {
            self.changed_lines(&mut text, &lines);
        } else {
            self.whole(&mut text, finished, &lines);
        }
        let end = cursor.unwrap_or((lines.len().saturating_sub(1), 0));
        travel(&mut text, self.at.0, end.0);
        text.push('\r');
        if end.1 > 0 {
            let _ = write!(text, "\x1b[{}C", end.1);
        }
        self.at = end;
        if cursor.is_some() {
            text.push_str("\x1b[?25h");
        }
        text.push_str("\x1b[?2026l");
        self.drawn = lines;
        self.is_stale = false;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Clears the region; what was finished stays. The cursor is at the beginning of a free line, and seen.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut text = String::new();
        travel(&mut text, self.at.0, 0);
        text.push_str("\r\x1b[J\x1b[?25h");
        self.forget();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Somebody else wrote to the terminal: what is drawn next begins at the beginning of a line.
    pub fn forget(&mut self) {
        self.drawn.clear();
        self.at = (0, 0);
        self.is_stale = true;
    }

    /// Clears what is seen; the scrollback stays.
    pub fn clear(&mut self) -> io::Result<()> {
        self.leave()?;
        self.out.write_all(b"\x1b[H\x1b[2J")
    }

    /// What of the region fits: its end, and the cursor with it.
    fn fitted(&self, live: &Live) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let skipped = live.lines.len().saturating_sub(self.rows());
        let lines = live.lines[skipped..].iter().map(|line| clipped_line(line, self.columns()));
        let cursor = live.cursor.and_then(|(row, column)| {
            Some((row.checked_sub(skipped)?, column.min(self.width.saturating_sub(1))))
        });
        (lines.collect(), cursor)
    }

    fn changed_lines(&mut self, text: &mut String, lines: &[Line<'static>]) {
        for (row, line) in lines.iter().enumerate() {
            if self.drawn[row] != *line {
                travel(text, self.at.0, row);
                text.push('\r');
                self.line(text, line);
                self.at.0 = row;
            }
        }
    }

    fn whole(&mut self, text: &mut String, finished: &[Line<'static>], lines: &[Line<'static>]) {
        travel(text, self.at.0, 0);
        text.push('\r');
        // What the terminal broke by itself stands in rows that nothing else would clear.
        if self.is_stale {
            text.push_str("\x1b[J");
        }
        for line in finished {
            self.line(text, &clipped_line(line, self.width));
            text.push_str("\r\n");
        }
        for (row, line) in lines.iter().enumerate() {
            if row > 0 {
                text.push_str("\r\n");
            }
            self.line(text, line);
        }
        text.push_str("\x1b[J");
        self.at.0 = lines.len().saturating_sub(1);
    }

    /// A line and nothing behind it.
    fn line(&self, text: &mut String, line: &Line<'static>) {
        let mut is_styled = false;
        for span in &line.spans {
            let codes = codes(line.style.patch(span.style), self.is_coloured);
            if is_styled {
                text.push_str("\x1b[0m");
            }
            is_styled = !codes.is_empty();
            if is_styled {
                let _ = write!(text, "\x1b[{codes}m");
            }
            text.push_str(&span.content);
        }
        if is_styled {
            text.push_str("\x1b[0m");
        }
        // Behind a full line the cursor still stands on its last column.
        if line_columns(line) < self.width {
            text.push_str("\x1b[K");
        }
    }
}

/// Goes from one row to another.
fn travel(text: &mut String, from: usize, to: usize) {
    if from > to {
        let _ = write!(text, "\x1b[{}A", from - to);
    } else if to > from {
        let _ = write!(text, "\x1b[{}B", to - from);
    }
}

/// The codes of a style, joined.
fn codes(style: Style, is_coloured: bool) -> String {
    let mut codes = Vec::new();
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    codes.extend(
        modifiers
            .iter()
            .filter(|(one, _)| style.add_modifier.contains(*one))
            .map(|(_, code)| (*code).to_owned()),
    );
    if is_coloured {
        codes.extend(style.fg.and_then(|colour| colour_code(colour, 30)));
        codes.extend(style.bg.and_then(|colour| colour_code(colour, 40)));
    }
    codes.join(";")
}

/// The code of a colour; `base` is 30 for text and 40 for what is behind it.
fn colour_code(colour: Color, base: u8) -> Option<String> {
    let index = match colour {
        Color::Reset => return None,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Indexed(index) => index,
        Color::Rgb(red, green, blue) => return Some(format!("{};2;{red};{green};{blue}", base + 8)),
    };
    Some(match index {
        0..8 => (base + index).to_string(),
        8..16 => (base + 60 + index - 8).to_string(),
        _ => format!("{};5;{index}", base + 8),
    })
}
