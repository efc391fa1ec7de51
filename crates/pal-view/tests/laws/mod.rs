//! Laws that hold for any log. `PAL_CASES` asks for more cases than the usual ones.

use pal_model::{
    BlockType, Body, DecisionKind, Entry, EntryId, Origin, Role, Text, array_items, fields, unescape,
};
use pal_testkit::{Soup, cases, soup};
use pal_view::{Pushed, Scope, View};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rustc_hash::FxHashSet;

use crate::common::{OPTIONS, checked, editing_lens, lens, reminding_lens};

const EVERYTHING: Soup = Soup { steps: 40, decisions: true, boundaries: true, rewinds: true, prefixes: true };
const SAID_ONLY: Soup =
    Soup { steps: 40, decisions: false, boundaries: false, rewinds: false, prefixes: false };

fn config(usual: u32) -> Config {
    Config { cases: cases(usual), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

/// Everything that can be asked of a view, for comparison.
fn shown(view: &View) -> (String, String, String, String) {
    let request = view.render(OPTIONS);
    let state = format!("{:?} {:?}", view.state(), view.boundary().map(|entry| entry.id));
    let size = view.size();
    let anchor = size.anchor.map(|anchor| (anchor.response, anchor.tokens));
    let size = format!("{} {anchor:?} {:?} {}", size.tokens, size.estimated, size.freed);
    (request.body(), request.fingerprint(), size, state)
}

proptest! {
    #![proptest_config(config(12_000))]

    /// The law that everything rests on. Any soup's beginning is a soup too, so comparing now and then is enough.
    #[test]
    fn growing_equals_deriving(entries in soup(EVERYTHING), every in 3..20usize) {
        for lens in [lens(Scope::Current), reminding_lens(Scope::Whole)] {
            let mut grown = View::new(lens.clone());
            for (at, entry) in entries.iter().enumerate() {
                let derived = || View::of(lens.clone(), branch_of(&entries[..=at]));
                match grown.push(entry.clone()) {
                    Pushed::Added => {}
                    // It continues an entry of a branch that was left.
                    Pushed::NeedsHistory => grown = derived(),
                    Pushed::Repeated => prop_assert!(false, "ids are unique"),
                }
                if at % every == 0 || at + 1 == entries.len() {
                    prop_assert_eq!(shown(&grown), shown(&derived()), "after entry {}", at);
                }
            }
        }
    }

    /// A view read from the newest boundary on is the view of the whole log.
    #[test]
    fn a_tail_is_enough(entries in soup(EVERYTHING)) {
        let whole = View::of(lens(Scope::Current), branch_of(&entries));
        let Some(boundary) = whole.boundary().cloned() else { return Ok(()) };
        let tail = tail_of(whole.branch(), &boundary);
        let resumed = View::of(lens(Scope::Current), tail);
        prop_assert_eq!(shown(&whole), shown(&resumed));
    }
}

proptest! {
    #![proptest_config(config(12_000))]

    /// Whatever the log holds, the strict validator takes the request.
    #[test]
    fn any_soup_is_a_valid_request(entries in soup(EVERYTHING)) {
        for lens in [lens(Scope::Current), lens(Scope::Whole), reminding_lens(Scope::Current)] {
            let view = View::of(lens, branch_of(&entries));
            prop_assert!(checked(&view).is_ok(), "{}", checked(&view).err().unwrap_or_default());
        }
    }

    /// As long as nothing is decided, what was sent stays as it was sent, and more follows it.
    #[test]
    fn what_was_sent_is_never_changed(entries in soup(SAID_ONLY), reminds in any::<bool>()) {
        let lens = if reminds { reminding_lens(Scope::Current) } else { lens(Scope::Current) };
        let mut view = View::new(lens);
        let mut sent: Vec<(Option<Role>, String)> = Vec::new();
        for entry in entries {
            let leaves = matches!(&entry.body, Body::Request(request) if request.source.is_conversation());
            view.push(entry);
            let request = view.render(OPTIONS);
            let now: Vec<(Option<Role>, String)> =
                request.pieces().map(|(opens, text, _)| (opens, text.to_string())).collect();
            prop_assert!(now.starts_with(&sent), "{sent:#?}\n{now:#?}");
            if leaves {
                sent = now;
            }
        }
    }

    /// Nothing that a person said is dropped.
    #[test]
    fn every_word_of_the_user_is_there(entries in soup(SAID_ONLY)) {
        let view = View::of(lens(Scope::Whole), entries.iter().cloned());
        let body = view.render(OPTIONS).body();
        for entry in &entries {
            if let Body::User(user) = &entry.body && user.origin == Origin::Person {
                for text in user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text) {
                    let said = text.string("text").unwrap_or_default();
                    prop_assert!(said.trim().is_empty() || texts(&body).contains(said.as_ref()), "{said:?}\n{body}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(4_000))]

    /// The same laws where results are deleted from the provider's cache; and deleting changes no block before it.
    #[test]
    fn edits_of_the_cache_keep_the_laws(entries in soup(EVERYTHING), every in 3..20usize) {
        let mut grown = View::new(editing_lens(Scope::Current));
        for (at, entry) in entries.iter().enumerate() {
            let derived = || View::of(editing_lens(Scope::Current), branch_of(&entries[..=at]));
            let before: Vec<u128> = grown.render(OPTIONS).chain().collect();
            let was_sent = matches!(entries[..at].last().map(|entry| &entry.body), Some(Body::Request(request)) if request.source.is_conversation());
            match grown.push(entry.clone()) {
                Pushed::Added => {
                    let is_edit = matches!(entry.decision(), Some(DecisionKind::CacheEdit { .. }));
                    if is_edit && was_sent && entry.parent == at.checked_sub(1).map(|before| entries[before].id) {
                        let after: Vec<u128> = grown.render(OPTIONS).chain().collect();
                        prop_assert!(after.starts_with(&before), "an edit changed what was sent");
                    }
                }
                Pushed::NeedsHistory => grown = derived(),
                Pushed::Repeated => prop_assert!(false, "ids are unique"),
            }
            if at % every == 0 || at + 1 == entries.len() {
                prop_assert_eq!(shown(&grown), shown(&derived()), "after entry {}", at);
            }
        }
        prop_assert!(checked(&grown).is_ok(), "{}", checked(&grown).err().unwrap_or_default());
        let Some(boundary) = grown.boundary().cloned() else { return Ok(()) };
        let resumed = View::of(editing_lens(Scope::Current), tail_of(grown.branch(), &boundary));
        prop_assert_eq!(shown(&grown), shown(&resumed));
    }
}

/// All strings of a body's messages.
fn texts(body: &str) -> FxHashSet<String> {
    fn walk(json: &str, found: &mut FxHashSet<String>) {
        if let Some(text) = unescape(json) {
            found.insert(text.into_owned());
        } else if let Ok(items) = array_items(json) {
            items.into_iter().for_each(|item| walk(item, found));
        } else if let Ok(fields) = fields(json) {
            fields.into_iter().for_each(|(_, value)| walk(value, found));
        }
    }
    let mut found = FxHashSet::default();
    for (name, value) in fields(body).unwrap() {
        if name == "messages" {
            walk(value, &mut found);
        }
    }
    found
}

/// What resume reads: the prefix in force, everything from the preserved stretch on, the boundary and the rest.
fn tail_of(branch: &[Entry], boundary: &Entry) -> Vec<Entry> {
    let Body::Boundary(payload) = &boundary.body else { return branch.to_vec() };
    let position = |id: EntryId| branch.iter().position(|entry| entry.id == id);
    let at = position(boundary.id).unwrap();
    let from =
        payload.preserved.as_ref().and_then(|kept| position(kept.head)).map_or(at, |head| head.min(at));
    let prefix =
        payload.snapshot.prefix.and_then(|prefix| position(prefix.id)).filter(|prefix| *prefix < from);
    prefix.map(|prefix| &branch[prefix]).into_iter().chain(&branch[from..]).cloned().collect()
}

/// The branch of the last entry.
fn branch_of(entries: &[Entry]) -> Vec<Entry> {
    let mut branch: Vec<Entry> = Vec::new();
    let mut next = entries.last();
    while let Some(entry) = next {
        branch.push(entry.clone());
        next = entry.parent.and_then(|parent| entries.iter().find(|entry| entry.id == parent));
    }
    branch.reverse();
    branch
}

/// A cache edit from before the boundary is taken back behind it: what is shown has not changed by it.
#[test]
fn undoing_what_went_with_the_boundary_drops_no_thinking() {
    let id = |number: u32| format!("01a3185c-50{number:02x}-7000-8000-000000000000");
    let line = |number: u32, rest: &str| {
        let parent =
            number.checked_sub(1).map_or(String::from("null"), |before| format!("\"{}\"", id(before)));
        let line = format!(
            r#"{{"v":1,"id":"{}","parent":{parent},"at":"2027-01-15T08:00:00.000Z",{rest}}}"#,
            id(number)
        );
        Entry::parse(Text::from(line)).unwrap()
    };
    let cost = r#""reason":"x","cost":{"tokens_freed":0,"tokens_rewritten":0,"thinking_dropped":0}"#;
    let entries = vec![
        line(0, r#""kind":"user","origin":"person","content":"go""#),
        line(1, &format!(r#""kind":"cache_edit","tool_use_ids":["toolu_a"],{cost}"#)),
        line(2, r#""kind":"boundary","trigger":"auto","how":"fork","snapshot":{},"summary":"so far""#),
        line(
            3,
            r#""kind":"assistant","model":"claude-opus-5-5","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"on"}]"#,
        ),
        line(4, r#""kind":"user","origin":"person","content":"further""#),
        line(5, &format!(r#""kind":"undo","target":"{}",{cost}"#, id(1))),
    ];
    let whole = View::of(lens(Scope::Current), entries);
    let tail = tail_of(whole.branch(), &whole.boundary().cloned().unwrap());
    let resumed = View::of(lens(Scope::Current), tail);
    assert_eq!(shown(&whole), shown(&resumed));
    assert!(shown(&whole).0.contains("redacted_thinking"), "{}", shown(&whole).0);
}
