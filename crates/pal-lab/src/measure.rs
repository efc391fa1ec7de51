//! One replay, measured: what every call took, what was dropped before it, which content was missing.

use std::time::{Duration, Instant};

use pal_context::Call;
use pal_model::{Block, BlockType, Body, EntryId, Rhythm, Usage};
use pal_replay::{Options, Recorded, ReplayError, Report, Step, replay_watched};
use pal_view::View;

use crate::loss::{CALLS, Loss};
use crate::sight::Sight;
use crate::touches::Touch;
use crate::trace::{Left, Rates, Trace};

/// Tokens by which a prompt may be shorter than expected without anything being dropped.
const NOISE: f64 = 500.0;

/// A call as the provider counted it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) started: i64,
    pub(crate) prompt: f64,
    pub(crate) read: f64,
    pub(crate) output: f64,
    /// Tokens that joined and are no answer.
    pub(crate) waiting: f64,
    /// Of these, results that may be cleared, and how many.
    pub(crate) clearable: f64,
    pub(crate) results: usize,
    /// Tokens before the messages; known of the first call only.
    pub(crate) prefix: f64,
}

/// A replay, measured.
pub(crate) struct Measured {
    pub(crate) report: Report,
    /// The calls that were answered, by their number in the recording; those that were not are empty.
    pub(crate) seen: Vec<Seen>,
    pub(crate) faults: u64,
    /// Characters of what was missing.
    pub(crate) fault_characters: u64,
    /// Of these, read again within some calls behind a compaction.
    pub(crate) again_characters: u64,
    /// What was known of the session's rhythm at each of its calls.
    pub(crate) rhythms: Vec<Rhythm>,
    /// Compactions: the call before which, and what the model wrote.
    compactions: Vec<(usize, f64)>,
    /// Time that the whole replay took.
    pub(crate) took: Duration,
}

/// Replays a recording and measures it.
pub(crate) fn measure(
    recorded: &Recorded,
    touches: &[Touch],
    options: &Options,
) -> Result<Measured, ReplayError> {
    let start = Instant::now();
    let mut meter = Meter { touches, ..Meter::default() };
    let report = replay_watched(recorded, options, &mut |step| meter.watch(step))?;
    Ok(Measured {
        report,
        seen: meter.seen,
        faults: meter.faults,
        fault_characters: meter.fault_characters,
        again_characters: meter.again_characters,
        rhythms: meter.rhythms,
        compactions: meter.compactions,
        took: start.elapsed(),
    })
}

#[derive(Default)]
struct Meter<'a> {
    touches: &'a [Touch],
    seen: Vec<Seen>,
    faults: u64,
    fault_characters: u64,
    again_characters: u64,
    rhythms: Vec<Rhythm>,
    compactions: Vec<(usize, f64)>,
    boundary: Option<EntryId>,
    /// Tokens that requests beside the conversation were answered with since the last call.
    beside: f64,
}

impl Meter<'_> {
    fn watch(&mut self, step: &Step<'_>) {
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
        self.rhythms.push(step.view.state().rhythm.clone());
        self.see(call, step, usage);
        self.miss(call, step.view);
    }

    fn see(&mut self, call: usize, step: &Step<'_>, usage: &Usage) {
        let previous = self.seen.last().copied();
        self.seen.resize(call + 1, Seen::default());
        let prompt = usage.prompt_tokens() as f64;
        let (clearable, results) = clearable(step.view);
        let grown = previous.map_or(prompt, |previous| prompt - previous.prompt);
        self.seen[call] = Seen {
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
            if sight.get_or_insert_with(|| Sight::of(view)).lacks(touch) {
                self.faults += 1;
                self.fault_characters += touch.characters;
                let is_soon = self.compactions.last().is_some_and(|(at, _)| call < at + CALLS);
                self.again_characters += if is_soon && touch.is_read { touch.characters } else { 0 };
            }
        }
    }
}

impl Measured {
    /// What lost content costs, in US dollars. What is missing of a prompt, if nothing else than what joined by the trace had
    /// changed it, was dropped: all that was said where the view began anew, else results, oldest first.
    pub(crate) fn loss_usd(&self, loss: &Loss, trace: &Trace, rates: &Rates) -> f64 {
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

    /// What its compactions left, given the trace of the same session.
    pub(crate) fn left<'a>(&'a self, whole: &'a [Seen]) -> impl Iterator<Item = Left> + 'a {
        let prefix = whole.first().map_or(0.0, |first| first.prefix);
        self.compactions.iter().filter_map(move |(call, output)| {
            let (now, of_trace) = (self.seen.get(*call)?, whole.get(*call)?);
            let summary = now.prompt - prefix - of_trace.waiting;
            (now.prompt > 0.0 && *output > 0.0 && summary > 0.0).then_some(Left {
                summary,
                output: *output,
                cached: now.read,
            })
        })
    }
}

/// Tokens of results that joined with the newest request and may be cleared later, and how many they are.
fn clearable(view: &View) -> (f64, usize) {
    let is_request = |body: &Body| matches!(body, Body::Request(request) if request.source.is_conversation());
    let newest = view.branch().iter().rev().skip_while(|entry| !is_request(&entry.body)).skip(1);
    let (mut tokens, mut count) = (0.0, 0);
    for entry in newest.take_while(|entry| !is_request(&entry.body)) {
        let Body::User(user) = &entry.body else { continue };
        let is_result = |block: &&Block| block.kind() == BlockType::ToolResult;
        for id in user.content.blocks().iter().filter(is_result).filter_map(Block::tool_use_id) {
            let is_known = view.call(id).and_then(Call::read).is_some_and(|call| call.kind.is_some());
            if let Some(result) = view.result(id).filter(|_| is_known) {
                tokens += result.tokens;
                count += 1;
            }
        }
    }
    (view.estimator().total(tokens) as f64, count)
}

/// Tokens of a first prompt that stand before its messages.
fn before_messages(view: &View, prompt: f64) -> f64 {
    let said: f64 = view.shown().map(|shown| shown.tokens).sum();
    (prompt - view.estimator().total(said) as f64).max(0.0)
}
