//! What changed in a file, for the model and for whoever watches.

use std::time::Duration;

use similar::TextDiff;

/// Lines around a change that are shown.
const AROUND: usize = 3;

/// Most bytes of a diff: it is there to see that the right place was hit, and not to repeat what was written.
const BYTES_MAX: usize = 6_000;

/// How long the smallest change is looked for; after that a larger one does.
const TIME_MAX: Duration = Duration::from_millis(200);

/// A unified diff of two versions of a file, without the names of files, cut at a line if it is long.
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
