//! Bars drawn with block characters, in cells and eighths of cells.

/// Draws a share between 0 and 1 as a bar of up to 20 cells.
pub fn draw_bar(share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
    "█".repeat(filled)
}

/// Splits one cell of a stacked bar: how many of its eighths each part covers. Each part is given with its length in eighths, in
/// stacking order; parts that cover nothing are left out. Cells are counted from the start of the bar.
pub fn cell_eighths<Part>(parts: impl Iterator<Item = (Part, f64)>, cell: usize) -> Vec<(Part, usize)> {
    let (start, end) = (cell * 8, cell * 8 + 8);
    let (mut sum, mut from) = (0.0, 0);
    let mut inside = Vec::new();
    for (part, eighths) in parts {
        sum += eighths;
        let to = sum.round() as usize;
        let covered = to.min(end).saturating_sub(from.max(start));
        if covered > 0 {
            inside.push((part, covered));
        }
        from = to;
    }
    inside
}
