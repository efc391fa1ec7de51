//! Cadence of notes.

use pal_context::{NotesCadence, NotesCoverage};
use pal_model::EntryBody;

use crate::common::LayerFixture;

/// A conversation whose second prompt was shorter than its first, because results were cleared, with
/// `characters` characters of messages in between.
fn grown(characters: usize) -> bool {
    let setting = LayerFixture::of(
        "claude-opus-4-6",
        &format!(
            "user: go\nsent\nmodel m1: call c1 Bash {{\"command\":\"make\"}}\nusage m1 60000 10\n\
             result c1: ~{characters}~\nsent\nmodel m2: call c2 Bash {{\"command\":\"make\"}}\n\
             usage m2 30000 10\nresult c2: done"
        ),
    );
    let is_answer = |body: &EntryBody| matches!(body, EntryBody::Assistant(_));
    let first = setting.view.branch().iter().find(|entry| is_answer(&entry.body)).unwrap().id;
    let noted = NotesCoverage { last: first, tokens: 60_000 };
    NotesCadence::default().has_grown(&setting.view, &noted)
}

#[test]
fn message_growth_counts_despite_clearing() {
    assert!(!grown(20_000));
    assert!(grown(200_000));
}
