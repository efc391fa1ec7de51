//! What came out, as figures: one cell for each session, row, model and window, and the sums.

use std::collections::BTreeMap;
use std::time::Duration;

use pal_context::thrifty::{Reliability, pause_reliability, turn_reliability};
use pal_model::Rhythm;
use pal_replay::Tokens;
use serde::Serialize;

use crate::bench::Plan;
use crate::clairvoyant::Limit;
use crate::lines::{Condensing, Lines, ToolLines};
use crate::measure::Measured;
use crate::rows::{CLASSIC, NONE};

/// Which model, by its number in the plan, and which window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Setup {
    pub(crate) model: usize,
    pub(crate) window: u64,
}

/// A session under a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// US dollars; none where prices are not known.
    pub cost_usd: Option<f64>,
    /// US dollars that reading lost content again costs.
    pub loss_usd: Option<f64>,
    /// Tokens by kind.
    pub tokens: Tokens,
    /// Compactions.
    pub compactions: u64,
    /// Page faults: content that the recorded agent read again or edited, and that was out of sight.
    pub page_faults: u64,
    /// Characters of that content.
    pub fault_characters: u64,
    /// Characters of it that were read again in the 30 calls behind a compaction.
    pub again_characters: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Microseconds of the engine a turn, in the median and at most.
    pub engine_us: (u64, u64),
    /// Whether another replay was known to give the same.
    pub is_shared: bool,
    /// Seconds that the replay took.
    #[serde(skip)]
    pub(crate) took: Duration,
}

impl Cell {
    pub(crate) fn of(measured: &Measured, loss_usd: Option<f64>, is_shared: bool) -> Cell {
        let report = &measured.report;
        Cell {
            cost_usd: report.measured.cost_usd,
            loss_usd,
            tokens: report.measured.tokens,
            compactions: report.compactions.len() as u64,
            page_faults: measured.faults,
            fault_characters: measured.fault_characters,
            again_characters: measured.again_characters,
            refused: report.rejected,
            engine_us: (report.engine_us.p50, report.engine_us.max),
            is_shared,
            took: if is_shared { Duration::ZERO } else { measured.took },
        }
    }

    /// What it costs in all, where prices are known.
    pub(crate) fn total_usd(&self) -> Option<f64> {
        Some(self.cost_usd? + self.loss_usd?)
    }
}

/// What the clairvoyant makes of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Clairvoyant {
    /// Lost content costs nothing.
    pub(crate) plain: Limit,
    /// It costs what it costs, and page faults cost more and more.
    pub(crate) frontier: Vec<Limit>,
    /// What it costs to drop nothing, by the same rules.
    pub(crate) kept_usd: f64,
}

/// A session under all rows.
pub(crate) struct SessionCells {
    pub(crate) name: String,
    pub(crate) calls: usize,
    pub(crate) cells: BTreeMap<(Setup, &'static str), Cell>,
    pub(crate) clairvoyant: BTreeMap<Setup, Clairvoyant>,
    /// What was known of its rhythm at each call.
    pub(crate) rhythms: Vec<Rhythm>,
    /// What the lines of its results come to.
    pub(crate) lines: Lines,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Sessions that were measured.
    pub sessions: usize,
    /// Calls in them.
    pub calls: usize,
    /// Sessions that could not be measured, and why.
    pub failures: Vec<String>,
    /// How good the forecast of the price-aware policy was.
    pub forecast: Forecasting,
    /// What condensing saves, and which lines that are used again it leaves out.
    pub condensing: Vec<CondensingRow>,
    /// What results hold, by kind of tool.
    pub tools: BTreeMap<&'static str, ToolLines>,
    /// A table for each model and window.
    pub tables: Vec<Table>,
}

/// What condensing does to one kind of text.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CondensingRow {
    /// How many characters it aims at.
    pub aim: usize,
    /// What texts were taken for.
    pub by: &'static str,
    /// What it does.
    #[serde(flatten)]
    pub sum: Condensing,
}

/// How good a forecast was: in bins of what it said, what came.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Forecasting {
    /// That a session goes on for so many requests.
    pub turns: Vec<Reliability>,
    /// That the next pause is longer than five minutes.
    pub pauses: Vec<Reliability>,
}

/// How far ahead it is asked whether a session goes on, and in how many bins pauses are told apart.
pub(crate) const AHEAD: [usize; 6] = [5, 10, 25, 50, 100, 200];
const BINS: usize = 6;

impl Forecasting {
    /// Over sessions, each as its rhythm at its requests.
    fn of(sessions: &[&[Rhythm]]) -> Forecasting {
        Forecasting {
            turns: turn_reliability(sessions, &AHEAD),
            pauses: pause_reliability(sessions, 0, BINS),
        }
    }
}

/// All rows at one model and window.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The model; none is each session's own.
    pub model: Option<String>,
    /// The window.
    pub window: u64,
    /// Sessions whose prices are known; sums of money are over these.
    pub priced: usize,
    /// The rows.
    pub rows: Vec<Sum>,
    /// The least that is possible, if lost content costs nothing.
    pub limit_plain_usd: f64,
    /// The least that is possible, and what its page faults cost it.
    pub frontier: Vec<Point>,
    /// What dropping nothing costs by the rules of the clairvoyant, against `birth` where that was replayed.
    pub kept_usd: f64,
    /// Every session by row.
    pub by_session: Vec<SessionRow>,
}

/// The clairvoyant over all sessions.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Point {
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
pub struct SessionRow {
    /// Its name.
    pub session: String,
    /// Its cells, by row.
    pub rows: BTreeMap<&'static str, Cell>,
    /// The least that is possible, without and with what lost content costs.
    pub limit_usd: Option<(f64, f64)>,
}

/// A row over all sessions.
#[derive(Clone, Debug, Serialize)]
pub struct Sum {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it is one of ours.
    pub is_ours: bool,
    /// US dollars.
    pub cost_usd: f64,
    /// With what lost content costs.
    pub total_usd: f64,
    /// The total against that of `none`, of `classic` and of the clairvoyant.
    pub against_none: Option<f64>,
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
    /// Characters of what was missing.
    pub fault_characters: u64,
    /// Of these, read again in the 30 calls behind a compaction.
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

impl Findings {
    pub(crate) fn new(plan: &Plan, sessions: &[SessionCells], failures: Vec<String>) -> Findings {
        let mut tables = Vec::new();
        for (model, name) in plan.models.iter().enumerate() {
            for window in plan.windows.iter().rev() {
                let setup = Setup { model, window: *window };
                tables.push(Table::new(plan, name.clone(), setup, sessions));
            }
        }
        let calls = sessions.iter().map(|session| session.calls).sum();
        let rhythms: Vec<&[Rhythm]> = sessions.iter().map(|session| session.rhythms.as_slice()).collect();
        let mut lines = Lines::default();
        sessions.iter().for_each(|session| lines.absorb(&session.lines));
        let condensed = lines.condensed.into_iter();
        let condensing = condensed.map(|((aim, by), sum)| CondensingRow { aim, by, sum });
        Findings {
            sessions: sessions.len(),
            calls,
            failures,
            forecast: Forecasting::of(&rhythms),
            condensing: condensing.collect(),
            tools: lines.tools,
            tables,
        }
    }
}

impl Table {
    fn new(plan: &Plan, model: Option<String>, setup: Setup, sessions: &[SessionCells]) -> Table {
        let rows: Vec<Sum> = plan
            .rows
            .iter()
            .map(|row| {
                let sum = Sum::new(row, setup, sessions);
                sum.against(setup, sessions)
            })
            .collect();
        let limits: Vec<&Clairvoyant> =
            sessions.iter().filter_map(|session| session.clairvoyant.get(&setup)).collect();
        let points = limits.iter().map(|limit| limit.frontier.len()).max().unwrap_or(0);
        let frontier = (0..points).map(|at| {
            let mut point = Point::default();
            for limit in limits.iter().filter_map(|limit| limit.frontier.get(at)) {
                point.total_usd += limit.total_usd();
                point.loss_usd += limit.loss_usd;
                point.page_faults += u64::from(limit.faults);
                point.compactions += u64::from(limit.compactions);
            }
            point
        });
        let by_session = sessions.iter().map(|session| SessionRow {
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
        Table {
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
    pub fn row(&self, name: &str) -> Option<&Sum> {
        self.rows.iter().find(|row| row.name == name)
    }
}

fn is_priced(session: &SessionCells, setup: Setup) -> bool {
    session.cells.get(&(setup, NONE)).is_some_and(|cell| cell.total_usd().is_some())
}

impl Sum {
    fn new(row: &crate::Row, setup: Setup, sessions: &[SessionCells]) -> Sum {
        let cells: Vec<&Cell> =
            sessions.iter().filter_map(|session| session.cells.get(&(setup, row.name))).collect();
        let sum = |of: fn(&Cell) -> u64| cells.iter().map(|cell| of(cell)).sum::<u64>();
        let money = |of: fn(&Cell) -> Option<f64>| cells.iter().filter_map(|cell| of(cell)).sum::<f64>();
        let (read, prompt) = (sum(|cell| cell.tokens.cache_read), sum(|cell| cell.tokens.prompt()));
        let mut engine: Vec<u64> = cells.iter().map(|cell| cell.engine_us.0).collect();
        engine.sort_unstable();
        Sum {
            name: row.name,
            about: row.about,
            is_ours: row.is_ours,
            cost_usd: money(|cell| cell.total_usd().and(cell.cost_usd)),
            total_usd: money(Cell::total_usd),
            against_none: None,
            against_classic: None,
            against_clairvoyant: None,
            worst_against_none: None,
            hit_ratio: if prompt == 0 { 0.0 } else { read as f64 / prompt as f64 },
            compactions: sum(|cell| cell.compactions),
            page_faults: sum(|cell| cell.page_faults),
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
    fn against(mut self, setup: Setup, sessions: &[SessionCells]) -> Sum {
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
        let worst = none.iter().filter(|pair| pair.1 > 0.0).map(|pair| pair.0 / pair.1);
        self.worst_against_none = worst.max_by(f64::total_cmp);
        self.against_classic = ratio(&pairs(&|session| of(session, CLASSIC)));
        self.against_clairvoyant =
            ratio(&pairs(&|session| Some(session.clairvoyant.get(&setup)?.frontier.first()?.total_usd())));
        self
    }
}
