//! Notes as a summary (§4.3): sections cut to their budget, with a pointer to the file.

use pal_view::View;

use super::order::Notes;
use crate::Budgets;
use crate::notes::sections;

/// Tokens of one section.
const SECTION: u64 = 2_000;

/// The notes as a summary; none if they hold nothing but headings and descriptions.
pub(crate) fn summary(view: &View, notes: &Notes, budgets: Budgets) -> Option<String> {
    let estimator = view.estimator();
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let most = budgets.of(SECTION);
    let mut out = String::new();
    let mut says_something = false;
    for section in sections(&notes.text) {
        says_something |= section.lines().any(is_content);
        let taken = tokens(section);
        if taken <= most {
            out.push_str(section);
            continue;
        }
        let bytes = (section.len() as u64 * most / taken.max(1)) as usize;
        let cut = &section[..section.floor_char_boundary(bytes)];
        out.push_str(cut.rfind('\n').map_or(cut, |end| &cut[..end]));
        out.push_str(&format!("\n[… cut here: the whole section is in {}]\n", notes.path));
    }
    says_something.then_some(out)
}

/// Whether a line of notes says something: no heading, no description in italics.
fn is_content(line: &str) -> bool {
    let line = line.trim();
    let is_description = line.len() > 1 && line.starts_with('_') && line.ends_with('_');
    !line.is_empty() && !line.starts_with('#') && !is_description
}
