//! Session notes as a summary (§4.3): sections truncated to their budget, with a pointer to the file.

use pal_view::View;

use super::compaction_request::SessionNotes;
use crate::WindowBudgets;
use crate::notes::sections;

/// Maximum tokens of one section.
const SECTION: u64 = 2_000;

/// Converts notes to a summary; `None` if they hold only headings and descriptions.
pub(crate) fn summary(view: &View, notes: &SessionNotes, budgets: WindowBudgets) -> Option<String> {
    let estimator = view.estimator();
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let most = budgets.scale(SECTION);
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

/// Returns true for a line that is neither a heading nor a description in italics.
fn is_content(line: &str) -> bool {
    let line = line.trim();
    let is_description = line.len() > 1 && line.starts_with('_') && line.ends_with('_');
    !line.is_empty() && !line.starts_with('#') && !is_description
}
