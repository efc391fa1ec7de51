//! Laws that hold for any log. `PAL_CASES` sets a larger number of cases.

use pal_model::{
    BlockType, DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin, Role, SharedText, array_items,
    object_fields, unescape,
};
use pal_testkit::{RandomLogOptions, cases, random_log};
use pal_view::{PushOutcome, View, ViewScope};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rustc_hash::FxHashSet;

use crate::common::{OPTIONS, checked, editing_lens, lens, reminding_lens};

const EVERYTHING: RandomLogOptions =
    RandomLogOptions { steps: 40, decisions: true, boundaries: true, rewinds: true, prefixes: true };
const SAID_ONLY: RandomLogOptions =
    RandomLogOptions { steps: 40, decisions: false, boundaries: false, rewinds: false, prefixes: false };

fn config(usual: u32) -> Config {
    Config { cases: cases(usual), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

/// All observable outputs of a view, for comparison.
fn shown(view: &View) -> (String, String, String, String) {
    let request = view.render(OPTIONS);
    let state = format!("{:?} {:?}", view.state(), view.boundary().map(|entry| entry.id));
    let size = view.size();
    let anchor = size.anchor.map(|anchor| (anchor.response, anchor.tokens));
    let size = format!("{} {anchor:?} {:?} {}", size.tokens, size.estimated, size.freed);
    (request.body(), request.fingerprint(), size, state)
}

proptest! {
    #![proptest_config(config(1_500))]

    /// The basic law. Any prefix of a random log is one too, so comparing now and then is enough.
    #[test]
    fn growing_equals_deriving(entries in random_log(EVERYTHING), every in 3..20usize) {
        for lens in [lens(ViewScope::Current), reminding_lens(ViewScope::Whole)] {
            let mut grown = View::new(lens.clone());
            for (at, entry) in entries.iter().enumerate() {
                let derived = || View::from_branch(lens.clone(), branch_of(&entries[..=at]));
                match grown.push(entry.clone()) {
                    PushOutcome::Added => {}
                    // It continues an entry of a branch that was left.
                    PushOutcome::NeedsHistory => grown = derived(),
                    PushOutcome::Duplicate => prop_assert!(false, "ids are unique"),
                }
                if at % every == 0 || at + 1 == entries.len() {
                    prop_assert_eq!(shown(&grown), shown(&derived()), "after entry {}", at);
                }
            }
        }
    }

    /// A view read from the newest boundary on is the view of the whole log.
    #[test]
    fn resumed_tail_equals_the_whole_log(entries in random_log(EVERYTHING)) {
        let whole = View::from_branch(lens(ViewScope::Current), branch_of(&entries));
        let Some(boundary) = whole.boundary().cloned() else { return Ok(()) };
        let tail = tail_of(whole.branch(), &boundary);
        let resumed = View::from_branch(lens(ViewScope::Current), tail);
        prop_assert_eq!(shown(&whole), shown(&resumed));
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// For any log, the strict validator accepts the request.
    #[test]
    fn any_log_renders_a_valid_request(entries in random_log(EVERYTHING)) {
        for lens in [lens(ViewScope::Current), lens(ViewScope::Whole), reminding_lens(ViewScope::Current)] {
            let view = View::from_branch(lens, branch_of(&entries));
            prop_assert!(checked(&view).is_ok(), "{}", checked(&view).err().unwrap_or_default());
        }
    }

    /// Without decisions, sent content never changes and new content follows it.
    #[test]
    fn sent_content_never_changes(entries in random_log(SAID_ONLY), reminds in any::<bool>()) {
        let lens = if reminds { reminding_lens(ViewScope::Current) } else { lens(ViewScope::Current) };
        let mut view = View::new(lens);
        let mut sent: Vec<(Option<Role>, String)> = Vec::new();
        for entry in entries {
            let leaves = matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation());
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
    fn no_user_text_is_dropped(entries in random_log(SAID_ONLY)) {
        let view = View::from_branch(lens(ViewScope::Whole), entries.iter().cloned());
        let body = view.render(OPTIONS).body();
        for entry in &entries {
            if let EntryBody::User(user) = &entry.body && user.origin == MessageOrigin::Person {
                for text in user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text) {
                    let said = text.string("text").unwrap_or_default();
                    prop_assert!(said.trim().is_empty() || texts(&body).contains(said.as_ref()), "{said:?}\n{body}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    /// The same laws where results are deleted from the provider's cache; and deleting changes no block before it.
    #[test]
    fn cache_edits_keep_the_laws(entries in random_log(EVERYTHING), every in 3..20usize) {
        let mut grown = View::new(editing_lens(ViewScope::Current));
        for (at, entry) in entries.iter().enumerate() {
            let derived = || View::from_branch(editing_lens(ViewScope::Current), branch_of(&entries[..=at]));
            let before: Vec<u128> = grown.render(OPTIONS).block_fingerprints().collect();
            let was_sent = matches!(entries[..at].last().map(|entry| &entry.body), Some(EntryBody::Request(request)) if request.source.is_conversation());
            match grown.push(entry.clone()) {
                PushOutcome::Added => {
                    let is_edit = matches!(entry.decision(), Some(DecisionKind::CacheEdit { .. }));
                    if is_edit && was_sent && entry.parent == at.checked_sub(1).map(|before| entries[before].id) {
                        let after: Vec<u128> = grown.render(OPTIONS).block_fingerprints().collect();
                        prop_assert!(after.starts_with(&before), "an edit changed what was sent");
                    }
                }
                PushOutcome::NeedsHistory => grown = derived(),
                PushOutcome::Duplicate => prop_assert!(false, "ids are unique"),
            }
            if at % every == 0 || at + 1 == entries.len() {
                prop_assert_eq!(shown(&grown), shown(&derived()), "after entry {}", at);
            }
        }
        prop_assert!(checked(&grown).is_ok(), "{}", checked(&grown).err().unwrap_or_default());
        let Some(boundary) = grown.boundary().cloned() else { return Ok(()) };
        let resumed = View::from_branch(editing_lens(ViewScope::Current), tail_of(grown.branch(), &boundary));
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
        } else if let Ok(fields) = object_fields(json) {
            fields.into_iter().for_each(|(_, value)| walk(value, found));
        }
    }
    let mut found = FxHashSet::default();
    for (name, value) in object_fields(body).unwrap() {
        if name == "messages" {
            walk(value, &mut found);
        }
    }
    found
}

/// Entries that resume reads: the prefix in force, everything from the preserved range on, the boundary and
/// the rest.
fn tail_of(branch: &[LogEntry], boundary: &LogEntry) -> Vec<LogEntry> {
    let EntryBody::Boundary(payload) = &boundary.body else { return branch.to_vec() };
    let position = |id: EntryId| branch.iter().position(|entry| entry.id == id);
    let at = position(boundary.id).unwrap();
    let from =
        payload.preserved.as_ref().and_then(|kept| position(kept.head)).map_or(at, |head| head.min(at));
    let prefix =
        payload.snapshot.prefix.and_then(|prefix| position(prefix.id)).filter(|prefix| *prefix < from);
    prefix.map(|prefix| &branch[prefix]).into_iter().chain(&branch[from..]).cloned().collect()
}

/// The branch of the last entry.
fn branch_of(entries: &[LogEntry]) -> Vec<LogEntry> {
    let mut branch: Vec<LogEntry> = Vec::new();
    let mut next = entries.last();
    while let Some(entry) = next {
        branch.push(entry.clone());
        next = entry.parent.and_then(|parent| entries.iter().find(|entry| entry.id == parent));
    }
    branch.reverse();
    branch
}

/// Undoing a cache edit from before the boundary does not change the visible content.
#[test]
fn undoing_an_edit_before_the_boundary_keeps_thinking() {
    let id = |number: u32| format!("01a3185c-50{number:02x}-7000-8000-000000000000");
    let line = |number: u32, rest: &str| {
        let parent =
            number.checked_sub(1).map_or(String::from("null"), |before| format!("\"{}\"", id(before)));
        let line = format!(
            r#"{{"v":1,"id":"{}","parent":{parent},"at":"2027-01-15T08:00:00.000Z",{rest}}}"#,
            id(number)
        );
        LogEntry::parse(SharedText::from(line)).unwrap()
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
    let whole = View::from_branch(lens(ViewScope::Current), entries);
    let tail = tail_of(whole.branch(), &whole.boundary().cloned().unwrap());
    let resumed = View::from_branch(lens(ViewScope::Current), tail);
    assert_eq!(shown(&whole), shown(&resumed));
    assert!(shown(&whole).0.contains("redacted_thinking"), "{}", shown(&whole).0);
}
