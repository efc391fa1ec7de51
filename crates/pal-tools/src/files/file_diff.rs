//! Diff of a changed file, for the model and the user.

use std::time::Duration;

use similar::TextDiff;

/// Context lines around a change.
const AROUND: usize = 3;

/// Maximum bytes of a diff: it confirms the place of a change and does not repeat the content.
const BYTES_MAX: usize = 6_000;

/// Time to search for the smallest diff; after that a larger one is used.
const TIME_MAX: Duration = Duration::from_millis(200);

/// Unified diff of two versions of a file without file names, truncated at a line end.
pub(crate) fn diff(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(old.as_ref(), new.as_ref());
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
        let hunk = hunk.to_string();
        if text.len() + hunk.len() > BYTES_MAX {
            let room = BYTES_MAX.saturating_sub(text.len());
            let end = hunk.floor_char_boundary(room);
            let end = hunk[..end].rfind('\n').map_or(0, |line_end| line_end + 1);
            text.push_str(&hunk[..end]);
            text.push_str("[The rest of the difference is not shown.]\n");
            break;
        }
        text.push_str(&hunk);
    }
    text.replace('\r', "")
}
