//! Tables: rows with the same columns, divided by one character or by runs of spaces.

/// Minimum rows of a table.
const ROWS_MIN: usize = 10;
/// Sample size for recognition.
const SAMPLE: usize = 500;
/// Minimum percentage of rows that have the same columns; headings, rules and totals may differ.
const EVEN_PERCENT: usize = 80;
/// Minimum columns of a table whose divider also occurs in prose.
const COLUMNS_MIN: usize = 3;

/// Returns true if most lines have the same number of columns.
pub(super) fn is_table(lines: &[&str]) -> bool {
    let sample = lines.iter().step_by(lines.len() / SAMPLE + 1).copied();
    let rows: Vec<&str> = sample.filter(|line| !line.trim().is_empty()).collect();
    if rows.len() < ROWS_MIN {
        return false;
    }
    let by_character = |divider: u8| move |row: &str| row.bytes().filter(|byte| *byte == divider).count() + 1;
    is_even(&rows, 2, by_character(b'\t'))
        || is_even(&rows, 2, by_character(b'|'))
        || is_even(&rows, COLUMNS_MIN, by_character(b','))
        || is_even(&rows, COLUMNS_MIN, by_character(b';'))
        || is_even(&rows, COLUMNS_MIN, spaced_columns)
}

/// Returns true if enough rows have the columns of the row in the middle, and at least `columns_min`.
fn is_even(rows: &[&str], columns_min: usize, columns: impl Fn(&str) -> usize) -> bool {
    let usual = columns(rows[rows.len() / 2]);
    let even = rows.iter().filter(|row| columns(row) == usual).count();
    usual >= columns_min && even * 100 >= rows.len() * EVEN_PERCENT
}

/// Number of columns that are divided by two spaces or more.
fn spaced_columns(row: &str) -> usize {
    row.split("  ").filter(|cell| !cell.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_the_same_columns_are_tables() {
        let rows = |head: &str, row: &dyn Fn(usize) -> String| -> Vec<String> {
            std::iter::once(head.to_owned()).chain((0..20).map(row)).collect()
        };
        let tables = [
            rows("id,name,score", &|at| format!("{at},name {at},{}", at * 7)),
            rows("id\tname", &|at| format!("{at}\tname")),
            rows(" id | name ", &|at| format!(" {at} | name {at} ")),
            rows("NAME      READY   STATUS", &|at| format!("pod-{at}    1/1     Running")),
        ];
        let others = [
            rows("Some prose", &|at| format!("line {at}{} of prose", ", and more".repeat(at % 4))),
            rows("fn main() {", &|at| format!("    let x{at} = {at};")),
            rows("short", &|at| format!("{at}")),
        ];
        let is_table = |texts: &Vec<String>| is_table(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        for texts in &tables {
            assert!(is_table(texts), "{texts:?}");
        }
        for texts in &others {
            assert!(!is_table(texts), "{texts:?}");
        }
    }
}
