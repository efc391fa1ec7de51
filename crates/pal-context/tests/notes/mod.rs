//! When notes are due.

use pal_context::{Noted, NotesCadence};
use pal_model::Body;

use crate::common::Setting;

/// A conversation whose second prompt was shorter than its first, because something was cleared; what was said in between
/// has so many characters.
fn grown(characters: usize) -> bool {
    let setting = Setting::of(
        "claude-opus-4-6",
        &format!(
            "user: go\nsent\nmodel m1: call c1 Bash {{\"command\":\"make\"}}\nusage m1 60000 10\n\
             result c1: ~{characters}~\nsent\nmodel m2: call c2 Bash {{\"command\":\"make\"}}\n\
             usage m2 30000 10\nresult c2: done"
        ),
    );
    let is_answer = |body: &Body| matches!(body, Body::Assistant(_));
    let first = setting.view.branch().iter().find(|entry| is_answer(&entry.body)).unwrap().id;
    let noted = Noted { last: first, tokens: 60_000 };
    NotesCadence::default().has_grown(&setting.view, &noted)
}

#[test]
fn what_was_said_counts_where_clearing_hides_how_much_that_was() {
    assert!(!grown(20_000));
    assert!(grown(200_000));
}
