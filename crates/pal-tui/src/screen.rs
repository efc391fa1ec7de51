//! Terminal output. Finished lines are written once, above the live region.
//!
//! Each frame moves to the region's top, writes finished lines and draws the region; without finished lines it writes only the
//! lines that changed. The scrollback is never rewritten. The terminal is never queried, so a slow or unusual one cannot block.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use crate::styled_text::{line_columns, truncate_line};

/// The redrawn region below the conversation, and its cursor.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LiveRegion {
    /// Lines from top to bottom.
    pub lines: Vec<Line<'static>>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Writer of frames to a terminal.
pub struct Screen<W> {
    out: W,
    width: usize,
    height: usize,
    is_colored: bool,
    /// The region as it was last drawn.
    drawn: Vec<Line<'static>>,
    /// Row (within the region) and column of the cursor.
    at: (usize, usize),
    /// The terminal may differ from `drawn`.
    is_stale: bool,
}

impl<W: Write> Screen<W> {
    /// Creates a screen of `width` columns and `height` rows; the cursor must be at the start of a line.
    pub fn new(out: W, width: usize, height: usize, is_colored: bool) -> Screen<W> {
        Screen { out, width, height, is_colored, drawn: Vec::new(), at: (0, 0), is_stale: true }
    }

    /// The underlying writer.
    pub fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    /// Columns for text. The last column stays free, so that no line wraps and the cursor fits after every line.
    pub fn columns(&self) -> usize {
        self.width.saturating_sub(1).max(1)
    }

    /// Rows for the region.
    pub fn rows(&self) -> usize {
        self.height.saturating_sub(1).max(1)
    }

    /// Sets a new size. The terminal has wrapped region lines that no longer fit, so they take more rows.
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

    /// Writes finished lines permanently and draws the region below them.
    pub fn frame(&mut self, finished: &[Line<'static>], live: &LiveRegion) -> io::Result<()> {
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
        move_cursor(&mut text, self.at.0, end.0);
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

    /// Clears the region and shows the cursor at the start of an empty line. Finished lines stay.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut text = String::new();
        move_cursor(&mut text, self.at.0, 0);
        text.push_str("\r\x1b[J\x1b[?25h");
        self.forget();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Discards the drawn state after other output; the cursor must be at the start of a line.
    pub fn forget(&mut self) {
        self.drawn.clear();
        self.at = (0, 0);
        self.is_stale = true;
    }

    /// Clears the screen but not the scrollback.
    pub fn clear(&mut self) -> io::Result<()> {
        self.leave()?;
        self.out.write_all(b"\x1b[H\x1b[2J")
    }

    /// The end of the region that fits, with the cursor.
    fn fitted(&self, live: &LiveRegion) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let skipped = live.lines.len().saturating_sub(self.rows());
        let lines = live.lines[skipped..].iter().map(|line| truncate_line(line, self.columns()));
        let cursor = live.cursor.and_then(|(row, column)| {
            Some((row.checked_sub(skipped)?, column.min(self.width.saturating_sub(1))))
        });
        (lines.collect(), cursor)
    }

    fn changed_lines(&mut self, text: &mut String, lines: &[Line<'static>]) {
        for (row, line) in lines.iter().enumerate() {
            if self.drawn[row] != *line {
                move_cursor(text, self.at.0, row);
                text.push('\r');
                self.line(text, line);
                self.at.0 = row;
            }
        }
    }

    fn whole(&mut self, text: &mut String, finished: &[Line<'static>], lines: &[Line<'static>]) {
        move_cursor(text, self.at.0, 0);
        text.push('\r');
        // Lines that the terminal wrapped occupy rows that nothing else would clear.
        if self.is_stale {
            text.push_str("\x1b[J");
        }
        for line in finished {
            self.line(text, &truncate_line(line, self.width));
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

    /// Writes a line and clears the rest of its row.
    fn line(&self, text: &mut String, line: &Line<'static>) {
        let mut is_styled = false;
        for span in &line.spans {
            let codes = codes(line.style.patch(span.style), self.is_colored);
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
        // After a full line the cursor is still on its last column.
        if line_columns(line) < self.width {
            text.push_str("\x1b[K");
        }
    }
}

/// Moves the cursor from one row to another.
fn move_cursor(text: &mut String, from: usize, to: usize) {
    if from > to {
        let _ = write!(text, "\x1b[{}A", from - to);
    } else if to > from {
        let _ = write!(text, "\x1b[{}B", to - from);
    }
}

/// ANSI codes of a style, joined by semicolons.
fn codes(style: Style, is_colored: bool) -> String {
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
    if is_colored {
        codes.extend(style.fg.and_then(|color| color_code(color, 30)));
        codes.extend(style.bg.and_then(|color| color_code(color, 40)));
    }
    codes.join(";")
}

/// ANSI code of a color; `base` is 30 for the foreground and 40 for the background.
fn color_code(color: Color, base: u8) -> Option<String> {
    let index = match color {
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
