//! What a session costs under other policies, from replays against the simulator.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use pal_eval::comparison::{
    AS_RECORDED, CostSaving, EvalProgress, PolicySavings, RecordedCost, SavingsOptions, SavingsRow,
    WindowBasis, measure_savings,
};
use pal_eval::replay::{RecordedSession, ReplayError};
use pal_model::text::{count_noun, group_digits};
use pal_report::{
    TextStyle, TextTable, draw_bar, format_count, format_percent, format_usd, sanitize, wrap_lines,
};
use pal_settings::PolicySetting;

use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::Notices;
use crate::settings::Settings;

/// Time after which progress is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two updates of it.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Smaller shares of a cost are not a difference.
const SAME_SHARE: f64 = 0.0005;
/// A replay that differs by more from what was recorded is explained.
const NOTEWORTHY_SHARE: f64 = 0.01;

/// Replays a session file under our policies.
pub(super) fn measure(
    path: &Path,
    window: Option<u64>,
    settings: &Settings,
    notices: &Notices,
) -> Result<PolicySavings, Failure> {
    let session = LoadedSession::read(path, settings)?;
    let recorded = RecordedSession::new(path.to_string_lossy(), session.branch);
    if let Some(why) = settings.compaction_off() {
        notices.add(format_args!("automatic compaction is switched off by {why}"));
    }
    let options = SavingsOptions {
        cards: settings.cards.clone(),
        window,
        threshold: settings.context_policy_of(PolicySetting::Threshold),
        cost_aware: settings.context_policy_of(PolicySetting::CostAware),
        auto_compact: settings.compaction_off().is_none(),
        may_compact: settings.may_compact(),
    };
    let mut progress = ReplayProgressLine::new();
    let savings = measure_savings(&recorded, &options, &mut |now| progress.show(now));
    progress.end();
    savings.map_err(|error| failure(path, &error))
}

fn failure(path: &Path, error: &ReplayError) -> Failure {
    let what = format!("{}: {error}", path.display());
    match error {
        ReplayError::NoModel | ReplayError::Model(_) => {
            Failure::with_hint(what, "`pal replay --model MODEL FILE` replays it with a model that you name")
        }
        _ => Failure::new(what),
    }
}

/// Writes the comparison for people, in at most `columns` columns.
pub(super) fn write(
    savings: &PolicySavings,
    style: TextStyle,
    columns: usize,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let models: Vec<String> = savings.models.keys().map(|model| sanitize(model)).collect();
    let window = group_digits(savings.window);
    let heading = format!("Other policies: {}, window {window}", models.join(", "));
    for line in wrap_lines(&heading, columns) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    let heading = ["", "prompt", "cost", "re-reads", "with re-reads", "cached", "compactions"];
    let mut table = TextTable::new(&heading, &[0]);
    table.push_row(recorded_row(&savings.recorded));
    savings.replays.iter().for_each(|row| table.push_row(replay_row(row)));
    table.write(style, out)?;
    writeln!(out)?;
    for paragraph in paragraphs(savings) {
        for line in wrap_lines(&paragraph, columns) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn recorded_row(recorded: &RecordedCost) -> Vec<String> {
    let name = if is_simulated(recorded) { "simulated" } else { "paid" };
    // As in the other tables of the command: a part of the sum is missing.
    let more = if recorded.unreported + recorded.unpriced > 0 { "+" } else { "" };
    vec![
        name.into(),
        format!("{}{}", format_count(recorded.prompt_tokens), if recorded.unreported > 0 { "+" } else { "" }),
        recorded.cost_usd.map_or_else(unknown, |cost| format!("{}{more}", format_usd(cost))),
        unknown(),
        unknown(),
        recorded.cache_hit_ratio.map_or_else(unknown, format_percent),
        group_digits(recorded.compactions),
    ]
}

fn replay_row(row: &SavingsRow) -> Vec<String> {
    let usd = |usd: Option<f64>| usd.map_or_else(unknown, format_usd);
    vec![
        row.policy.into(),
        format_count(row.totals.tokens.prompt()),
        usd(row.totals.cost_usd),
        usd(row.rereads_usd),
        usd(row.total_usd),
        format_percent(row.totals.cache_hit_ratio),
        group_digits(row.compactions),
    ]
}

fn unknown() -> String {
    String::from("–")
}

/// True if nothing was paid because a simulator answered every request.
fn is_simulated(recorded: &RecordedCost) -> bool {
    recorded.requests > 0 && recorded.simulated == recorded.requests
}

/// Text below the table: the savings, then their limits.
fn paragraphs(savings: &PolicySavings) -> Vec<String> {
    let mut all = vec![saved_sentence(savings)];
    let recorded = &savings.recorded;
    let name = if is_simulated(recorded) {
        "`simulated` is what the simulator counted"
    } else {
        "`paid` is what the provider counted"
    };
    all.push(format!(
        "{name}; every other row is a replay against the simulator, in which the model answers as recorded. `as recorded` keeps \
         the decisions and compactions of the recording, `none` sends everything until the window is full. re-reads: the \
         estimated cost of reading again what was dropped."
    ));
    all.extend(replay_gap(savings));
    all.extend(window_note(savings));
    all.extend(missing_summaries(recorded));
    if recorded.unreported > 0 {
        let requests = count_noun(recorded.unreported as usize, "request");
        all.push(format!("{requests} did not report usage and are missing from what was recorded."));
    }
    if recorded.simulated > 0 {
        let requests = count_noun(recorded.simulated as usize, "request");
        all.push(format!("{requests} went to the simulator: that money was not spent."));
    }
    if recorded.other_usd > 0.0 {
        let cost = format_usd(recorded.other_usd);
        all.push(format!(
            "Other requests of the session, such as titles and memory, cost {cost} and are in no row."
        ));
    }
    for row in savings.replays.iter().filter(|row| row.refused > 0) {
        let requests = count_noun(row.refused as usize, "request");
        all.push(format!(
            "The simulator refused {requests} of `{}`; its sums are too low, so they are compared with nothing.",
            row.policy
        ));
    }
    all.extend(savings.notices.iter().map(|notice| sanitize(notice)));
    all
}

/// The savings of each policy, or the reason why there are none to state.
fn saved_sentence(savings: &PolicySavings) -> String {
    if !savings.unpriced_models.is_empty() {
        let models: Vec<String> = savings.unpriced_models.iter().map(|model| sanitize(model)).collect();
        return format!(
            "The price of {} is not known, so no saving can be stated: add prices to models.toml.",
            models.join(", ")
        );
    }
    let clauses: Vec<String> = savings.replays.iter().filter_map(clause).collect();
    if clauses.is_empty() {
        return String::from("No saving can be stated.");
    }
    format!("With re-reads, {}.", clauses.join("; "))
}

/// Savings of one replay; none if there is nothing to compare it with.
fn clause(row: &SavingsRow) -> Option<String> {
    let against_none = row.saved_against_none.map(|saved| difference(saved, "`none`"));
    if row.policy == AS_RECORDED {
        return against_none.map(|saved| format!("the session as recorded {saved}"));
    }
    if let (Some(none), Some(client)) = (row.saved_against_none, row.saved_against_recorded)
        && is_same(none)
        && is_same(client)
    {
        return Some(format!("`{}` costs the same as both", row.policy));
    }
    let against_none = against_none?;
    let against_client = row.saved_against_recorded.map(|saved| difference(saved, "the recorded client"));
    let both = [Some(against_none), against_client].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    Some(format!("`{}` {both}", row.policy))
}

/// A saving in words: `saves $1.2000 (5.1%) against …`.
fn difference(saved: CostSaving, other: &str) -> String {
    let (usd, share) = (format_usd(saved.usd.abs()), format_percent(saved.share.abs()));
    if is_same(saved) {
        format!("costs the same as {other}")
    } else if saved.usd > 0.0 {
        format!("saves {usd} ({share}) against {other}")
    } else {
        format!("costs {usd} ({share}) more than {other}")
    }
}

fn is_same(saved: CostSaving) -> bool {
    saved.share.abs() < SAME_SHARE
}

/// How far the replay of the recorded client is from what was paid, if that matters.
fn replay_gap(savings: &PolicySavings) -> Option<String> {
    let recorded = &savings.recorded;
    let replay = savings.replay(AS_RECORDED)?;
    let (paid, replayed) = (recorded.whole_usd()?, replay.totals.cost_usd?);
    let saved = CostSaving::between(replayed, paid).filter(|saved| saved.share.abs() > NOTEWORTHY_SHARE)?;
    let more = if saved.usd > 0.0 { "less" } else { "more" };
    let estimated = match recorded.estimated {
        0 => String::new(),
        count => format!(" (estimated for {})", count_noun(count as usize, "request")),
    };
    let (here, there) = (replay.totals.tokens.output, recorded.output_tokens);
    let outputs = format!(
        "the replay has {} output tokens, the recording {}{estimated}; ",
        group_digits(here),
        group_digits(there)
    );
    let outputs = if here == there { String::new() } else { outputs };
    Some(format!(
        "The replay as recorded costs {} ({}) {more} than the recording: {outputs}the simulator's cache and token counts are not \
         the provider's. So savings are stated between replays.",
        format_usd(saved.usd.abs()),
        format_percent(saved.share.abs()),
    ))
}

fn window_note(savings: &PolicySavings) -> Option<String> {
    (savings.window_basis == WindowBasis::Compactions).then(|| {
        String::from(
            "The model has a larger window. The recorded client compacted before that was full, and this is the window in which \
             pal compacts at the same size; --window N chooses another.",
        )
    })
}

fn missing_summaries(recorded: &RecordedCost) -> Option<String> {
    let summaries = match recorded.unrecorded_summaries {
        0 => return None,
        count => count_noun(count as usize, "compaction"),
    };
    Some(format!(
        "The transcript lacks the requests that wrote the summaries of {summaries}: they are missing from the first two rows, \
         which makes the recorded client look cheaper than it was."
    ))
}

/// A line about running replays on a terminal, shown after [`PROGRESS_DELAY`].
struct ReplayProgressLine {
    begun: Instant,
    shown_at: Option<Instant>,
    is_terminal: bool,
}

impl ReplayProgressLine {
    fn new() -> ReplayProgressLine {
        ReplayProgressLine {
            begun: Instant::now(),
            shown_at: None,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, progress: EvalProgress) {
        let is_recent = self.shown_at.is_some_and(|at| at.elapsed() < PROGRESS_INTERVAL);
        if !self.is_terminal || is_recent || self.begun.elapsed() < PROGRESS_DELAY {
            return;
        }
        self.shown_at = Some(Instant::now());
        let EvalProgress { done, count } = progress;
        let share = done as f64 / count.max(1) as f64;
        eprint!("\r{:<20} {done}/{count} requests replayed", draw_bar(share));
    }

    /// Clears the line.
    fn end(&self) {
        if self.shown_at.is_some() {
            eprint!("\r\x1b[2K");
        }
    }
}
