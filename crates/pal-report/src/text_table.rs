//! Tables of text: a bold heading, words aligned left, numbers aligned right.

use std::io::Write;

use crate::text_style::TextStyle;

/// A table with a heading and rows of cells.
pub struct TextTable {
    rows: Vec<Vec<String>>,
    /// Indices of the columns that are aligned left.
    words: &'static [usize],
}

impl TextTable {
    /// Creates a table; `words` are the indices of the columns that are aligned left.
    pub fn new(heading: &[&str], words: &'static [usize]) -> TextTable {
        TextTable { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()], words }
    }

    /// Appends a row.
    pub fn push_row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes the table; the style applies to the heading.
    pub fn write(&self, style: TextStyle, out: &mut dyn Write) -> std::io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let width = widths[column];
                if self.words.contains(&column) {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            let line = line.trim_end();
            writeln!(out, "{}", if at == 0 { style.bold(line) } else { line.to_owned() })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut table = TextTable::new(&["name", "tokens"], &[0]);
        table.push_row(vec!["a".into(), pal_model::text::group_digits(1_234_567)]);
        table.push_row(vec!["longer".into(), pal_model::text::group_digits(12)]);
        let mut out = Vec::new();
        table.write(TextStyle::new(false), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name       tokens\na       1,234,567\nlonger         12\n"
        );
    }
}
