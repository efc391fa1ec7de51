//! Builds a boundary from a summary: audit, pins, restored content, and the check that it saves enough.

use std::collections::{BTreeMap, BTreeSet};

use pal_extract::ConversationFacts;
use pal_model::text::group_digits;
use pal_model::{
    BlockType, Boundary, Content, ContentBlock, EntryBody, KnownFile, PreservedPlacement, PreservedRange,
    PriorUserMessages, SessionSnapshot, SummaryAudit,
};
use pal_view::{CorrectionFactor, View, VisibleEntry, VisiblePart, WindowLimits};

use super::audit::{self, AuditBudgets, AuditInput};
use super::compaction_request::{CompactionRequest, CompactionTrigger, RestoredFile, SummaryMethod};
use super::conversation_cut::{ConversationCut, CutPart, CuttableConversation};
use super::restoration::RestoredFiles;
use super::summary_budgets::{REPAIRS, USER_WORDS};
use super::{restoration, restored_lines, summary_prompt};
use crate::{SessionPaths, WindowBudgets};

/// Target size after a compaction, as percent of the threshold: a larger context would soon be compacted
/// again.
const AIM_PERCENT: u64 = 78;

/// Minimum tokens for the user's words.
const LAST_WORDS_MIN: u64 = 100;

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
    pub(crate) restored: &'a RestoredFiles,
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

/// Sizes that a compaction is measured by, all counted by the estimator that was measured on the context before.
struct SizeGoals {
    threshold: u64,
    aim: u64,
    before: u64,
}

impl SizeGoals {
    fn of(material: &BoundaryInputs<'_>) -> SizeGoals {
        let threshold = material.limits.auto_compact.unwrap_or(material.limits.effective);
        let view = material.view;
        let reported = view.size().tokens;
        let before = match material.order.trigger {
            // By hand it is what the user asked for, even if a short conversation gets longer by it.
            CompactionTrigger::Manual => u64::MAX,
            // No estimate explains such a report, and only a boundary makes the session forget it.
            _ if view.measured_factor() == CorrectionFactor::MAX => reported,
            _ => view.size_by(&view.measured_estimator()).min(reported),
        };
        SizeGoals { threshold, aim: threshold * AIM_PERCENT / 100, before }
    }

    fn meets_aim(&self, boundary: &Boundary) -> bool {
        boundary.tokens_after.is_some_and(|after| after < self.aim.min(self.before))
    }

    fn is_below_threshold(&self, boundary: &Boundary) -> bool {
        boundary.tokens_after.is_some_and(|after| after < self.threshold)
    }
}

/// Builds the boundary of a compaction, or returns the reason why it is of no use. Leaner variants are tried
/// until one meets the target size; the kept messages are dropped only if nothing else gets below the threshold.
pub(crate) fn compose(
    material: &BoundaryInputs<'_>,
    cut: ConversationCut,
    how: SummaryMethod,
    summary: &SummarySource,
) -> Result<Boundary, String> {
    let goals = SizeGoals::of(material);
    let mut best: Option<Boundary> = None;
    for variants in variants(material.order, cut, summary) {
        for variant in variants {
            let Some(boundary) = compose_with(material, cut, how, summary, variant) else { continue };
            let is_done = goals.meets_aim(&boundary);
            if best.as_ref().is_none_or(|best| best.tokens_after > boundary.tokens_after) {
                best = Some(boundary);
            }
            if is_done {
                break;
            }
        }
        if best.as_ref().is_some_and(|best| goals.is_below_threshold(best)) {
            break;
        }
    }
    let boundary = best.ok_or_else(|| String::from("there is nothing to summarise"))?;
    let after = boundary.tokens_after.unwrap_or(u64::MAX);
    // After a refusal everything that makes the request shorter is a step forward.
    if after >= goals.threshold && material.order.trigger != CompactionTrigger::Reactive {
        return Err(format!(
            "{} tokens after it would still be over the threshold of {}",
            group_digits(after),
            group_digits(goals.threshold)
        ));
    }
    if after >= goals.before {
        return Err(format!(
            "{} tokens after it would be no less than the {} before",
            group_digits(after),
            group_digits(goals.before)
        ));
    }
    Ok(boundary)
}

/// Variants to try, the richest first: with the kept messages, then without.
fn variants(
    order: &CompactionRequest,
    cut: ConversationCut,
    summary: &SummarySource,
) -> [Vec<BoundaryVariant>; 2] {
    let full = BoundaryVariant { keeps_tail: true, restores: true, percent: 100 };
    let lean = BoundaryVariant { restores: false, ..full };
    let SummarySource::Extracted { .. } = summary else {
        // The summary does not cover the kept messages.
        return [vec![full, lean], Vec::new()];
    };
    let leaner = |keeps_tail: bool| {
        let percents: &[u64] = match order.trigger {
            CompactionTrigger::Reactive => &[50, 25, 10, 3, 0],
            CompactionTrigger::Auto
            | CompactionTrigger::Manual
            | CompactionTrigger::Model
            | CompactionTrigger::Idle => &[50, 25, 10, 3],
        };
        percents.iter().map(move |percent| BoundaryVariant { keeps_tail, percent: *percent, ..lean })
    };
    let with_tail = [full, lean].into_iter().chain(leaner(true)).collect();
    // A range chosen by the user is kept.
    let may_drop_tail =
        matches!(order.range, super::CompactionRange::Whole) && cut.summarizes == CutPart::Earlier;
    let without_tail = [BoundaryVariant { keeps_tail: false, ..lean }].into_iter().chain(leaner(false));
    [with_tail, without_tail.filter(|_| may_drop_tail).collect()]
}

fn compose_with(
    material: &BoundaryInputs<'_>,
    cut: ConversationCut,
    how: SummaryMethod,
    summary: &SummarySource,
    variant: BoundaryVariant,
) -> Option<Boundary> {
    let BoundaryInputs { view, conversation, order, limits, .. } = material;
    let cut = if variant.keeps_tail { cut } else { ConversationCut { at: conversation.shown.len(), ..cut } };
    let (summarised, kept) = conversation.parts(cut);
    let facts = ConversationFacts::from_entries(conversation_entries(summarised));
    let can_shorten = order.trigger == CompactionTrigger::Reactive && !facts.earlier_summaries.is_empty();
    if facts.message_count == 0 && !can_shorten {
        return None;
    }
    let (text, block) = match summary {
        SummarySource::Text(text) => (text.clone(), None),
        SummarySource::Extracted { room } => {
            let room = room * variant.percent as usize / 100;
            (pal_extract::extractive_summary(&facts, room), None)
        }
        SummarySource::Provider(block) => {
            (block.string("content").unwrap_or_default().into_owned(), Some(block))
        }
    };
    let (repairs, mut audit, carried) = audited(material, &facts, kept, &text, variant);
    // The earlier summary stays visible, and with it what it invented.
    if let Some(earlier) = previous_audit(view).filter(|_| cut.summarizes == CutPart::Later) {
        extend_missing(&mut audit.invented, &earlier.invented);
        extend_missing(&mut audit.invented_words, &earlier.invented_words);
    }
    let message = summary_prompt::summary_message(&summary_prompt::SummaryMessage {
        summary: if block.is_some() { None } else { Some(&text) },
        repairs: &repairs,
        pins: &pins(material),
        transcript: &material.place.transcript,
        // In both cases the user speaks next.
        goes_on: !matches!(order.trigger, CompactionTrigger::Manual | CompactionTrigger::Idle),
        is_attended: order.is_attended,
    });
    let summary: Content = block.cloned().into_iter().chain([ContentBlock::text(&message)]).collect();
    let mut boundary = Boundary {
        trigger: order.trigger.name().into(),
        reason: order.reason.clone(),
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
        snapshot: snapshot(material, kept, how, carried),
        tokens_before: Some(view.size().tokens),
        ..Boundary::default()
    };
    let mut after = view.with_boundary(&boundary);
    if variant.restores {
        let size = after.size().tokens;
        let estimator = after.estimator();
        let budgets = WindowBudgets::new(limits);
        boundary.restored = restoration::blocks(
            estimator,
            material.restored,
            &order.sources,
            budgets,
            restored_room(limits, size),
        )
        .into_iter()
        .collect();
        if !boundary.restored.blocks().is_empty() {
            after = view.with_boundary(&boundary);
        }
        let room = restored_room(limits, after.size().tokens);
        let tokens = budgets.scale(material.restored.line_tokens).min(room);
        // What the provider refused as too long gets nothing that it can do without.
        let has_lines = order.trigger != CompactionTrigger::Reactive;
        if has_lines && let Some(lines) = restored_lines::block(view, summarised, &after, tokens) {
            boundary.restored = boundary.restored.blocks().iter().cloned().chain([lines]).collect();
            after = view.with_boundary(&boundary);
        }
    }
    boundary.tokens_after = Some(after.size().tokens);
    Some(boundary)
}

/// Room for restored content beside a context of `size` tokens: up to the target size, less the frames of the blocks,
/// and at most half of what is left below the threshold.
fn restored_room(limits: &WindowLimits, size: u64) -> u64 {
    const FRAMES_PERCENT: u64 = 1;
    let threshold = limits.auto_compact.unwrap_or(limits.effective);
    let aim = threshold * (AIM_PERCENT - FRAMES_PERCENT) / 100;
    aim.saturating_sub(size).min(threshold.saturating_sub(size) / 2)
}

fn conversation_entries<'a>(shown: &[VisibleEntry<'a>]) -> impl Iterator<Item = &'a pal_model::LogEntry> {
    shown.iter().filter(|shown| shown.part == VisiblePart::Content).map(|shown| shown.entry)
}

fn audited(
    material: &BoundaryInputs<'_>,
    facts: &ConversationFacts,
    kept: &[VisibleEntry<'_>],
    summary: &str,
    variant: BoundaryVariant,
) -> (String, SummaryAudit, PriorUserMessages) {
    let budgets = WindowBudgets::new(material.limits);
    let estimator = material.view.estimator();
    let share = |tokens: u64| budgets.scale(tokens) * variant.percent / 100;
    // As the model sees them: a spilled paste counts only by its preview.
    let is_kept = |shown: &VisibleEntry<'_>| kept.iter().any(|kept| kept.entry.id == shown.entry.id);
    let seen = material.view.visible_blocks().filter(|(shown, _)| is_kept(shown));
    let kept: Vec<String> = seen.flat_map(|(_, blocks)| texts(&blocks)).collect();
    let lines = || material.conversation.shown.iter().map(|shown| shown.entry.line.as_bytes());
    // Notes name paths from before the newest boundary. What models wrote there is no evidence.
    let earlier = || {
        let entries = material.view.branch().iter();
        entries.filter(|entry| matches!(entry.body, EntryBody::User(_))).map(|entry| entry.line.as_bytes())
    };
    // The preview of a spilled result names a file that no message does.
    let previews: Vec<&str> = material.view.branch().iter().filter_map(spill_preview).collect();
    let is_spilled = |part: &str| previews.iter().any(|text| text.contains(part));
    let evidence = || material.conversation.shown.iter().flat_map(|shown| evidence(shown.entry));
    let has = |text: &[u8], part: &str| memchr::memmem::find(text, part.as_bytes()).is_some();
    let audited = audit::audit(&AuditInput {
        facts,
        carried: &material.view.state().user_messages,
        kept: &kept.iter().map(String::as_str).collect::<Vec<_>>(),
        summary,
        budgets: AuditBudgets {
            repair_tokens: share(REPAIRS),
            // However little fits, the user's last words are what the next answer is about.
            user_tokens: share(USER_WORDS).max(LAST_WORDS_MIN),
        },
        estimate: &|text| estimator.total(estimator.text(text)),
        transcript: &material.place.transcript,
        seen: &|part| lines().chain(earlier()).any(|line| has(line, part)) || is_spilled(part),
        confirmed: &|part| evidence().any(|block| has(block.raw().as_bytes(), part)) || is_spilled(part),
        previous: previous_audit(material.view),
    });
    (audited.repairs, audited.audit, audited.carried)
}

fn extend_missing(list: &mut Vec<String>, others: &[String]) {
    let missing: Vec<String> = others.iter().filter(|other| !list.contains(other)).cloned().collect();
    list.extend(missing);
}

/// Text that stands for a spilled result or paste.
fn spill_preview(entry: &pal_model::LogEntry) -> Option<&str> {
    match entry.decision()? {
        pal_model::DecisionKind::Spill { text, .. } => Some(text),
        _ => None,
    }
}

/// Audit of the summary in force.
fn previous_audit(view: &View) -> Option<&SummaryAudit> {
    match view.boundary().map(|entry| &entry.body) {
        Some(EntryBody::Boundary(boundary)) => boundary.audit.as_ref(),
        _ => None,
    }
}

/// Blocks that no model wrote: successful tool results and restored files.
fn evidence(entry: &pal_model::LogEntry) -> Vec<&ContentBlock> {
    let is_done = |block: &&ContentBlock| {
        block.kind() == BlockType::ToolResult && block.field("is_error") != Some("true")
    };
    match &entry.body {
        EntryBody::User(user) => user.content.blocks().iter().filter(is_done).collect(),
        EntryBody::Boundary(boundary) => boundary.restored.blocks().iter().collect(),
        _ => Vec::new(),
    }
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
    kept: &[VisibleEntry<'_>],
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
    // The next size is an estimate again: it is counted as the last measurement says.
    let mut factors = state.factors.clone();
    let view = material.view;
    factors.insert(view.lens().card.generation.name().into(), view.measured_factor().into());
    SessionSnapshot {
        factors,
        announced,
        latches: Default::default(),
        read_files: Default::default(),
        seen_files: seen_files(material.restored.files(), kept),
        prefetched: Default::default(),
        summary_failures,
        user_messages: carried,
        ..state.clone()
    }
}

/// Files that the model still sees: those of kept messages, and restored ones.
fn seen_files(restored: &[RestoredFile], kept: &[VisibleEntry<'_>]) -> BTreeMap<String, KnownFile> {
    let of_message = |shown: &VisibleEntry<'_>| match &shown.entry.body {
        EntryBody::User(user) => user.tool_effects.files.clone(),
        _ => BTreeMap::new(),
    };
    let mut files: BTreeMap<String, KnownFile> = kept.iter().flat_map(of_message).collect();
    files.extend(restored.iter().filter_map(|file| file.seen.clone()));
    files
}
