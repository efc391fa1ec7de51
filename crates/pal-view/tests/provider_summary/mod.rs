//! The provider's own summary in a boundary: it opens the messages where the model reads it, and is told in words
//! anywhere else.

use pal_model::{
    Boundary, Content, EntryDraft, EntryId, IdSource, LogEntry, MessageOrigin, ModelCatalog,
    PreservedPlacement, PreservedRange, PromptPrefix, Role, SharedText, Timestamp,
};
use pal_view::{Estimator, Lens, View, ViewScope};

use crate::common::{OPTIONS, checked};

const BLOCK: &str = r#"{"type":"compaction","content":"Said before.","signature":"c2ln","tool_changes":[]}"#;
const THINKING: &str = r#"{"type":"thinking","thinking":"Hm","signature":"dGhvdWdodA=="}"#;

/// A log under way.
struct SummaryLog {
    ids: IdSource,
    entries: Vec<LogEntry>,
}

impl SummaryLog {
    fn push(&mut self, draft: EntryDraft) -> EntryId {
        let at = Timestamp::from_milliseconds(1_800_000_000_000);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
        self.entries.last().unwrap().id
    }

    /// A turn with thinking, a boundary that keeps it, and a word more.
    fn compacted(block: &str, placement: PreservedPlacement) -> SummaryLog {
        let mut log = SummaryLog { ids: IdSource::seeded(1), entries: Vec::new() };
        log.push(EntryDraft::prefix(&PromptPrefix {
            system: SharedText::from("[]"),
            tools: SharedText::from("[]"),
            context: Content::parse(&SharedText::from(r#""The instructions""#)),
            unseen_tokens: 0,
            notes: Default::default(),
        }));
        let head = log.push(EntryDraft::user(MessageOrigin::Person, r#""kept question""#));
        let said = format!(r#"[{THINKING},{{"type":"text","text":"kept answer"}}]"#);
        let tail = log.push(EntryDraft::assistant(Some(&"msg_1".into()), Some("claude-opus-5-5"), &said));
        let summary = format!(r#"[{block},{{"type":"text","text":"Repairs"}}]"#);
        let prefix = log.entries[0].id;
        log.push(EntryDraft::boundary(&Boundary {
            method: "provider".into(),
            summary: Content::parse(&SharedText::from(summary)),
            preserved: Some(PreservedRange { head, tail, placement, offset: None }),
            snapshot: pal_model::SessionSnapshot {
                prefix: Some(pal_model::EntryRef { id: prefix, offset: None }),
                ..Default::default()
            },
            ..Boundary::default()
        }));
        log.push(EntryDraft::user(MessageOrigin::Person, r#""next""#));
        log
    }

    fn view(&self, model: &str) -> View {
        let card = ModelCatalog::built_in().find(model).card;
        let estimator = Estimator::shipped(card.generation);
        View::from_branch(Lens { card, estimator, scope: ViewScope::Current }, self.entries.iter().cloned())
    }
}

fn pieces(view: &View) -> Vec<(Option<Role>, String)> {
    view.render(OPTIONS).pieces().map(|(opens, block, _)| (opens, block.to_string())).collect()
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

#[test]
fn provider_summary_opens_the_messages() {
    let log = SummaryLog::compacted(BLOCK, PreservedPlacement::AfterSummary);
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
            // Its thinking is dropped: it was bound to other content.
            (assistant, text("kept answer")),
            (user, text("next")),
        ];
        assert_eq!(pieces(&view), wanted, "{model}");
    }
}

#[test]
fn other_models_get_the_summary_as_text() {
    let log = SummaryLog::compacted(BLOCK, PreservedPlacement::AfterSummary);
    let view = log.view("claude-opus-4-5");
    checked(&view).unwrap_or_else(|error| panic!("{error}"));
    let told = text("# Summary\\n\\nSaid before.");
    let first: Vec<String> = pieces(&view).into_iter().take(3).map(|(_, block)| block).collect();
    assert_eq!(first, [text("The instructions"), told, text("Repairs")]);
}

#[test]
fn summary_is_text_unless_first_and_whole() {
    let told = text("# Summary\\n\\nSaid before.");
    let unsigned = r#"{"type":"compaction","content":"Said before.","encrypted_content":"x"}"#;
    let changed = r#"{"type":"compaction","content":"Said before.","signature":"s","tool_changes":7}"#;
    for (block, placement) in [
        (BLOCK, PreservedPlacement::BeforeSummary),
        (unsigned, PreservedPlacement::AfterSummary),
        (changed, PreservedPlacement::AfterSummary),
    ] {
        let view = SummaryLog::compacted(block, placement).view("claude-opus-5-5");
        checked(&view).unwrap_or_else(|error| panic!("{error}"));
        let pieces = pieces(&view);
        assert!(pieces.iter().any(|(_, block)| *block == told), "{block}: {pieces:?}");
        assert!(!pieces.iter().any(|(_, block)| block.contains("compaction")), "{pieces:?}");
    }
}

#[test]
fn a_boundary_that_stays_before_another_summary_still_opens_the_messages() {
    let mut log = SummaryLog::compacted(BLOCK, PreservedPlacement::AfterSummary);
    let from = log.entries.last().unwrap().id;
    let Some(pal_model::EntryBody::Boundary(first)) =
        log.entries.iter().rev().map(|entry| &entry.body).nth(1)
    else {
        panic!("no boundary");
    };
    let lead = first.summary.clone();
    let snapshot = first.snapshot.clone();
    log.push(EntryDraft::boundary(&Boundary {
        method: "fork".into(),
        lead,
        summary: Content::parse(&SharedText::from(r#""The later part""#)),
        preserved: Some(PreservedRange {
            head: from,
            tail: from,
            placement: PreservedPlacement::BeforeSummary,
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
