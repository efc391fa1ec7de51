//! Builds a boundary from a summary: audit, pins, restored content, and the check that it saves enough.

use std::collections::BTreeSet;

use pal_extract::ConversationFacts;
use pal_model::text::group_digits;
use pal_model::{
    BlockType, Boundary, Content, ContentBlock, EntryBody, PreservedPlacement, PreservedRange,
    PriorUserMessages, SessionSnapshot, SummaryAudit,
};
use pal_view::{View, VisibleEntry, VisiblePart, WindowLimits};

use super::audit::{self, AuditBudgets, AuditInput};
use super::compaction_request::{CompactionRequest, CompactionTrigger, RestoredFile, SummaryMethod};
use super::conversation_cut::{ConversationCut, CutPart, CuttableConversation};
use super::{restoration, summary_prompt};
use crate::{SessionPaths, WindowBudgets};

/// Token budgets for repairs and for the user's words.
const REPAIRS: u64 = 4_000;
const USER_WORDS: u64 = 12_000;
/// Target size after a compaction, as percent of the threshold: a larger context would soon be compacted
/// again.
const AIM_PERCENT: u64 = 70;

/// Source of a summary's text.
#[derive(Clone, Debug)]
pub(crate) enum SummarySource {
    /// Text of a model or of notes.
    Text(String),
    /// The provider's own block.
    Provider(ContentBlock),
    /// Extracted from the log, within `room` bytes.
    Extracted { room: usize },
}

/// Inputs of a boundary.
pub(crate) struct BoundaryInputs<'a> {
    pub(crate) view: &'a View,
    pub(crate) conversation: &'a CuttableConversation<'a>,
    pub(crate) order: &'a CompactionRequest,
    pub(crate) limits: &'a WindowLimits,
    pub(crate) place: &'a SessionPaths,
    pub(crate) files: &'a [RestoredFile],
    pub(crate) model_failed: bool,
}

/// Amount of content put into a boundary.
#[derive(Clone, Copy)]
struct BoundaryVariant {
    keeps_tail: bool,
    restores: bool,
    /// Share of the budgets, in percent.
    percent: u64,
}

/// Builds the boundary of a compaction, or returns the reason why it is of no use. Leaner variants are tried
/// until one meets the target size.
pub(crate) fn compose(
    material: &BoundaryInputs<'_>,
    cut: ConversationCut,
    how: SummaryMethod,
    summary: &SummarySource,
) -> Result<Boundary, String> {
    let threshold = material.limits.auto_compact.unwrap_or(material.limits.effective);
    let aim = threshold * AIM_PERCENT / 100;
    let before = material.view.size().tokens;
    let mut best: Option<Boundary> = None;
    for generosity in generosities(material.order, cut, summary) {
        let Some(boundary) = compose_with(material, cut, how, summary, generosity) else { continue };
        let after = boundary.tokens_after.unwrap_or(u64::MAX);
        let is_better = best.as_ref().is_none_or(|best| best.tokens_after > Some(after));
        if is_better {
            best = Some(boundary);
        }
        if after < aim {
            break;
        }
    }
    let boundary = best.ok_or_else(|| String::from("there is nothing to summarise"))?;
    let after = boundary.tokens_after.unwrap_or(u64::MAX);
    // After a refusal everything that makes the request shorter is a step forward.
    if after >= threshold && material.order.trigger != CompactionTrigger::Reactive {
        return Err(format!(
            "{} tokens after it would still be over the threshold of {}",
            group_digits(after),
            group_digits(threshold)
        ));
    }
    if after >= before {
        return Err(format!(
            "{} tokens after it would be no less than the {} before",
            group_digits(after),
            group_digits(before)
        ));
    }
    Ok(boundary)
}

fn generosities(
    order: &CompactionRequest,
    cut: ConversationCut,
    summary: &SummarySource,
) -> Vec<BoundaryVariant> {
    let full = BoundaryVariant { keeps_tail: true, restores: true, percent: 100 };
    let mut list = vec![full, BoundaryVariant { restores: false, ..full }];
    // A range chosen by the user is kept.
    let may_drop_tail =
        matches!(order.range, super::CompactionRange::Whole) && cut.summarizes == CutPart::Earlier;
    if may_drop_tail {
        list.push(BoundaryVariant { keeps_tail: false, restores: false, percent: 100 });
    }
    if matches!(summary, SummarySource::Extracted { .. }) {
        let keeps_tail = !may_drop_tail;
        list.extend([50, 25, 10, 3].map(|percent| BoundaryVariant { keeps_tail, restores: false, percent }));
        if order.trigger == CompactionTrigger::Reactive {
            list.push(BoundaryVariant { keeps_tail, restores: false, percent: 0 });
        }
    }
    list
}

fn compose_with(
    material: &BoundaryInputs<'_>,
    cut: ConversationCut,
    how: SummaryMethod,
    summary: &SummarySource,
    generosity: BoundaryVariant,
) -> Option<Boundary> {
    let BoundaryInputs { view, conversation, order, limits, .. } = material;
    let cut =
        if generosity.keeps_tail { cut } else { ConversationCut { at: conversation.shown.len(), ..cut } };
    let (summarised, kept) = conversation.parts(cut);
    let facts = ConversationFacts::from_entries(conversation_entries(summarised));
    let can_shorten = order.trigger == CompactionTrigger::Reactive && !facts.earlier_summaries.is_empty();
    if facts.message_count == 0 && !can_shorten {
        return None;
    }
    let (text, block) = match summary {
        SummarySource::Text(text) => (text.clone(), None),
        SummarySource::Extracted { room } => {
            let room = room * generosity.percent as usize / 100;
            (pal_extract::extractive_summary(&facts, room), None)
        }
        SummarySource::Provider(block) => {
            (block.string("content").unwrap_or_default().into_owned(), Some(block))
        }
    };
    let (repairs, audit, carried) = audited(material, &facts, kept, &text, generosity);
    let message = summary_prompt::summary_message(&summary_prompt::SummaryMessage {
        summary: if block.is_some() { None } else { Some(&text) },
        repairs: &repairs,
        pins: &pins(material),
        transcript: &material.place.transcript,
        goes_on: order.trigger != CompactionTrigger::Manual,
        is_attended: order.is_attended,
    });
    let summary: Content = block.cloned().into_iter().chain([ContentBlock::text(&message)]).collect();
    let mut boundary = Boundary {
        trigger: order.trigger.name().into(),
        method: how.name().into(),
        summary,
        messages_summarised: Some(facts.message_count as u64),
        preserved: preserved(kept, cut),
        instructions: order.instructions.clone(),
        lead: lead(view, cut),
        last_before: view.newest_id(),
        threshold: limits.auto_compact,
        source: Some(order.source.clone()),
        tools: tools(view, conversation),
        previous: view.boundary().map(|entry| entry.id),
        turns_since_previous: Some(turns(conversation)),
        audit: Some(audit),
        snapshot: snapshot(material, how, carried),
        tokens_before: Some(view.size().tokens),
        ..Boundary::default()
    };
    let mut after = view.with_boundary(&boundary).size().tokens;
    if generosity.restores {
        let threshold = limits.auto_compact.unwrap_or(limits.effective);
        let room = threshold.saturating_sub(after) / 2;
        let budgets = WindowBudgets::new(limits);
        boundary.restored =
            restoration::blocks(view, material.files, &order.sources, budgets, room).into_iter().collect();
        if !boundary.restored.blocks().is_empty() {
            after = view.with_boundary(&boundary).size().tokens;
        }
    }
    boundary.tokens_after = Some(after);
    Some(boundary)
}

fn conversation_entries<'a>(shown: &[VisibleEntry<'a>]) -> impl Iterator<Item = &'a pal_model::LogEntry> {
    shown.iter().filter(|shown| shown.part == VisiblePart::Content).map(|shown| shown.entry)
}

fn audited(
    material: &BoundaryInputs<'_>,
    facts: &ConversationFacts,
    kept: &[VisibleEntry<'_>],
    summary: &str,
    generosity: BoundaryVariant,
) -> (String, SummaryAudit, PriorUserMessages) {
    let budgets = WindowBudgets::new(material.limits);
    let estimator = material.view.estimator();
    let share = |tokens: u64| budgets.scale(tokens) * generosity.percent / 100;
    // As the model sees them: a spilled paste counts only by its preview.
    let is_kept = |shown: &VisibleEntry<'_>| kept.iter().any(|kept| kept.entry.id == shown.entry.id);
    let seen = material.view.visible_blocks().filter(|(shown, _)| is_kept(shown));
    let kept: Vec<String> = seen.flat_map(|(_, blocks)| texts(&blocks)).collect();
    let lines = || material.conversation.shown.iter().map(|shown| shown.entry.line.as_bytes());
    let audited = audit::audit(&AuditInput {
        facts,
        carried: &material.view.state().user_messages,
        kept: &kept.iter().map(String::as_str).collect::<Vec<_>>(),
        summary,
        budgets: AuditBudgets { repair_tokens: share(REPAIRS), user_tokens: share(USER_WORDS) },
        estimate: &|text| estimator.total(estimator.text(text)),
        transcript: &material.place.transcript,
        seen: &|path| lines().any(|line| memchr::memmem::find(line, path.as_bytes()).is_some()),
    });
    (audited.repairs, audited.audit, audited.carried)
}

/// Texts of the text blocks.
fn texts(blocks: &[ContentBlock]) -> Vec<String> {
    blocks.iter().filter_map(|block| block.string("text").map(|text| text.into_owned())).collect()
}

/// Pinned texts that fit their budget, newest first, in the order in which they were pinned.
fn pins(material: &BoundaryInputs<'_>) -> Vec<String> {
    let estimator = material.view.estimator();
    let mut room = WindowBudgets::new(material.limits).pins();
    let mut kept: Vec<String> = Vec::new();
    let mut left_out = 0;
    for text in material.view.state().pins.values().rev() {
        let tokens = estimator.total(estimator.text(text));
        if tokens > room {
            left_out += 1;
            continue;
        }
        room -= tokens;
        kept.push(text.clone());
    }
    if left_out > 0 {
        let transcript = &material.place.transcript;
        kept.push(format!(
            "[{left_out} more pinned texts are too long to be repeated here; they stand in {transcript}.]"
        ));
    }
    kept.reverse();
    kept
}

fn preserved(kept: &[VisibleEntry<'_>], cut: ConversationCut) -> Option<PreservedRange> {
    let is_entry = |shown: &&VisibleEntry<'_>| !matches!(shown.entry.body, EntryBody::Boundary(_));
    let head = kept.iter().find(is_entry)?.entry.id;
    let tail = kept.iter().rfind(is_entry)?.entry.id;
    let placement = match cut.summarizes {
        CutPart::Earlier => PreservedPlacement::AfterSummary,
        CutPart::Later => PreservedPlacement::BeforeSummary,
    };
    Some(PreservedRange { head, tail, placement, offset: None })
}

/// Returns true if a boundary can keep exactly the messages that a cut keeps: it names one range of the log,
/// and content hidden by an earlier boundary may lie in between.
pub(crate) fn can_keep(view: &View, conversation: &CuttableConversation<'_>, cut: ConversationCut) -> bool {
    // The content of an earlier boundary leads the kept messages: that must be the order now.
    if let Some(EntryBody::Boundary(earlier)) = view.boundary().map(|entry| &entry.body)
        && let Some(preserved) = &earlier.preserved
        && (preserved.placement == PreservedPlacement::BeforeSummary || !earlier.restored.blocks().is_empty())
    {
        return false;
    }
    let said = |shown: &VisibleEntry<'_>| {
        (!matches!(shown.entry.body, EntryBody::Boundary(_))).then_some(shown.entry.id)
    };
    let kept = conversation.parts(cut).1;
    let summary = [ContentBlock::text("probe")].into_iter().collect();
    let probe =
        Boundary { summary, preserved: preserved(kept, cut), lead: lead(view, cut), ..Boundary::default() };
    let after = view.with_boundary(&probe);
    after.visible_entries().filter_map(|shown| said(&shown)).eq(kept.iter().filter_map(said))
}

/// Content of the boundary in force, which stays before the messages kept before the summary.
fn lead(view: &View, cut: ConversationCut) -> Content {
    match (cut.summarizes, view.boundary().map(|entry| &entry.body)) {
        (CutPart::Later, Some(EntryBody::Boundary(boundary))) => {
            let contents = [&boundary.lead, &boundary.summary, &boundary.restored];
            contents.into_iter().flat_map(|content| content.blocks()).cloned().collect()
        }
        _ => Content::default(),
    }
}

fn turns(conversation: &CuttableConversation<'_>) -> u64 {
    conversation.shown[conversation.first..].iter().filter(|shown| shown.is_from_person()).count() as u64
}

/// Tools discovered so far: announced, named by the previous boundary, or called.
fn tools(view: &View, conversation: &CuttableConversation<'_>) -> BTreeSet<smol_str::SmolStr> {
    let mut tools: BTreeSet<smol_str::SmolStr> =
        view.state().announced.get("tools").cloned().unwrap_or_default();
    if let Some(EntryBody::Boundary(boundary)) = view.boundary().map(|entry| &entry.body) {
        tools.extend(boundary.tools.iter().cloned());
    }
    for shown in &conversation.shown {
        let EntryBody::Assistant(assistant) = &shown.entry.body else { continue };
        let calls = assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse);
        tools.extend(calls.filter_map(|block| block.string("name").map(smol_str::SmolStr::new)));
    }
    tools
}

/// State that the boundary carries; state voided by a compaction is left out (§4.14).
fn snapshot(
    material: &BoundaryInputs<'_>,
    how: SummaryMethod,
    carried: PriorUserMessages,
) -> SessionSnapshot {
    let state = material.view.state();
    let summary_failures = match (how.uses_model(), material.model_failed) {
        (true, _) => 0,
        (false, true) => state.summary_failures + 1,
        (false, false) => state.summary_failures,
    };
    // Announcements are behind the summary now and are made again. Skills are not: those in use are restored
    // whole.
    let mut announced = state.announced.clone();
    announced.retain(|what, _| what == "skills");
    SessionSnapshot {
        announced,
        latches: Default::default(),
        read_files: Default::default(),
        // Restored files are known again.
        seen_files: material.files.iter().filter_map(|file| file.seen.clone()).collect(),
        prefetched: Default::default(),
        summary_failures,
        user_messages: carried,
        ..state.clone()
    }
}
