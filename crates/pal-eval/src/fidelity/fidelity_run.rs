//! Measures the compactions of recorded sessions, ours at the same points, and those of policies in replays.

use pal_context::cost_aware::CostAwareSettings;
use pal_context::{ContextPolicy, RestorationBudget, SessionNotes};
use pal_model::{Boundary, EntryBody, EntryId, LogEntry, ModelCard, ModelCatalog};
use pal_view::{View, WindowLimits, WindowSettings};

use crate::comparison::{EvalProgress, PolicyRow, RecordedFileTouch, find_touches, run_on_all_cores};
use crate::fidelity::compaction_figures::{CompactionFigures, CompactionPoint, EXTRACTED, NOTES};
use crate::fidelity::fidelity_report::{FidelityReport, RereadBaseline};
use crate::fidelity::next_use::{NEXT_CALLS, count_calls};
use crate::fidelity::own_compaction::{OwnCompaction, content_tokens, summary_of_size};
use crate::replay::{
    RecordedSession, ReplayOptions, ReplayPolicy, extracted_notes, replay_lens, replay_watched,
};

/// Share of a summary's tokens for lines in use where ours has the size of a client's.
const LINES_PERCENT: u64 = 40;

/// What to measure beside the recorded compactions.
#[derive(Clone, Debug)]
pub struct FidelityPlan {
    /// Policies to replay.
    pub rows: Vec<&'static PolicyRow>,
    /// Window of the replays.
    pub window: u64,
    /// The cards of all models.
    pub cards: ModelCatalog,
}

/// Measures sessions, which are read by their number.
pub fn run_fidelity(
    plan: &FidelityPlan,
    count: usize,
    read: &(dyn Fn(usize) -> Result<RecordedSession, String> + Sync),
    progress: &mut dyn FnMut(EvalProgress),
) -> FidelityReport {
    progress(EvalProgress { done: 0, count });
    let mut done = 0;
    let results = run_on_all_cores(count, &|at| measure_session(plan, &read(at)?), &mut |_| {
        done += 1;
        progress(EvalProgress { done, count });
    });
    let (mut figures, mut baseline, mut failures) = (Vec::new(), RereadBaseline::default(), Vec::new());
    let mut sessions = 0;
    for result in results {
        match result {
            Ok((found, rereads)) => {
                sessions += 1;
                figures.extend(found);
                baseline.absorb(rereads);
            }
            Err(failure) => failures.push(failure),
        }
    }
    FidelityReport::new(sessions, figures, baseline, failures)
}

fn measure_session(
    plan: &FidelityPlan,
    recorded: &RecordedSession,
) -> Result<(Vec<CompactionFigures>, RereadBaseline), String> {
    let touches = find_touches(recorded.entries());
    let mut figures = measure_recorded(plan, recorded, &touches);
    for row in &plan.rows {
        figures.extend(measure_replayed(plan, row, recorded, &touches)?);
    }
    Ok((figures, reread_baseline(recorded.entries(), &touches)))
}

/// The recorded client's own compactions, and ours at the same points.
fn measure_recorded(
    plan: &FidelityPlan,
    recorded: &RecordedSession,
    touches: &[RecordedFileTouch],
) -> Vec<CompactionFigures> {
    let entries = recorded.entries();
    let client = client_name(entries);
    let mut found = Vec::new();
    for at in summarized_at(entries) {
        let model = recorded.model_before(at).unwrap_or_default();
        let card = plan.cards.find(&model).card;
        let lens = replay_lens(&card, ReplayPolicy::None);
        let (Some(earlier), Some(EntryBody::Boundary(boundary))) =
            (entries.get(..at), entries.get(at).map(|entry| &entry.body))
        else {
            continue;
        };
        let before = View::from_branch(lens, earlier.iter().cloned());
        let point = CompactionPoint::new(recorded.name(), entries, touches, at, &before);
        if !point.goes_on() {
            continue;
        }
        found.extend(measure_point(&point, &before, boundary, &client, &card, earlier));
    }
    found
}

/// A recorded compaction, and ours in its place.
fn measure_point(
    point: &CompactionPoint<'_>,
    before: &View,
    boundary: &Boundary,
    client: &str,
    card: &ModelCard,
    earlier: &[LogEntry],
) -> Vec<CompactionFigures> {
    let limits = WindowLimits::new(card, &WindowSettings::STANDARD);
    let shipped = ContextPolicy::cost_aware(CostAwareSettings::STANDARD);
    let compact = |restoration: RestorationBudget, line_tokens: u64, notes: Option<SessionNotes>| {
        let policy = ContextPolicy { restoration, restored_line_tokens: line_tokens, ..shipped.clone() };
        OwnCompaction { policy: &policy, limits: &limits, notes, entries: earlier }.boundary(before)
    };
    let no_files = RestorationBudget { files: 0, ..RestorationBudget::STANDARD };
    let mut found = Vec::new();
    let mut measure = |maker: String, boundary: &Boundary| {
        found.push(point.figures(&maker, &before.with_boundary(boundary)));
    };
    measure(format!("{client}: summary"), boundary);
    // Ours in as many tokens as theirs, summary and lines in use.
    let size = content_tokens(&boundary.summary, before.estimator());
    let line_tokens = size * LINES_PERCENT / 100;
    let Some(lines) = compact(no_files, line_tokens, None).map(|ours| ours.restored) else { return found };
    let line_tokens = content_tokens(&lines, before.estimator());
    let summary = summary_of_size(before, size.saturating_sub(line_tokens));
    let same_size = Boundary { summary, restored: lines, ..boundary.clone() };
    measure(format!("{EXTRACTED}, {client}: summary of the same size"), &same_size);
    // Transcripts do not hold the files that a client restores.
    if let Some(restoring) = compact(RestorationBudget::STANDARD, 0, None) {
        let theirs = Boundary { restored: restoring.restored, ..boundary.clone() };
        measure(format!("{client}: summary and 5 files, assumed"), &theirs);
        let tokens = content_tokens(&theirs.restored, before.estimator());
        let budget = RestorationBudget { tokens, ..shipped.restoration };
        if let Some(ours) = compact(budget, 0, None) {
            let restored =
                ours.restored.blocks().iter().chain(same_size.restored.blocks()).cloned().collect();
            let same_size = Boundary { restored, ..same_size };
            measure(format!("{EXTRACTED}, {client}: summary and files of the same size"), &same_size);
        }
    }
    let line_tokens = shipped.restored_line_tokens;
    if let Some(ours) = compact(shipped.restoration, line_tokens, None) {
        measure(format!("{EXTRACTED}, {client}: as shipped"), &ours);
    }
    if let Some(notes) = extracted_notes(before)
        && let Some(ours) = compact(shipped.restoration, line_tokens, Some(notes))
    {
        measure(format!("{NOTES}, {client}: as shipped"), &ours);
    }
    found
}

/// Compactions of a policy in a replay.
fn measure_replayed(
    plan: &FidelityPlan,
    row: &PolicyRow,
    recorded: &RecordedSession,
    touches: &[RecordedFileTouch],
) -> Result<Vec<CompactionFigures>, String> {
    let base =
        ReplayOptions { cards: plan.cards.clone(), window: Some(plan.window), ..ReplayOptions::plain() };
    let entries = recorded.entries();
    // Where each call stands in the recording.
    let is_call = |(_, entry): &(usize, &LogEntry)| matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation());
    let calls: Vec<usize> = entries.iter().enumerate().filter(is_call).map(|(at, _)| at).collect();
    let mut newest: Option<EntryId> = None;
    let mut found = Vec::new();
    let options = row.options(&base);
    replay_watched(recorded, &options, &mut |step| {
        let Some(boundary) = step.view.boundary().filter(|_| step.is_answer) else { return };
        if newest.replace(boundary.id) == Some(boundary.id) {
            return;
        }
        let branch = step.view.branch();
        let place = branch.iter().rposition(|entry| entry.id == boundary.id);
        let at = usize::try_from(step.call).ok().and_then(|call| calls.get(call.checked_sub(1)?));
        let (Some(place), Some(at)) = (place, at) else { return };
        let before = View::from_branch(step.view.lens().clone(), branch[..place].iter().cloned());
        let point = CompactionPoint::new(recorded.name(), entries, touches, *at, &before);
        let after = View::from_branch(step.view.lens().clone(), branch[..=place].iter().cloned());
        found.push(point.figures(row.name, &after));
    })
    .map_err(|error| format!("{}: {error}", recorded.name()))?;
    Ok(found)
}

/// Positions of the boundaries with a summary.
fn summarized_at(entries: &[LogEntry]) -> Vec<usize> {
    let is_meant = |(_, entry): &(usize, &LogEntry)| matches!(&entry.body, EntryBody::Boundary(boundary) if boundary.has_summary());
    entries.iter().enumerate().filter(is_meant).map(|(at, _)| at).collect()
}

/// Name of the program that recorded a session.
fn client_name(entries: &[LogEntry]) -> String {
    let program = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Session(session) => Some(session.program.clone()),
        _ => None,
    });
    program.filter(|program| !program.is_empty()).unwrap_or_else(|| String::from("the client"))
}

/// Reads of content that was shown before, in calls that no compaction precedes closely.
fn reread_baseline(entries: &[LogEntry], touches: &[RecordedFileTouch]) -> RereadBaseline {
    let compacted: Vec<usize> =
        summarized_at(entries).into_iter().map(|at| count_calls(&entries[..at])).collect();
    let is_after = |call: usize| compacted.iter().any(|at| (*at..at + NEXT_CALLS).contains(&call));
    let calls = (0..count_calls(entries)).filter(|call| !is_after(*call)).count() as u64;
    let rereads =
        touches.iter().filter(|touch| touch.is_read && !touch.earlier.is_empty() && !is_after(touch.call));
    RereadBaseline { calls, characters: rereads.map(|touch| touch.characters).sum() }
}
