//! Two moments of a view: the first block that stands otherwise.

use pal_model::Entry;
use pal_testkit::script;
use pal_view::{FirstChanged, Moment, Scope, View};

use crate::common::lens;

/// The moments of a script: after each line that says `sent`, and at its end.
fn moments(text: &str) -> Vec<Moment> {
    let entries: Vec<Entry> = script(text).unwrap();
    let mut view = View::new(lens(Scope::Current));
    let mut moments = Vec::new();
    for entry in entries {
        let is_request = matches!(entry.body, pal_model::Body::Request(_));
        view.push(entry);
        if is_request {
            moments.push(view.moment());
        }
    }
    moments.push(view.moment());
    moments
}

const LOG: &str =
    "user: fix it\nsent\nmodel m1: call a Read {}\nresult a: the whole file\nuser: go on\nsent\n";

#[test]
fn what_only_grows_has_not_changed() {
    let moments = moments(&format!("{LOG}model m2: done"));
    assert_eq!(moments[0].first_changed(&moments[1]), None);
    assert_eq!(moments[1].first_changed(&moments[2]), None);
}

#[test]
fn the_first_changed_block_is_named_by_its_message() {
    let moments = moments(&format!("{LOG}clear a: gone"));
    let changed = moments[1].first_changed(&moments[2]);
    let characters = "gone".len() as i64 - "the whole file".len() as i64;
    assert_eq!(changed, Some(FirstChanged { message: 2, block: 0, is_gone: false, characters }));
    let back = moments[1].first_changed(&moments[0]).unwrap();
    assert_eq!((back.message, back.block, back.is_gone), (1, 0, true));
    assert!(back.characters < 0);
}
