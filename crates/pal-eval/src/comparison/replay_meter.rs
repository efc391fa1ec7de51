//! Measures one replay: the cost of each call, the content dropped before it, and the page faults.

use std::time::{Duration, Instant};

use crate::replay::{RecordedSession, ReplayError, ReplayOptions, ReplayReport, ReplayStep, replay_watched};
use pal_context::VisibleCall;
use pal_model::{ActivityStats, BlockType, ContentBlock, EntryBody, EntryId, Usage};
use pal_view::View;

use crate::comparison::file_touches::RecordedFileTouch;
use crate::comparison::loss_model::{CALLS, LossModel};
use crate::comparison::session_observation::{CompactionResidue, SessionObservation};
use crate::comparison::session_trace::SessionTrace;
use crate::comparison::trace_rates::TraceRates;
use crate::comparison::visible_content::VisibleContent;

/// Tokens by which a prompt may be shorter than expected without anything being dropped.
const NOISE: f64 = 500.0;

/// A replay, measured.
pub(crate) struct PolicyMeasurement {
    pub(crate) report: ReplayReport,
    /// The calls that were answered, by their number in the recording; those that were not are empty.
    pub(crate) seen: Vec<SessionObservation>,
    pub(crate) faults: u64,
    /// Of these, for results that were cleared or spilled.
    pub(crate) cleared_faults: u64,
    /// Characters of missing content.
    pub(crate) fault_characters: u64,
    /// Of these, read again within some calls after a compaction.
    pub(crate) again_characters: u64,
    /// Activity statistics of the session at each of its calls.
    pub(crate) rhythms: Vec<ActivityStats>,
    /// Compactions: the call that each precedes, and the text of the model.
    compactions: Vec<(usize, f64)>,
    /// Time that the whole replay took.
    pub(crate) took: Duration,
}

/// Replays a recording and measures it.
pub(crate) fn measure(
    recorded: &RecordedSession,
    touches: &[RecordedFileTouch],
    options: &ReplayOptions,
) -> Result<PolicyMeasurement, ReplayError> {
    measure_watched(recorded, touches, options, &mut || ())
}

/// Replays a recording and measures it; calls `answered` at each answer to a recorded request.
pub(crate) fn measure_watched(
    recorded: &RecordedSession,
    touches: &[RecordedFileTouch],
    options: &ReplayOptions,
    answered: &mut dyn FnMut(),
) -> Result<PolicyMeasurement, ReplayError> {
    let start = Instant::now();
    let mut meter = ReplayMeter { touches, ..ReplayMeter::default() };
    let report = replay_watched(recorded, options, &mut |step| {
        meter.watch(step);
        if step.is_answer {
            answered();
        }
    })?;
    Ok(PolicyMeasurement {
        report,
        seen: meter.seen,
        faults: meter.faults,
        cleared_faults: meter.cleared_faults,
        fault_characters: meter.fault_characters,
        again_characters: meter.again_characters,
        rhythms: meter.rhythms,
        compactions: meter.compactions,
        took: start.elapsed(),
    })
}

#[derive(Default)]
struct ReplayMeter<'a> {
    touches: &'a [RecordedFileTouch],
    seen: Vec<SessionObservation>,
    faults: u64,
    cleared_faults: u64,
    fault_characters: u64,
    again_characters: u64,
    rhythms: Vec<ActivityStats>,
    compactions: Vec<(usize, f64)>,
    boundary: Option<EntryId>,
    /// Tokens that requests beside the conversation were answered with since the last call.
    beside: f64,
}

impl ReplayMeter<'_> {
    fn watch(&mut self, step: &ReplayStep<'_>) {
        let Some(usage) = step.simulated else { return };
        if !step.is_answer {
            self.beside += usage.output_tokens as f64;
            return;
        }
        let Ok(call) = usize::try_from(step.call.saturating_sub(1)) else { return };
        let boundary = step.view.boundary().map(|entry| entry.id);
        if boundary != std::mem::replace(&mut self.boundary, boundary) {
            self.compactions.push((call, self.beside));
        }
        self.beside = 0.0;
        self.rhythms.push(step.view.state().activity.clone());
        self.see(call, step, usage);
        self.miss(call, step.view);
    }

    fn see(&mut self, call: usize, step: &ReplayStep<'_>, usage: &Usage) {
        let previous = self.seen.last().copied();
        self.seen.resize(call + 1, SessionObservation::default());
        let prompt = usage.prompt_tokens() as f64;
        let (clearable, results) = clearable(step.view);
        let grown = previous.map_or(prompt, |previous| prompt - previous.prompt);
        self.seen[call] = SessionObservation {
            started: step.started.milliseconds(),
            prompt,
            read: usage.cache_read_input_tokens as f64,
            output: usage.output_tokens as f64,
            waiting: (grown - previous.map_or(0.0, |previous| previous.output)).max(clearable).max(0.0),
            clearable,
            results,
            prefix: if call == 0 { before_messages(step.view, prompt) } else { 0.0 },
        };
    }

    fn miss(&mut self, call: usize, view: &View) {
        let from = self.touches.partition_point(|touch| touch.call < call);
        let touches = self.touches[from..].iter().take_while(|touch| touch.call == call);
        let mut sight = None;
        for touch in touches.filter(|touch| !touch.earlier.is_empty()) {
            let visible = sight.get_or_insert_with(|| VisibleContent::of(view));
            if visible.lacks(touch) {
                self.faults += 1;
                self.cleared_faults += u64::from(visible.has_cleared(touch));
                self.fault_characters += touch.characters;
                let is_soon = self.compactions.last().is_some_and(|(at, _)| call < at + CALLS);
                self.again_characters += if is_soon && touch.is_read { touch.characters } else { 0 };
            }
        }
    }
}

impl PolicyMeasurement {
    /// Cost of lost content in US dollars. The part missing from a prompt, if nothing else than what joined by the trace had
    /// changed it, was dropped: all that was said where the view began anew, else results, oldest first.
    pub(crate) fn loss_usd(&self, loss: &LossModel, trace: &SessionTrace, rates: &TraceRates) -> f64 {
        let mut sum = 0.0;
        let mut live: Vec<(f64, f64)> = Vec::with_capacity(trace.calls.len());
        for (at, call) in trace.calls.iter().enumerate() {
            let again = loss.of_token(rates, rates.write_5m, trace.calls.len() - 1 - at);
            let mut dropped = match (at.checked_sub(1).and_then(|at| self.seen.get(at)), self.seen.get(at)) {
                (Some(before), Some(now)) if before.prompt > 0.0 && now.prompt > 0.0 => {
                    before.prompt + call.grown - now.prompt
                }
                _ => 0.0,
            };
            if self.compactions.iter().any(|(compacted, _)| *compacted == at) {
                dropped = f64::INFINITY;
            }
            for is_result in [true, false] {
                for (number, (clearable, rest)) in live.iter_mut().enumerate() {
                    if dropped <= NOISE {
                        break;
                    }
                    let part = if is_result { &mut *clearable } else { &mut *rest };
                    let gone = part.min(dropped);
                    *part -= gone;
                    dropped -= gone;
                    sum += gone * loss.share(at - number) * again;
                }
            }
            live.push((call.clearable, call.grown - call.clearable));
        }
        sum
    }

    /// Sizes that its compactions left, given the trace of the same session.
    pub(crate) fn left<'a>(
        &'a self,
        whole: &'a [SessionObservation],
    ) -> impl Iterator<Item = CompactionResidue> + 'a {
        let prefix = whole.first().map_or(0.0, |first| first.prefix);
        self.compactions.iter().filter_map(move |(call, output)| {
            let (now, of_trace) = (self.seen.get(*call)?, whole.get(*call)?);
            let summary = now.prompt - prefix - of_trace.waiting;
            (now.prompt > 0.0 && *output > 0.0 && summary > 0.0).then_some(CompactionResidue {
                summary,
                output: *output,
                cached: now.read,
            })
        })
    }
}

/// Tokens of results that joined with the newest request and may be cleared later, and how many they are.
fn clearable(view: &View) -> (f64, usize) {
    let is_request =
        |body: &EntryBody| matches!(body, EntryBody::Request(request) if request.source.is_conversation());
    let newest = view.branch().iter().rev().skip_while(|entry| !is_request(&entry.body)).skip(1);
    let (mut tokens, mut count) = (0.0, 0);
    for entry in newest.take_while(|entry| !is_request(&entry.body)) {
        let EntryBody::User(user) = &entry.body else { continue };
        let is_result = |block: &&ContentBlock| block.kind() == BlockType::ToolResult;
        for id in user.content.blocks().iter().filter(is_result).filter_map(ContentBlock::tool_use_id) {
            let is_known =
                view.call_block(id).and_then(VisibleCall::read).is_some_and(|call| call.kind.is_some());
            if let Some(result) = view.result(id).filter(|_| is_known) {
                tokens += result.tokens;
                count += 1;
            }
        }
    }
    (view.estimator().total(tokens) as f64, count)
}

/// Tokens of a first prompt before its messages.
fn before_messages(view: &View, prompt: f64) -> f64 {
    let said: f64 = view.visible_entries().map(|shown| shown.tokens).sum();
    (prompt - view.estimator().total(said) as f64).max(0.0)
}
