//! Results of an evaluation: one cell for each session, row, model and window, and the totals.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::replay::ReplayTokens;
use pal_context::cost_aware::{FittedFigures, ForecastReliability, pause_reliability, turn_reliability};
use pal_model::ActivityStats;
use serde::Serialize;

use crate::comparison::bootstrap::ratio_interval;
use crate::comparison::eval_plan::{EvalPlan, EvalSetup};
use crate::comparison::line_uses::{CondenseLoss, LineUses, ToolLines};
use crate::comparison::offline_optimum::OfflineOptimum;
use crate::comparison::policy_rows::{NONE, PolicyRow, THRESHOLD};
use crate::comparison::replay_meter::PolicyMeasurement;

/// A session under a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EvalCell {
    /// US dollars; none where prices are not known.
    pub cost_usd: Option<f64>,
    /// US dollars that reading lost content again costs.
    pub loss_usd: Option<f64>,
    /// Tokens by kind.
    pub tokens: ReplayTokens,
    /// Compactions.
    pub compactions: u64,
    /// Page faults: content that the recorded agent read again or edited, and that was out of sight.
    pub page_faults: u64,
    /// Of these, for results that were cleared or spilled; the others follow compactions.
    pub cleared_faults: u64,
    /// Characters of that content.
    pub fault_characters: u64,
    /// Characters of it that were read again within 30 calls after a compaction.
    pub again_characters: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Microseconds of the engine a turn, in the median and at most.
    pub engine_us: (u64, u64),
    /// True if another replay was known to give the same.
    pub is_shared: bool,
    /// Seconds that the replay took.
    #[serde(skip)]
    pub(crate) took: Duration,
}

impl EvalCell {
    pub(crate) fn of(measured: &PolicyMeasurement, loss_usd: Option<f64>, is_shared: bool) -> EvalCell {
        let report = &measured.report;
        EvalCell {
            cost_usd: report.measured.cost_usd,
            loss_usd,
            tokens: report.measured.tokens,
            compactions: report.compactions.len() as u64,
            page_faults: measured.faults,
            cleared_faults: measured.cleared_faults,
            fault_characters: measured.fault_characters,
            again_characters: measured.again_characters,
            refused: report.rejected,
            engine_us: (report.engine_us.p50, report.engine_us.max),
            is_shared,
            took: if is_shared { Duration::ZERO } else { measured.took },
        }
    }

    /// Total cost, where prices are known.
    pub(crate) fn total_usd(&self) -> Option<f64> {
        Some(self.cost_usd? + self.loss_usd?)
    }
}

/// Offline optimum of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct OptimumResult {
    /// Lost content costs nothing.
    pub(crate) plain: OfflineOptimum,
    /// Points of the frontier, with an increasing penalty per page fault.
    pub(crate) frontier: Vec<OfflineOptimum>,
    /// Cost of dropping nothing, by the same rules.
    pub(crate) kept_usd: f64,
}

/// A session under all rows.
pub(crate) struct SessionCells {
    pub(crate) name: String,
    pub(crate) calls: usize,
    pub(crate) cells: BTreeMap<(EvalSetup, &'static str), EvalCell>,
    pub(crate) clairvoyant: BTreeMap<EvalSetup, OptimumResult>,
    /// Activity statistics at each call.
    pub(crate) rhythms: Vec<ActivityStats>,
    /// Figures fitted without its repository.
    pub(crate) figures: FittedFigures,
    /// Uses of the lines of its results.
    pub(crate) lines: LineUses,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyComparison {
    /// Sessions that were measured.
    pub sessions: usize,
    /// Calls in them.
    pub calls: usize,
    /// Repositories that the sessions are of; each was judged with figures fitted to the others.
    pub repositories: usize,
    /// Sessions that could not be measured, and why.
    pub failures: Vec<String>,
    /// Quality of the cost-aware policy's forecast.
    pub forecast: ForecastQuality,
    /// Savings of condensing, and the lines used again that it drops.
    pub condensing: Vec<CondensingRow>,
    /// Contents of results by kind of tool.
    pub tools: BTreeMap<&'static str, ToolLines>,
    /// A table for each model and window.
    pub tables: Vec<EvalTable>,
}

/// Effect of condensing on one kind of text.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CondensingRow {
    /// Number of characters it aims at.
    pub aim: usize,
    /// Detected kind of text.
    pub by: &'static str,
    /// Effect.
    #[serde(flatten)]
    pub sum: CondenseLoss,
}

/// Reliability of a forecast: bins of the predicted share, with the observed share.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ForecastQuality {
    /// That a session continues for N requests.
    pub turns: Vec<ForecastReliability>,
    /// That the next pause is longer than five minutes.
    pub pauses: Vec<ForecastReliability>,
}

/// Horizons of the forecast in requests, and the number of bins for pauses.
pub(crate) const AHEAD: [usize; 6] = [5, 10, 25, 50, 100, 200];
const BINS: usize = 6;

impl ForecastQuality {
    /// Over sessions, each as its activity at its requests, with the figures fitted without its repository.
    fn of(sessions: &[(&[ActivityStats], FittedFigures)]) -> ForecastQuality {
        ForecastQuality {
            turns: turn_reliability(sessions, &AHEAD),
            pauses: pause_reliability(sessions, 0, BINS),
        }
    }
}

/// All rows at one model and window.
#[derive(Clone, Debug, Serialize)]
pub struct EvalTable {
    /// The model; none is each session's own.
    pub model: Option<String>,
    /// The window.
    pub window: u64,
    /// Sessions whose prices are known; sums of money are over these.
    pub priced: usize,
    /// The rows.
    pub rows: Vec<EvalTotals>,
    /// The least that is possible, if lost content costs nothing.
    pub limit_plain_usd: f64,
    /// The offline optimum, and the cost of its page faults.
    pub frontier: Vec<FrontierPoint>,
    /// Cost of dropping nothing by the optimum's rules, relative to `birth` where that was replayed.
    pub kept_usd: f64,
    /// Every session by row.
    pub by_session: Vec<EvalSessionRow>,
}

/// The offline optimum over all sessions.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FrontierPoint {
    /// US dollars in all.
    pub total_usd: f64,
    /// Of these, for lost content.
    pub loss_usd: f64,
    /// Page faults.
    pub page_faults: u64,
    /// Compactions.
    pub compactions: u64,
}

/// One session in a table.
#[derive(Clone, Debug, Serialize)]
pub struct EvalSessionRow {
    /// Its name.
    pub session: String,
    /// Its cells, by row.
    pub rows: BTreeMap<&'static str, EvalCell>,
    /// The least that is possible, without and with what lost content costs.
    pub limit_usd: Option<(f64, f64)>,
}

/// A row over all sessions.
#[derive(Clone, Debug, Serialize)]
pub struct EvalTotals {
    /// Its name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// True if it is a policy of this project.
    pub is_ours: bool,
    /// US dollars.
    pub cost_usd: f64,
    /// With what lost content costs.
    pub total_usd: f64,
    /// The total against that of `none`, of `threshold` and of the offline optimum.
    pub against_none: Option<f64>,
    /// 95% interval of the ratio to `none`, by resampling sessions.
    pub against_none_interval: Option<(f64, f64)>,
    /// See above.
    pub against_classic: Option<f64>,
    /// See above.
    pub against_clairvoyant: Option<f64>,
    /// The session that is dearest against `none`.
    pub worst_against_none: Option<f64>,
    /// The share of the prompt that came from the cache.
    pub hit_ratio: f64,
    /// Compactions.
    pub compactions: u64,
    /// Page faults.
    pub page_faults: u64,
    /// Of these, for results that were cleared or spilled; the others follow compactions.
    pub cleared_faults: u64,
    /// Characters of missing content.
    pub fault_characters: u64,
    /// Of these, read again within 30 calls after a compaction.
    pub again_characters: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Microseconds of the engine a turn: the middle session, and the worst turn.
    pub engine_us: (u64, u64),
    /// Replays that were made; the others were known to give the same.
    pub replays: usize,
    /// Seconds that they took on one core.
    pub replay_seconds: f64,
}

impl PolicyComparison {
    pub(crate) fn new(plan: &EvalPlan, sessions: &[SessionCells], failures: Vec<String>) -> PolicyComparison {
        let mut tables = Vec::new();
        for (model, name) in plan.models.iter().enumerate() {
            for window in plan.windows.iter().rev() {
                let setup = EvalSetup { model, window: *window };
                tables.push(EvalTable::new(plan, name.clone(), setup, sessions));
            }
        }
        let calls = sessions.iter().map(|session| session.calls).sum();
        let rhythms: Vec<(&[ActivityStats], FittedFigures)> =
            sessions.iter().map(|session| (session.rhythms.as_slice(), session.figures)).collect();
        let mut lines = LineUses::default();
        sessions.iter().for_each(|session| lines.absorb(&session.lines));
        let condensed = lines.condensed.into_iter();
        let condensing = condensed.map(|((aim, by), sum)| CondensingRow { aim, by, sum });
        PolicyComparison {
            sessions: sessions.len(),
            calls,
            repositories: 0,
            failures,
            forecast: ForecastQuality::of(&rhythms),
            condensing: condensing.collect(),
            tools: lines.tools,
            tables,
        }
    }
}

impl EvalTable {
    fn new(plan: &EvalPlan, model: Option<String>, setup: EvalSetup, sessions: &[SessionCells]) -> EvalTable {
        let rows: Vec<EvalTotals> = plan
            .rows
            .iter()
            .map(|row| {
                let sum = EvalTotals::new(row, setup, sessions);
                sum.against(setup, sessions)
            })
            .collect();
        let limits: Vec<&OptimumResult> =
            sessions.iter().filter_map(|session| session.clairvoyant.get(&setup)).collect();
        let points = limits.iter().map(|limit| limit.frontier.len()).max().unwrap_or(0);
        let frontier = (0..points).map(|at| {
            let mut point = FrontierPoint::default();
            for limit in limits.iter().filter_map(|limit| limit.frontier.get(at)) {
                point.total_usd += limit.total_usd();
                point.loss_usd += limit.loss_usd;
                point.page_faults += u64::from(limit.faults);
                point.compactions += u64::from(limit.compactions);
            }
            point
        });
        let by_session = sessions.iter().map(|session| EvalSessionRow {
            session: session.name.clone(),
            rows: plan
                .rows
                .iter()
                .filter_map(|row| Some((row.name, *session.cells.get(&(setup, row.name))?)))
                .collect(),
            limit_usd: session
                .clairvoyant
                .get(&setup)
                .and_then(|limit| Some((limit.plain.cost_usd, limit.frontier.first()?.total_usd()))),
        });
        EvalTable {
            model,
            window: setup.window,
            priced: sessions.iter().filter(|session| is_priced(session, setup)).count(),
            rows,
            limit_plain_usd: limits.iter().map(|limit| limit.plain.cost_usd).sum(),
            frontier: frontier.collect(),
            kept_usd: limits.iter().map(|limit| limit.kept_usd).sum(),
            by_session: by_session.collect(),
        }
    }

    /// The row with this name.
    pub fn row(&self, name: &str) -> Option<&EvalTotals> {
        self.rows.iter().find(|row| row.name == name)
    }
}

fn is_priced(session: &SessionCells, setup: EvalSetup) -> bool {
    session.cells.get(&(setup, NONE)).is_some_and(|cell| cell.total_usd().is_some())
}

impl EvalTotals {
    fn new(row: &PolicyRow, setup: EvalSetup, sessions: &[SessionCells]) -> EvalTotals {
        let cells: Vec<&EvalCell> =
            sessions.iter().filter_map(|session| session.cells.get(&(setup, row.name))).collect();
        let sum = |of: fn(&EvalCell) -> u64| cells.iter().map(|cell| of(cell)).sum::<u64>();
        let money = |of: fn(&EvalCell) -> Option<f64>| cells.iter().filter_map(|cell| of(cell)).sum::<f64>();
        let (read, prompt) = (sum(|cell| cell.tokens.cache_read), sum(|cell| cell.tokens.prompt()));
        let mut engine: Vec<u64> = cells.iter().map(|cell| cell.engine_us.0).collect();
        engine.sort_unstable();
        EvalTotals {
            name: row.name,
            about: row.about,
            is_ours: row.is_ours,
            cost_usd: money(|cell| cell.total_usd().and(cell.cost_usd)),
            total_usd: money(EvalCell::total_usd),
            against_none: None,
            against_none_interval: None,
            against_classic: None,
            against_clairvoyant: None,
            worst_against_none: None,
            hit_ratio: if prompt == 0 { 0.0 } else { read as f64 / prompt as f64 },
            compactions: sum(|cell| cell.compactions),
            page_faults: sum(|cell| cell.page_faults),
            cleared_faults: sum(|cell| cell.cleared_faults),
            fault_characters: sum(|cell| cell.fault_characters),
            again_characters: sum(|cell| cell.again_characters),
            refused: sum(|cell| cell.refused),
            engine_us: (
                engine.get(engine.len() / 2).copied().unwrap_or(0),
                cells.iter().map(|cell| cell.engine_us.1).max().unwrap_or(0),
            ),
            replays: cells.iter().filter(|cell| !cell.is_shared).count(),
            replay_seconds: cells.iter().map(|cell| cell.took.as_secs_f64()).sum(),
        }
    }

    /// Compares with the other rows, over the sessions that both have.
    fn against(mut self, setup: EvalSetup, sessions: &[SessionCells]) -> EvalTotals {
        let of = |session: &SessionCells, name: &'static str| session.cells.get(&(setup, name))?.total_usd();
        let name = self.name;
        let pairs = |other: &dyn Fn(&SessionCells) -> Option<f64>| {
            let pairs: Vec<(f64, f64)> =
                sessions.iter().filter_map(|session| Some((of(session, name)?, other(session)?))).collect();
            pairs
        };
        let ratio = |pairs: &[(f64, f64)]| {
            let (own, others) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            (others > 0.0).then_some(own / others)
        };
        let none = pairs(&|session| of(session, NONE));
        self.against_none = ratio(&none);
        self.against_none_interval = ratio_interval(&none);
        let worst = none.iter().filter(|pair| pair.1 > 0.0).map(|pair| pair.0 / pair.1);
        self.worst_against_none = worst.max_by(f64::total_cmp);
        self.against_classic = ratio(&pairs(&|session| of(session, THRESHOLD)));
        self.against_clairvoyant =
            ratio(&pairs(&|session| Some(session.clairvoyant.get(&setup)?.frontier.first()?.total_usd())));
        self
    }
}
