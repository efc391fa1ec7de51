//! The offline optimum: the lowest cost of a recorded session with knowledge of its future.
//!
//! A session is a sequence of calls. Before each call content is added to the context, part of it tool results that may be cleared later.
//! The oldest content is always dropped first, so two numbers describe the context of a call: the *cut*, before which a summary replaces
//! everything, and the *clearing*, before which results are cleared. The choices before each call:
//!
//! - do nothing, and after a long pause pay for the whole prompt, or for keepalives during the pause;
//! - clear results up to any call: everything after the first of them is written again;
//! - compact up to any call: the prompt is read once more, a summary is written, and the rest is written again.
//!
//! The TTL of five minutes or one hour is chosen once. Each call pays for its reads, writes and output; each dropped token pays its
//! expected cost of being read again ([`crate::comparison::LossModel`]); each page fault pays a penalty set by the caller, which yields
//! the frontier of cost and faults. The dynamic program keeps the cheapest path to each pair of cut and clearing: O(n³) steps, and
//! exact, because the cost of a drop is the sum of one term for its start and one for its end.

#[cfg(test)]
mod tests;

use crate::comparison::loss_model::LossModel;
use crate::comparison::session_trace::{SessionTrace, TraceCall};
use crate::comparison::trace_rates::{TraceRates, TtlCost};

/// Sessions with more calls than this have no limit: it would take minutes.
const CALLS_MAX: usize = 1_000;

/// Lowest possible cost of a session.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct OfflineOptimum {
    /// US dollars, without what lost content costs.
    pub cost_usd: f64,
    /// US dollars that reading lost content again costs.
    pub loss_usd: f64,
    /// Page faults.
    pub faults: u32,
    /// Compactions.
    pub compactions: u32,
    /// Clearings.
    pub clearings: u32,
}

impl OfflineOptimum {
    /// Total cost.
    pub fn total_usd(&self) -> f64 {
        self.cost_usd + self.loss_usd
    }
}

/// The least that a session can cost, if each page fault costs so much; none for sessions that are empty or too long.
pub fn offline_optimum(
    trace: &SessionTrace,
    rates: &TraceRates,
    loss: &LossModel,
    fault_usd: f64,
) -> Option<OfflineOptimum> {
    if trace.calls.is_empty() || trace.calls.len() > CALLS_MAX {
        return None;
    }
    let lifetimes = rates.lifetimes();
    let ways = lifetimes.iter().map(|lifetime| {
        let tables = OptimumTables::of(trace);
        let now = DynamicProgram { trace, tables, loss, rates, lifetime: *lifetime, fault_usd };
        now.run()
    });
    ways.min_by(|one, other| one.value.total_cmp(&other.value)).map(|best| OfflineOptimum {
        cost_usd: best.spent,
        loss_usd: best.lost,
        faults: best.faults,
        compactions: best.compactions,
        clearings: best.clearings,
    })
}

/// Cheapest path to a state.
#[derive(Clone, Copy, Debug)]
struct OptimumCell {
    /// Objective: money, and the price of faults.
    value: f64,
    spent: f64,
    lost: f64,
    faults: u32,
    compactions: u32,
    clearings: u32,
}

impl OptimumCell {
    const NEVER: OptimumCell = OptimumCell {
        value: f64::INFINITY,
        spent: f64::INFINITY,
        lost: 0.0,
        faults: 0,
        compactions: 0,
        clearings: 0,
    };

    fn spend(mut self, dollars: f64) -> OptimumCell {
        self.value += dollars;
        self.spent += dollars;
        self
    }

    fn lose(mut self, dollars: f64) -> OptimumCell {
        self.value += dollars;
        self.lost += dollars;
        self
    }

    fn take_if_less(&mut self, other: OptimumCell) {
        if other.value < self.value {
            *self = other;
        }
    }
}

/// Sums over the calls of a session.
struct OptimumTables {
    /// Tokens that joined before a call.
    grown_before: Vec<f64>,
    /// Tokens that can be cleared of what joined before a call.
    clearable_before: Vec<f64>,
    /// First call, at or after a given one, that has something to clear.
    next_clearable: Vec<usize>,
}

impl OptimumTables {
    fn of(trace: &SessionTrace) -> OptimumTables {
        let sums = |of: fn(&TraceCall) -> f64| {
            let mut sum = 0.0;
            let mut sums = vec![0.0];
            for call in &trace.calls {
                sum += of(call);
                sums.push(sum);
            }
            sums
        };
        let mut next_clearable = vec![trace.calls.len(); trace.calls.len() + 1];
        for at in (0..trace.calls.len()).rev() {
            next_clearable[at] = if trace.calls[at].clearable > 0.0 { at } else { next_clearable[at + 1] };
        }
        OptimumTables {
            grown_before: sums(|call| call.grown),
            clearable_before: sums(|call| call.clearable),
            next_clearable,
        }
    }
}

struct DynamicProgram<'a> {
    trace: &'a SessionTrace,
    tables: OptimumTables,
    loss: &'a LossModel,
    rates: &'a TraceRates,
    lifetime: TtlCost,
    fault_usd: f64,
}

/// Cost of a call that does not depend on earlier actions.
struct CallState {
    at: usize,
    is_cold: bool,
    /// Pings that would have kept the cache; none where they do not help.
    pings: Option<f64>,
    /// Cost of dropping the content that joined before a call: all of it, the clearable part of it,
    /// and what the model had said of a single call.
    grown: Vec<f64>,
    clearable: Vec<f64>,
    said: Vec<f64>,
}

impl CallState {
    /// Cost of dropping all visible content here.
    fn content(&self, cut: usize, clearing: usize) -> f64 {
        let summarised = if cut > 0 { self.said[cut] } else { 0.0 };
        self.grown[self.at + 1] - self.grown[cut] - summarised - self.clearable[clearing]
            + self.clearable[cut]
    }
}

impl DynamicProgram<'_> {
    fn run(&self) -> OptimumCell {
        let side = self.trace.calls.len() + 1;
        let mut before = vec![OptimumCell::NEVER; side * side];
        let mut after = vec![OptimumCell::NEVER; side * side];
        let first = OptimumCell { value: 0.0, spent: 0.0, ..OptimumCell::NEVER };
        let whole = self.context(0, 0, 0);
        before[0] = self.answered(first.spend(self.cold(whole, &self.trace.calls[0])), 0, 0, 0);
        for at in 1..self.trace.calls.len() {
            for cut in 0..=at {
                after[cut * side + cut..=cut * side + at].fill(OptimumCell::NEVER);
            }
            let moment = self.moment(at);
            self.keep(&moment, &before, &mut after);
            self.clear(&moment, &before, &mut after);
            self.compact(&moment, &before, &mut after);
            self.answer(at, &mut after);
            std::mem::swap(&mut before, &mut after);
        }
        let last = self.trace.calls.len() - 1;
        let cells = (0..=last).flat_map(|cut| (cut..=last).map(move |clearing| cut * side + clearing));
        cells
            .map(|at| before[at])
            .min_by(|one, other| one.value.total_cmp(&other.value))
            .unwrap_or(OptimumCell::NEVER)
    }

    fn moment(&self, at: usize) -> CallState {
        let call = &self.trace.calls[at];
        let is_cold = call.is_lost || call.gap_milliseconds >= self.lifetime.milliseconds;
        let pings = (call.gap_milliseconds / self.lifetime.milliseconds) as f64;
        let again = self.loss.of_token(self.rates, self.lifetime.write, self.trace.calls.len() - 1 - at);
        let (mut grown, mut clearable, mut said) = (vec![0.0], vec![0.0], Vec::new());
        let (mut of_grown, mut of_clearable) = (0.0, 0.0);
        for (number, call) in self.trace.calls.iter().enumerate().take(at + 1) {
            let price = again * self.loss.share((at - number).max(1));
            of_grown += price * call.grown;
            of_clearable += price * call.clearable;
            grown.push(of_grown);
            clearable.push(of_clearable);
            said.push(price * (call.grown - call.waiting));
        }
        CallState { at, is_cold, pings: (is_cold && !call.is_lost).then_some(pings), grown, clearable, said }
    }

    /// Tokens of the prompt of a call.
    fn context(&self, cut: usize, clearing: usize, at: usize) -> f64 {
        self.base(cut) + self.tables.grown_before[at + 1]
            - self.tables.grown_before[cut]
            - self.cleared(cut, clearing)
    }

    /// Size before what joined at the cut; the model's own messages there are summarized.
    fn base(&self, cut: usize) -> f64 {
        match self.trace.calls.get(cut) {
            Some(call) if cut > 0 => self.trace.prefix + self.trace.summary + call.waiting - call.grown,
            _ => self.trace.prefix,
        }
    }

    fn cleared(&self, cut: usize, clearing: usize) -> f64 {
        self.tables.clearable_before[clearing] - self.tables.clearable_before[cut]
    }

    /// Tokens before the first result that a clearing from here on would touch; none if it touches nothing that was sent.
    fn untouched(&self, cut: usize, clearing: usize, at: usize) -> Option<f64> {
        let first = self.tables.next_clearable[clearing];
        let call = self.trace.calls.get(first).filter(|_| first < at)?;
        let before = self.tables.grown_before[first] - self.tables.grown_before[cut];
        Some(self.base(cut) + before + call.grown - call.waiting - self.cleared(cut, clearing))
    }

    /// A prompt of which the cache holds only what others share.
    fn cold(&self, prompt: f64, call: &TraceCall) -> f64 {
        self.mixed(prompt, call.shared_read.min(prompt))
    }

    fn mixed(&self, prompt: f64, read: f64) -> f64 {
        self.rates.read * read + self.lifetime.write * (prompt - read)
    }

    fn ping(&self, pings: f64, prompt: f64) -> f64 {
        pings * (self.rates.read * prompt + self.rates.output)
    }

    fn keep(&self, moment: &CallState, before: &[OptimumCell], after: &mut [OptimumCell]) {
        let side = self.trace.calls.len() + 1;
        let call = &self.trace.calls[moment.at];
        for cut in 0..moment.at {
            for clearing in cut..moment.at {
                let cell = before[cut * side + clearing];
                let prompt = self.context(cut, clearing, moment.at);
                let sent = prompt - call.grown;
                let warm = self.mixed(prompt, sent);
                let price = match (moment.is_cold, moment.pings) {
                    (false, _) => warm,
                    (true, None) => self.cold(prompt, call),
                    (true, Some(pings)) => self.cold(prompt, call).min(warm + self.ping(pings, sent)),
                };
                after[cut * side + clearing].take_if_less(cell.spend(price));
            }
        }
    }

    fn clear(&self, moment: &CallState, before: &[OptimumCell], after: &mut [OptimumCell]) {
        let side = self.trace.calls.len() + 1;
        let at = moment.at;
        let call = &self.trace.calls[at];
        let saved = self.lifetime.write - self.rates.read;
        for cut in 0..at {
            // Best way to a clearing here, except for what depends on its extent: from a warm cache, and from a cold one.
            let (mut warm, mut cold) = (OptimumCell::NEVER, OptimumCell::NEVER);
            for clearing in cut + 1..=at {
                let from = clearing - 1;
                if let Some(untouched) = self.untouched(cut, from, at) {
                    let cell = before[cut * side + from].lose(-moment.clearable[from]);
                    cold.take_if_less(cell);
                    let sent = self.context(cut, from, at - 1);
                    let kept_warm = match (moment.is_cold, moment.pings) {
                        (false, _) => Some(0.0),
                        (true, pings) => pings.map(|pings| self.ping(pings, sent)),
                    };
                    if let Some(price) = kept_warm {
                        warm.take_if_less(cell.spend(price - saved * untouched));
                    }
                }
                let prompt = self.context(cut, clearing, at);
                let lost = moment.clearable[clearing];
                let after = &mut after[cut * side + clearing];
                let cleared =
                    |cell: OptimumCell| OptimumCell { clearings: cell.clearings + 1, ..cell }.lose(lost);
                after.take_if_less(cleared(warm).spend(self.lifetime.write * prompt));
                if moment.is_cold {
                    after.take_if_less(cleared(cold).spend(self.cold(prompt, call)));
                }
            }
        }
    }

    fn compact(&self, moment: &CallState, before: &[OptimumCell], after: &mut [OptimumCell]) {
        let side = self.trace.calls.len() + 1;
        let at = moment.at;
        let call = &self.trace.calls[at];
        let summary = self.rates.output * self.trace.summary_output;
        // Summarized content stays so: only cuts at or behind the one before. So the best by cut, and of these the best so far.
        let mut by_cut = vec![OptimumCell::NEVER; at + 1];
        for clearing in 0..=at {
            for (cut, best) in by_cut.iter_mut().enumerate().take(clearing + 1).filter(|_| clearing < at) {
                let cell = before[cut * side + clearing];
                let asked = self.rates.read * self.context(cut, clearing, at - 1) + summary;
                let dropped = moment.content(cut, clearing);
                best.take_if_less(cell.spend(asked).lose(dropped));
            }
            let mut best = by_cut[0];
            for cut in 1..=clearing {
                best.take_if_less(by_cut[cut]);
                let prompt = self.context(cut, clearing, at);
                let price = match moment.is_cold {
                    true => self.cold(prompt, call),
                    false => self.mixed(prompt, self.trace.prefix_cached.min(prompt)),
                };
                let cell = OptimumCell { compactions: best.compactions + 1, ..best };
                after[cut * side + clearing]
                    .take_if_less(cell.spend(price).lose(-moment.content(cut, clearing)));
            }
        }
    }

    /// Adds the answer and its faults to all ways, and leaves those out that do not fit into the window.
    fn answer(&self, at: usize, after: &mut [OptimumCell]) {
        let side = self.trace.calls.len() + 1;
        for cut in 0..=at {
            for clearing in cut..=at {
                let cell = &mut after[cut * side + clearing];
                let room = self.context(cut, clearing, at) + self.trace.calls[at].output;
                // A state that has dropped everything must be allowed, or there would be no way at all.
                let is_last_resort = cut == at;
                *cell = match room <= self.trace.window || is_last_resort {
                    true => self.answered(*cell, cut, clearing, at),
                    false => OptimumCell::NEVER,
                };
            }
        }
    }

    fn answered(&self, cell: OptimumCell, cut: usize, clearing: usize, at: usize) -> OptimumCell {
        let call = &self.trace.calls[at];
        let faults = call.uses.iter().filter(|of| of.is_fault(cut, clearing)).count() as u32;
        let cell = cell.spend(self.rates.output * call.output);
        OptimumCell {
            value: cell.value + self.fault_usd * f64::from(faults),
            faults: cell.faults + faults,
            ..cell
        }
    }
}
