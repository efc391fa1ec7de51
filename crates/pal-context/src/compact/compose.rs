//! From a summary to a boundary: audit, pins, restoration, and the check that it is worth it.

use std::collections::BTreeSet;

use pal_extract::Facts;
use pal_model::{Audit, Block, BlockType, Body, Boundary, Carried, Content, Placement, Preserved, Snapshot};
use pal_view::{Limits, Shown, ShownPart, View};

use super::audit::{self, AuditBudgets, AuditInput};
use super::cut::{Conversation, Cut, Part};
use super::order::{FileRead, How, Order, Trigger};
use super::{prompt, restore};
use crate::{Budgets, Place};

/// Tokens for repairs and for the user's words.
const REPAIRS: u64 = 4_000;
const USER_WORDS: u64 = 12_000;
/// Percent of the threshold that a compaction aims to stay under: less room would soon call for the next one.
const AIM_PERCENT: u64 = 70;

/// A summary as it came.
#[derive(Clone, Debug)]
pub(crate) enum Summary {
    /// Words of a model or of notes.
    Text(String),
    /// The provider's own block.
    Provider(Block),
    /// To be drawn from the log, within this many bytes.
    Extracted { room: usize },
}

/// What a boundary is made from.
pub(crate) struct Material<'a> {
    pub(crate) view: &'a View,
    pub(crate) conversation: &'a Conversation<'a>,
    pub(crate) order: &'a Order,
    pub(crate) limits: &'a Limits,
    pub(crate) place: &'a Place,
    pub(crate) files: &'a [FileRead],
    pub(crate) model_failed: bool,
}

/// How much is put into a boundary.
#[derive(Clone, Copy)]
struct Generosity {
    keeps_tail: bool,
    restores: bool,
    /// Share of the budgets, in percent.
    percent: u64,
}

/// The boundary of a compaction, or why it is no use. What fits only just is made leaner first.
pub(crate) fn compose(
    material: &Material<'_>,
    cut: Cut,
    how: How,
    summary: &Summary,
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
    if after >= threshold {
        return Err(format!("{after} tokens after it would still be over the threshold of {threshold}"));
    }
    if after >= before {
        return Err(format!("{after} tokens after it would be no less than the {before} before"));
    }
    Ok(boundary)
}

fn generosities(order: &Order, cut: Cut, summary: &Summary) -> Vec<Generosity> {
    let full = Generosity { keeps_tail: true, restores: true, percent: 100 };
    let mut list = vec![full, Generosity { restores: false, ..full }];
    // What the user chose to keep is kept.
    let may_drop_tail = matches!(order.reach, super::Reach::Whole) && cut.summarises == Part::Earlier;
    if may_drop_tail {
        list.push(Generosity { keeps_tail: false, restores: false, percent: 100 });
    }
    if matches!(summary, Summary::Extracted { .. }) {
        let keeps_tail = !may_drop_tail;
        list.extend([50, 25, 10, 3].map(|percent| Generosity { keeps_tail, restores: false, percent }));
    }
    list
}

fn compose_with(
    material: &Material<'_>,
    cut: Cut,
    how: How,
    summary: &Summary,
    generosity: Generosity,
) -> Option<Boundary> {
    let Material { view, conversation, order, limits, .. } = material;
    let cut = if generosity.keeps_tail { cut } else { Cut { at: conversation.shown.len(), ..cut } };
    let (summarised, kept) = conversation.parts(cut);
    let facts = Facts::of_entries(said(summarised));
    if facts.messages == 0 {
        return None;
    }
    let (text, block) = match summary {
        Summary::Text(text) => (text.clone(), None),
        Summary::Extracted { room } => {
            let room = room * generosity.percent as usize / 100;
            (pal_extract::summary(&facts, room), None)
        }
        Summary::Provider(block) => (block.string("content").unwrap_or_default().into_owned(), Some(block)),
    };
    let (repairs, audit, carried) = audited(material, &facts, kept, &text, generosity);
    let message = prompt::summary_message(&prompt::SummaryMessage {
        summary: if block.is_some() { None } else { Some(&text) },
        repairs: &repairs,
        pins: &pins(material),
        transcript: &material.place.transcript,
        goes_on: order.trigger != Trigger::Manual,
        is_attended: order.is_attended,
    });
    let summary: Content = block.cloned().into_iter().chain([Block::text(&message)]).collect();
    let mut boundary = Boundary {
        trigger: order.trigger.name().into(),
        how: how.name().into(),
        summary,
        messages_summarised: Some(facts.messages as u64),
        preserved: preserved(kept, cut),
        instructions: order.instructions.clone(),
        lead: lead(view, cut),
        last_before: view.newest(),
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
        let budgets = Budgets::new(limits);
        boundary.restored =
            restore::blocks(view, material.files, &order.world, budgets, room).into_iter().collect();
        if !boundary.restored.blocks().is_empty() {
            after = view.with_boundary(&boundary).size().tokens;
        }
    }
    boundary.tokens_after = Some(after);
    Some(boundary)
}

fn said<'a>(shown: &[Shown<'a>]) -> impl Iterator<Item = &'a pal_model::Entry> {
    shown.iter().filter(|shown| shown.part == ShownPart::Said).map(|shown| shown.entry)
}

fn audited(
    material: &Material<'_>,
    facts: &Facts,
    kept: &[Shown<'_>],
    summary: &str,
    generosity: Generosity,
) -> (String, Audit, Carried) {
    let budgets = Budgets::new(material.limits);
    let estimator = material.view.estimator();
    let share = |tokens: u64| budgets.of(tokens) * generosity.percent / 100;
    // As the model sees them: of a paste that was spilled only the preview is in sight.
    let is_kept = |shown: &Shown<'_>| kept.iter().any(|kept| kept.entry.id == shown.entry.id);
    let seen = material.view.seen().filter(|(shown, _)| is_kept(shown));
    let kept: Vec<String> = seen.flat_map(|(_, blocks)| texts(&blocks)).collect();
    let lines = || material.conversation.shown.iter().map(|shown| shown.entry.line.as_bytes());
    let audited = audit::audit(&AuditInput {
        facts,
        carried: &material.view.state().carried,
        kept: &kept.iter().map(String::as_str).collect::<Vec<_>>(),
        summary,
        budgets: AuditBudgets { repair_tokens: share(REPAIRS), user_tokens: share(USER_WORDS) },
        estimate: &|text| estimator.total(estimator.text(text)),
        transcript: &material.place.transcript,
        seen: &|path| lines().any(|line| memchr::memmem::find(line, path.as_bytes()).is_some()),
    });
    (audited.repairs, audited.audit, audited.carried)
}

/// The texts among blocks.
fn texts(blocks: &[Block]) -> Vec<String> {
    blocks.iter().filter_map(|block| block.string("text").map(|text| text.into_owned())).collect()
}

/// Pinned texts, newest first as far as their budget goes, then in the order in which they were pinned.
fn pins(material: &Material<'_>) -> Vec<String> {
    let estimator = material.view.estimator();
    let mut room = Budgets::new(material.limits).pins();
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

fn preserved(kept: &[Shown<'_>], cut: Cut) -> Option<Preserved> {
    let is_entry = |shown: &&Shown<'_>| !matches!(shown.entry.body, Body::Boundary(_));
    let head = kept.iter().find(is_entry)?.entry.id;
    let tail = kept.iter().rfind(is_entry)?.entry.id;
    let placement = match cut.summarises {
        Part::Earlier => Placement::AfterSummary,
        Part::Later => Placement::BeforeSummary,
    };
    Some(Preserved { head, tail, placement, offset: None })
}

/// Whether a boundary can keep exactly what a cut keeps: it names one stretch of the log, and what an earlier boundary
/// hid may lie in between.
pub(crate) fn can_keep(view: &View, conversation: &Conversation<'_>, cut: Cut) -> bool {
    // What an earlier boundary shows leads what is kept: that must be how it stands now.
    if let Some(Body::Boundary(earlier)) = view.boundary().map(|entry| &entry.body)
        && let Some(preserved) = &earlier.preserved
        && (preserved.placement == Placement::BeforeSummary || !earlier.restored.blocks().is_empty())
    {
        return false;
    }
    let said = |shown: &Shown<'_>| (!matches!(shown.entry.body, Body::Boundary(_))).then_some(shown.entry.id);
    let kept = conversation.parts(cut).1;
    let summary = [Block::text("probe")].into_iter().collect();
    let probe =
        Boundary { summary, preserved: preserved(kept, cut), lead: lead(view, cut), ..Boundary::default() };
    let after = view.with_boundary(&probe);
    after.shown().filter_map(|shown| said(&shown)).eq(kept.iter().filter_map(said))
}

/// What the boundary in force shows stays before the messages that stay before the summary.
fn lead(view: &View, cut: Cut) -> Content {
    match (cut.summarises, view.boundary().map(|entry| &entry.body)) {
        (Part::Later, Some(Body::Boundary(boundary))) => {
            let contents = [&boundary.lead, &boundary.summary, &boundary.restored];
            contents.into_iter().flat_map(|content| content.blocks()).cloned().collect()
        }
        _ => Content::default(),
    }
}

fn turns(conversation: &Conversation<'_>) -> u64 {
    conversation.shown[conversation.first..].iter().filter(|shown| shown.is_of_a_person()).count() as u64
}

/// Tools that were discovered so far: announced, named by the boundary before, or called.
fn tools(view: &View, conversation: &Conversation<'_>) -> BTreeSet<smol_str::SmolStr> {
    let mut tools: BTreeSet<smol_str::SmolStr> =
        view.state().announced.get("tools").cloned().unwrap_or_default();
    if let Some(Body::Boundary(boundary)) = view.boundary().map(|entry| &entry.body) {
        tools.extend(boundary.tools.iter().cloned());
    }
    for shown in &conversation.shown {
        let Body::Assistant(assistant) = &shown.entry.body else { continue };
        let calls = assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse);
        tools.extend(calls.filter_map(|block| block.string("name").map(smol_str::SmolStr::new)));
    }
    tools
}

/// The state that the boundary carries: what a compaction makes void is left out (§4.14).
fn snapshot(material: &Material<'_>, how: How, carried: Carried) -> Snapshot {
    let state = material.view.state();
    let summary_failures = match (how.asks_a_model(), material.model_failed) {
        (true, _) => 0,
        (false, true) => state.summary_failures + 1,
        (false, false) => state.summary_failures,
    };
    // What was announced is behind the summary now and is announced again, from what there is then. Skills are not: the
    // ones in use are put back whole.
    let mut announced = state.announced.clone();
    announced.retain(|what, _| what == "skills");
    Snapshot {
        announced,
        latches: Default::default(),
        read_files: Default::default(),
        // What is put back into sight is known again.
        seen_files: material.files.iter().filter_map(|file| file.seen.clone()).collect(),
        prefetched: Default::default(),
        summary_failures,
        carried,
        ..state.clone()
    }
}
