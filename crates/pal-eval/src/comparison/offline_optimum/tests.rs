//! Compares the offline optimum with exhaustive search on small sessions, and with policies on larger ones.
//!
//! Costs are computed independently of the dynamic program: a prompt is a list of pieces, and the cached part is the common prefix of
//! two lists.

use proptest::prelude::*;

use super::*;
use crate::comparison::session_trace::ContentUse;

/// Action before a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BruteForceAction {
    Keep { pinged: bool },
    Clear { to: usize, pinged: bool },
    Compact { cut: usize, clearing: usize },
}

/// A piece of a prompt: which, and its tokens.
type Piece = (&'static str, usize, f64);

/// The prompt of a call in a state, when the newest compaction was made before the call `since`: its summary is new, and what
/// stands before it without a mark is written anew.
fn pieces(trace: &SessionTrace, (cut, clearing): (usize, usize), since: usize, at: usize) -> Vec<Piece> {
    let mut pieces =
        vec![("shared", 0, trace.prefix_cached), ("own", since, trace.prefix - trace.prefix_cached)];
    if cut > 0 {
        pieces.push(("summary", since, trace.summary));
    }
    for (number, call) in trace.calls.iter().enumerate().take(at + 1).skip(cut) {
        if number > cut || cut == 0 {
            pieces.push(("answer", number, call.grown - call.waiting));
        }
        if number < clearing && call.clearable > 0.0 {
            pieces.push(("rest", number, call.waiting - call.clearable));
        } else {
            pieces.push(("said", number, call.waiting));
        }
    }
    pieces
}

fn tokens(pieces: &[Piece]) -> f64 {
    pieces.iter().map(|piece| piece.2).sum()
}

struct BruteForceBill {
    value: f64,
    state: (usize, usize),
    since: usize,
}

/// Cost of a sequence of actions; none if it is not possible.
fn bill(
    trace: &SessionTrace,
    rates: &TraceRates,
    lifetime: TtlCost,
    loss: &LossModel,
    fault: f64,
    acts: &[BruteForceAction],
) -> Option<f64> {
    let mut billed = BruteForceBill { value: 0.0, state: (0, 0), since: 0 };
    let mut sent: Vec<Piece> = Vec::new();
    for (at, call) in trace.calls.iter().enumerate() {
        let act = if at == 0 { BruteForceAction::Keep { pinged: false } } else { acts[at - 1] };
        let (cut, clearing) = billed.state;
        let next = match act {
            BruteForceAction::Keep { .. } => (cut, clearing),
            BruteForceAction::Clear { to, .. } => (cut, to),
            BruteForceAction::Compact { cut, clearing } => (cut, clearing),
        };
        let unchanged = pieces(trace, billed.state, billed.since, at);
        if let BruteForceAction::Compact { .. } = act {
            billed.since = at;
        }
        let prompt = pieces(trace, next, billed.since, at);
        let is_cold = at == 0 || call.is_lost || call.gap_milliseconds >= lifetime.milliseconds;
        let pinged = matches!(
            act,
            BruteForceAction::Keep { pinged: true } | BruteForceAction::Clear { pinged: true, .. }
        );
        if pinged && (!is_cold || at == 0 || call.is_lost) {
            return None;
        }
        if pinged {
            let pings = (call.gap_milliseconds / lifetime.milliseconds) as f64;
            billed.value += pings * (rates.read * tokens(&sent) + rates.output);
        }
        if let BruteForceAction::Compact { .. } = act {
            billed.value += rates.read * tokens(&sent) + rates.output * trace.summary_output;
        }
        let read = if is_cold && !pinged {
            call.shared_read.min(tokens(&prompt))
        } else {
            let agree = prompt.iter().zip(&sent).take_while(|(one, other)| one == other);
            agree.map(|(piece, _)| piece.2).sum()
        };
        billed.value +=
            rates.read * read + lifetime.write * (tokens(&prompt) - read) + rates.output * call.output;
        let again = loss.of_token(rates, lifetime.write, trace.calls.len() - 1 - at);
        for number in 0..=at {
            let of = |pieces: &[Piece]| {
                let is_content =
                    |piece: &&Piece| ["answer", "said", "rest"].contains(&piece.0) && piece.1 == number;
                pieces.iter().filter(is_content).map(|piece| piece.2).sum::<f64>()
            };
            billed.value += (of(&unchanged) - of(&prompt)) * loss.share((at - number).max(1)) * again;
        }
        let is_gone = |of: &&ContentUse| {
            let is_behind_cut = next.0 >= of.gone_at_cut;
            let is_cleared = of.is_clearable && next.0 <= of.shown_at && of.shown_at < next.1;
            is_behind_cut || is_cleared
        };
        billed.value += fault * call.uses.iter().filter(is_gone).count() as f64;
        if tokens(&prompt) + call.output > trace.window && next.0 != at {
            return None;
        }
        billed.state = next;
        sent = prompt;
    }
    Some(billed.value)
}

/// All that can be done before a call, in a state.
fn acts(at: usize, (cut, clearing): (usize, usize)) -> Vec<BruteForceAction> {
    let mut acts = vec![BruteForceAction::Keep { pinged: false }, BruteForceAction::Keep { pinged: true }];
    for to in clearing + 1..=at {
        acts.extend([false, true].map(|pinged| BruteForceAction::Clear { to, pinged }));
    }
    for to in cut.max(1)..=at {
        for clearing in to.max(clearing)..=at {
            acts.push(BruteForceAction::Compact { cut: to, clearing });
        }
    }
    acts
}

/// The least of all ways.
fn exhausted(trace: &SessionTrace, rates: &TraceRates, loss: &LossModel, fault: f64) -> f64 {
    fn walk(
        trace: &SessionTrace,
        state: (usize, usize),
        done: &mut Vec<BruteForceAction>,
        take: &mut dyn FnMut(&[BruteForceAction]),
    ) {
        let at = done.len() + 1;
        if at == trace.calls.len() {
            return take(done);
        }
        for act in acts(at, state) {
            let next = match act {
                BruteForceAction::Keep { .. } => state,
                BruteForceAction::Clear { to, .. } => (state.0, to),
                BruteForceAction::Compact { cut, clearing } => (cut, clearing),
            };
            done.push(act);
            walk(trace, next, done, take);
            done.pop();
        }
    }
    let mut least = f64::INFINITY;
    for lifetime in rates.lifetimes() {
        walk(trace, (0, 0), &mut Vec::new(), &mut |acts| {
            least = bill(trace, rates, lifetime, loss, fault, acts).map_or(least, |value| least.min(value));
        });
    }
    least
}

const RATES: TraceRates = TraceRates { read: 0.1, output: 5.0, write_5m: 1.25, write_1h: Some(2.0) };

fn calls(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<TraceCall>> {
    let gap = prop_oneof![3 => Just(10_000), 1 => Just(700_000), 1 => Just(4_000_000), 1 => Just(90_000_000)];
    let tokens = (0_u32..400, 0_u32..3_000, any::<prop::sample::Index>(), 1_u32..300);
    let used = (any::<prop::sample::Index>(), 0_usize..4, any::<bool>());
    let call = (gap, prop::bool::weighted(0.05), tokens, prop::option::of(used), 0_u32..200);
    prop::collection::vec(call, count).prop_map(|calls| {
        let made = calls.into_iter().enumerate().map(|(at, (gap, is_lost, tokens, used, shared))| {
            let (answer, waiting, clearable, output) = tokens;
            let uses = used.filter(|_| at > 0).map(|(shown, after, is_clearable)| {
                let shown_at = shown.index(at);
                ContentUse { shown_at, gone_at_cut: shown_at + 1 + after, is_clearable }
            });
            TraceCall {
                gap_milliseconds: gap,
                is_lost,
                shared_read: f64::from(shared),
                grown: f64::from(answer + waiting),
                waiting: f64::from(waiting),
                clearable: if clearable.index(3) == 0 { 0.0 } else { f64::from(waiting) * 0.8 },
                output: f64::from(output),
                uses: uses.into_iter().collect(),
            }
        });
        made.collect()
    })
}

fn trace(calls: Vec<TraceCall>, window: f64) -> SessionTrace {
    SessionTrace {
        prefix: 1_500.0,
        prefix_cached: 900.0,
        summary: 300.0,
        summary_output: 60.0,
        window,
        calls,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(200)))]

    #[test]
    fn the_limit_is_the_least_of_all_ways(
        calls in calls(1..5),
        window in prop_oneof![Just(4_500.0), Just(1e9)],
        fresh in prop_oneof![Just(0.0), Just(0.32)],
        fault in prop_oneof![Just(0.0), Just(500.0), Just(1e6)],
    ) {
        let trace = trace(calls, window);
        let loss = LossModel { fresh };
        let limit = offline_optimum(&trace, &RATES, &loss, fault).unwrap();
        let value = limit.total_usd() + fault * f64::from(limit.faults);
        let least = exhausted(&trace, &RATES, &loss, fault);
        prop_assert!((value - least).abs() < 1e-6 * least.max(1.0), "{value} {least} {limit:?}");
    }

    #[test]
    fn no_policy_is_cheaper_than_the_limit(calls in calls(10..60), from in 3_000_u32..20_000, way in 0..4) {
        let trace = trace(calls, 40_000.0);
        let limit = offline_optimum(&trace, &RATES, &LossModel::CALIBRATED, 0.0).unwrap();
        for lifetime in RATES.lifetimes() {
            let acts = by_rule(&trace, f64::from(from), way);
            if let Some(value) = bill(&trace, &RATES, lifetime, &LossModel::CALIBRATED, 0.0, &acts) {
                prop_assert!(limit.total_usd() <= value * (1.0 + 1e-9), "{way} at {from}: {value} {limit:?}");
            }
        }
    }
}

/// Actions of a policy that acts at a size: compacts, compacts and keeps the newest, clears all but the newest, slides.
fn by_rule(trace: &SessionTrace, from: f64, way: i32) -> Vec<BruteForceAction> {
    let (mut state, mut acts) = ((0, 0), Vec::new());
    for at in 1..trace.calls.len() {
        let size = tokens(&pieces(trace, state, 0, at));
        let kept = at.saturating_sub(3).max(state.0).max(1);
        let act = match way {
            _ if size < from.min(trace.window * 0.9) => BruteForceAction::Keep { pinged: false },
            0 => BruteForceAction::Compact { cut: at, clearing: at },
            1 => BruteForceAction::Compact { cut: kept, clearing: kept.max(state.1) },
            2 if kept > state.1 && size < trace.window * 0.9 => {
                BruteForceAction::Clear { to: kept, pinged: false }
            }
            _ => BruteForceAction::Compact { cut: at, clearing: at },
        };
        state = match act {
            BruteForceAction::Keep { .. } => state,
            BruteForceAction::Clear { to, .. } => (state.0, to),
            BruteForceAction::Compact { cut, clearing } => (cut, clearing),
        };
        acts.push(act);
    }
    acts
}

#[test]
fn optimum_depends_on_future_uses() {
    let call = |gap: i64| TraceCall {
        gap_milliseconds: gap,
        grown: 2_000.0,
        waiting: 1_900.0,
        clearable: 0.0,
        output: 100.0,
        ..TraceCall::default()
    };
    let of = |gaps: &[i64]| {
        let trace = trace(gaps.iter().map(|gap| call(*gap)).collect(), 1e9);
        offline_optimum(&trace, &RATES, &LossModel::CALIBRATED, 0.0).unwrap()
    };
    let short = of(&[0; 5]);
    assert_eq!((short.compactions, short.loss_usd), (0, 0.0), "the end is near: {short:?}");
    let long = of(&[0; 120]);
    assert!(long.compactions >= 2 && long.loss_usd > 0.0, "{long:?}");
    assert!(offline_optimum(&trace(Vec::new(), 1e9), &RATES, &LossModel::NONE, 0.0).is_none());
}
