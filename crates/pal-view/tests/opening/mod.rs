//! The provider's own summary in a boundary: it opens the messages where the model reads it, and is told in words
//! anywhere else.

use pal_model::{
    Boundary, Cards, Content, Draft, Entry, EntryId, IdSource, Origin, Placement, Prefix, Preserved, Role,
    Text, Timestamp,
};
use pal_view::{Estimator, Lens, Scope, View};

use crate::common::{OPTIONS, checked};

const BLOCK: &str = r#"{"type":"compaction","content":"Said before.","signature":"c2ln","tool_changes":[]}"#;
const THINKING: &str = r#"{"type":"thinking","thinking":"Hm","signature":"dGhvdWdodA=="}"#;

/// A log under way.
struct Log {
    ids: IdSource,
    entries: Vec<Entry>,
}

impl Log {
    fn push(&mut self, draft: Draft) -> EntryId {
        let at = Timestamp::from_milliseconds(1_800_000_000_000);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(Entry::parse(Text::from(line)).unwrap());
        self.entries.last().unwrap().id
    }

    /// A turn with thinking, a boundary that keeps it, and a word more.
    fn compacted(block: &str, placement: Placement) -> Log {
        let mut log = Log { ids: IdSource::seeded(1), entries: Vec::new() };
        log.push(Draft::prefix(&Prefix {
            system: Text::from("[]"),
            tools: Text::from("[]"),
            context: Content::parse(&Text::from(r#""The instructions""#)),
            unseen_tokens: 0,
            notes: Default::default(),
        }));
        let head = log.push(Draft::user(Origin::Person, r#""kept question""#));
        let said = format!(r#"[{THINKING},{{"type":"text","text":"kept answer"}}]"#);
        let tail = log.push(Draft::assistant(Some(&"msg_1".into()), Some("claude-opus-5-5"), &said));
        let summary = format!(r#"[{block},{{"type":"text","text":"Repairs"}}]"#);
        let prefix = log.entries[0].id;
        log.push(Draft::boundary(&Boundary {
            how: "provider".into(),
            summary: Content::parse(&Text::from(summary)),
            preserved: Some(Preserved { head, tail, placement, offset: None }),
            snapshot: pal_model::Snapshot {
                prefix: Some(pal_model::Reference { id: prefix, offset: None }),
                ..Default::default()
            },
            ..Boundary::default()
        }));
        log.push(Draft::user(Origin::Person, r#""next""#));
        log
    }

    fn view(&self, model: &str) -> View {
        let card = Cards::shipped().find(model).card;
        let estimator = Estimator::shipped(card.generation);
        View::of(Lens { card, estimator, scope: Scope::Current }, self.entries.iter().cloned())
    }
}

fn pieces(view: &View) -> Vec<(Option<Role>, String)> {
    view.render(OPTIONS).pieces().map(|(opens, block, _)| (opens, block.to_string())).collect()
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

#[test]
fn it_opens_the_messages_where_the_model_reads_it() {
    let log = Log::compacted(BLOCK, Placement::AfterSummary);
    for model in ["claude-opus-5-5", "claude-opus-4-6"] {
        let view = log.view(model);
        if model == "claude-opus-5-5" {
            checked(&view).unwrap_or_else(|error| panic!("{error}"));
        }
        let (user, assistant) = (Some(Role::User), Some(Role::Assistant));
        let wanted = [
            (assistant, BLOCK.to_owned()),
            (user, text("The instructions")),
            (None, text("Repairs")),
            (None, text("kept question")),
            // Whatever was thought there was thought on something else.
            (assistant, text("kept answer")),
            (user, text("next")),
        ];
        assert_eq!(pieces(&view), wanted, "{model}");
    }
}

#[test]
fn any_other_model_is_told_what_it_says() {
    let log = Log::compacted(BLOCK, Placement::AfterSummary);
    let view = log.view("claude-opus-4-5");
    checked(&view).unwrap_or_else(|error| panic!("{error}"));
    let told = text("# Summary\\n\\nSaid before.");
    let first: Vec<String> = pieces(&view).into_iter().take(3).map(|(_, block)| block).collect();
    assert_eq!(first, [text("The instructions"), told, text("Repairs")]);
}

#[test]
fn it_is_told_in_words_where_it_is_not_first_or_not_whole() {
    let told = text("# Summary\\n\\nSaid before.");
    let unsigned = r#"{"type":"compaction","content":"Said before.","encrypted_content":"x"}"#;
    let changed = r#"{"type":"compaction","content":"Said before.","signature":"s","tool_changes":7}"#;
    for (block, placement) in [
        (BLOCK, Placement::BeforeSummary),
        (unsigned, Placement::AfterSummary),
        (changed, Placement::AfterSummary),
    ] {
        let view = Log::compacted(block, placement).view("claude-opus-5-5");
        checked(&view).unwrap_or_else(|error| panic!("{error}"));
        let pieces = pieces(&view);
        assert!(pieces.iter().any(|(_, block)| *block == told), "{block}: {pieces:?}");
        assert!(!pieces.iter().any(|(_, block)| block.contains("compaction")), "{pieces:?}");
    }
}

#[test]
fn a_boundary_that_stays_before_another_summary_still_opens_the_messages() {
    let mut log = Log::compacted(BLOCK, Placement::AfterSummary);
    let from = log.entries.last().unwrap().id;
    let Some(pal_model::Body::Boundary(first)) = log.entries.iter().rev().map(|entry| &entry.body).nth(1)
    else {
        panic!("no boundary");
    };
    let lead = first.summary.clone();
    let snapshot = first.snapshot.clone();
    log.push(Draft::boundary(&Boundary {
        how: "fork".into(),
        lead,
        summary: Content::parse(&Text::from(r#""The later part""#)),
        preserved: Some(Preserved {
            head: from,
            tail: from,
            placement: Placement::BeforeSummary,
            offset: None,
        }),
        snapshot,
        ..Boundary::default()
    }));
    let view = log.view("claude-opus-5-5");
    checked(&view).unwrap_or_else(|error| panic!("{error}"));
    let blocks: Vec<String> = pieces(&view).into_iter().map(|(_, block)| block).collect();
    let wanted =
        [BLOCK.to_owned(), text("The instructions"), text("Repairs"), text("next"), text("The later part")];
    assert_eq!(blocks, wanted);
}
