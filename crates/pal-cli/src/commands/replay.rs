//! `pal replay`: replays recorded sessions against the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use pal_context::NotesCadence;
use pal_engine::EngineError;
use pal_eval::replay::{
    NotesAudit, RecordedSession, ReplayError, ReplayNoteWriter, ReplayNotes, ReplayOptions, ReplayPolicy,
    ReplayReport, ReplaySummarizer, ReplayTotals, group_notices, replay as replay_one,
};
use pal_model::text::{group_digits, truncate_chars};
use pal_report::{TextTable, draw_bar, sanitize};
use pal_settings::PolicySetting;

use crate::arguments::{LayerArg, NotesArg, PolicyArg, ReplayArgs, ReplaySummaryArg};
use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::print_notice;
use crate::settings::Settings;
use crate::terminal_style::{auto_style, bold, yellow};

/// Maximum cache breaks and lost messages that are shown per session.
const SHOWN_MAX: usize = 5;

pub(crate) fn replay(
    arguments: &ReplayArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    match arguments.policy {
        PolicyArg::Classic => warn_former_policy("classic", "threshold"),
        PolicyArg::Thrifty => warn_former_policy("thrifty", "cost-aware"),
        PolicyArg::None | PolicyArg::Threshold | PolicyArg::CostAware => {}
    }
    if let Some(why) = settings.compaction_off().filter(|_| auto_compact(arguments)) {
        print_notice(format_args!("automatic compaction is switched off by {why}"));
    }
    let jobs = jobs(arguments, settings);
    let mut reports = Vec::new();
    let mut failures = 0;
    let mut is_good = true;
    let mut is_read = Ok(());
    replay_all(&jobs, settings, |done| match done {
        Ok(report) => {
            is_good &= is_lossless(&report, arguments.policy);
            if !arguments.json {
                reports.push(report);
            } else if is_read.is_ok() {
                let line = serde_json::to_string(&report).unwrap_or_default();
                is_read = writeln!(out, "{line}").and_then(|()| out.flush());
            }
        }
        Err(failure) => {
            eprintln!("{failure}");
            failures += 1;
        }
    });
    is_read?;
    match reports.as_slice() {
        [] => {}
        [report] => print(report, out)?,
        reports => print_many(reports, out)?,
    }
    if failures > 0 && arguments.files.len() > 1 {
        print_notice(format_args!("{failures} of {} files were not replayed", arguments.files.len()));
    }
    Ok(if failures > 0 || !is_good { ExitCode::from(crate::exit_codes::ERROR) } else { ExitCode::SUCCESS })
}

/// Warns that a policy has a new name.
pub(super) fn warn_former_policy(former: &str, current: &str) {
    print_notice(format_args!(
        "the policy `{former}` is now `{current}`; the old name will be removed in the next release"
    ));
}

/// Tells whether a policy of pal lost no message and sent no refused request. A recording without one always passes.
fn is_lossless(report: &ReplayReport, policy: PolicyArg) -> bool {
    policy == PolicyArg::None || (report.lost.is_empty() && report.rejected == 0)
}

/// A file to replay with its options.
struct ReplayJob<'a> {
    file: &'a Path,
    options: ReplayOptions,
}

fn jobs<'a>(arguments: &'a ReplayArgs, settings: &Settings) -> Vec<ReplayJob<'a>> {
    let names = names(&arguments.files);
    let folder = |name: String| arguments.out.as_ref().map(|out| out.join(name));
    let options = |name: String| ReplayOptions {
        cards: settings.cards.clone(),
        model: arguments.model.clone(),
        window: arguments.window,
        policy: match arguments.policy {
            PolicyArg::None => ReplayPolicy::None,
            PolicyArg::Threshold | PolicyArg::Classic => ReplayPolicy::Threshold,
            PolicyArg::CostAware | PolicyArg::Thrifty => ReplayPolicy::CostAware,
        },
        layers: layers(arguments, settings),
        cache_ttl: settings.cache_ttl,
        auto_compact: auto_compact(arguments) && settings.compaction_off().is_none(),
        may_compact: settings.may_compact(),
        compact_with: match arguments.compact_with {
            ReplaySummaryArg::Extractive => ReplaySummarizer::Extractive,
            ReplaySummaryArg::Recorded => ReplaySummarizer::Recorded,
        },
        notes: notes(arguments),
        out: folder(name),
        ..ReplayOptions::plain()
    };
    arguments.files.iter().zip(names).map(|(file, name)| ReplayJob { file, options: options(name) }).collect()
}

/// Returns the note-taking options.
fn notes(arguments: &ReplayArgs) -> Option<ReplayNotes> {
    let by = match arguments.notes {
        NotesArg::Off => return None,
        NotesArg::Fork => ReplayNoteWriter::Fork,
        NotesArg::Main => ReplayNoteWriter::Main,
    };
    Some(ReplayNotes { by, writes_whole: arguments.notes_whole, cadence: NotesCadence::default() })
}

/// Tells whether the arguments enable automatic compaction.
fn auto_compact(arguments: &ReplayArgs) -> bool {
    match (&arguments.layers, arguments.policy) {
        (Some(layers), _) => layers.contains(&LayerArg::AutoCompact),
        (None, policy) => policy != PolicyArg::None,
    }
}

/// Builds the context policy from the policy name and the chosen layers.
fn layers(arguments: &ReplayArgs, settings: &Settings) -> pal_context::ContextPolicy {
    let standard = match arguments.policy {
        PolicyArg::None => pal_context::ContextPolicy::none(),
        PolicyArg::Threshold | PolicyArg::Classic => settings.context_policy_of(PolicySetting::Threshold),
        PolicyArg::CostAware | PolicyArg::Thrifty => settings.context_policy_of(PolicySetting::CostAware),
    };
    let Some(chosen) = &arguments.layers else { return standard };
    let has = |layer| chosen.contains(&layer);
    pal_context::ContextPolicy {
        spill: has(LayerArg::Spill),
        condense: has(LayerArg::Condense),
        snip: has(LayerArg::Snip),
        cold_clear: has(LayerArg::Micro),
        warm_clear: has(LayerArg::Micro),
        pressure: has(LayerArg::Micro),
        fold: has(LayerArg::Fold),
        ..standard
    }
}

/// Returns a unique name per file: its stem, with a number if that is taken.
fn names(files: &[PathBuf]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut candidates = std::iter::once(stem.clone()).chain(numbered);
        candidates.find(|name| taken.insert(name.clone())).unwrap_or(stem)
    };
    files.iter().map(name).collect()
}

/// Replays all files on all cores, and passes the results on in the order of the files.
fn replay_all(
    jobs: &[ReplayJob<'_>],
    settings: &Settings,
    mut take: impl FnMut(Result<ReplayReport, Failure>),
) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((at, job)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(at).map(|job| (at, job))
                } {
                    // The receiver waits for all results.
                    let _ = sender.send((at, run(job, settings)));
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let (mut done, mut due) = (0, 0);
        show_progress(0, jobs.len());
        for (at, result) in receiver {
            done += 1;
            waiting.insert(at, result);
            show_progress(done, jobs.len());
            while let Some(result) = waiting.remove(&due) {
                due += 1;
                take(result);
            }
        }
    });
}

fn run(job: &ReplayJob<'_>, settings: &Settings) -> Result<ReplayReport, Failure> {
    let session = LoadedSession::read(job.file, settings)?;
    let recorded = RecordedSession::new(job.file.to_string_lossy(), session.branch);
    let mut report = replay_one(&recorded, &job.options).map_err(|error| failure(job, &error))?;
    report.notices.extend(group_notices(session.problems));
    Ok(report)
}

fn failure(job: &ReplayJob<'_>, error: &ReplayError) -> Failure {
    let what = format!("{}: {error}", job.file.display());
    match error {
        ReplayError::NoModel | ReplayError::Model(_) => Failure::with_hint(what, "name one with --model"),
        ReplayError::Open(_) | ReplayError::File(_) | ReplayError::Engine(EngineError::Open(_))
            if job.options.out.is_some() =>
        {
            Failure::with_hint(what, "name another directory with --out, or remove the existing log")
        }
        _ => Failure::new(what),
    }
}

/// Shows progress on a terminal, if there are several files.
fn show_progress(done: usize, count: usize) {
    if count < 2 || !std::io::stderr().is_terminal() {
        return;
    }
    if done == count {
        eprint!("\r\x1b[2K");
    } else {
        eprint!("\r{:<20} {done}/{count} sessions", draw_bar(done as f64 / count as f64));
    }
}

/// Prints one session: simulated figures beside recorded ones.
fn print(report: &ReplayReport, out: &mut dyn Write) -> Result<(), Failure> {
    let models: Vec<String> = report.models.keys().map(|model| sanitize(model)).collect();
    // Without requests there is no model.
    let models = if models.is_empty() { String::new() } else { format!(" ({})", models.join(", ")) };
    writeln!(out, "{}", bold(&format!("{}{models}", report.file)))?;
    let mut table = TextTable::new(&["", "simulated", "recorded"], &[0]);
    let recorded = (report.recorded.responses > 0).then_some(&report.recorded);
    let mut row = |name: &str, value: &dyn Fn(&ReplayTotals) -> String| {
        let recorded = recorded.map_or_else(|| "–".to_owned(), value);
        table.push_row(vec![name.into(), value(&report.measured), recorded]);
    };
    row("responses", &|of| group_digits(of.responses));
    row("prompt tokens", &|of| group_digits(of.tokens.prompt()));
    row("  read from the cache", &|of| group_digits(of.tokens.cache_read));
    row("  written to the cache", &|of| group_digits(of.tokens.cache_write));
    row("  neither", &|of| group_digits(of.tokens.input));
    row("output tokens", &|of| group_digits(of.tokens.output));
    row("cache hits", &|of| percent(of.cache_hit_ratio));
    row("largest context", &|of| group_digits(of.peak_context_tokens));
    row("cost", &|of| dollars(of.cost_usd));
    table.write(auto_style(), out)?;
    let engine = &report.engine_us;
    writeln!(out, "window {}", group_digits(report.window))?;
    writeln!(
        out,
        "engine time per turn: {} µs (p99 {}, max {})",
        group_digits(engine.p50),
        group_digits(engine.p99),
        group_digits(engine.max)
    )?;
    print_layers(report, out)?;
    print_notes(&[report], out)?;
    print_pings(&[report], out)?;
    print_trouble(report, out)
}

fn print_layers(report: &ReplayReport, out: &mut dyn Write) -> Result<(), Failure> {
    if !report.layers.is_empty() {
        let mut table = TextTable::new(&["layer", "times", "tokens freed"], &[0]);
        for (name, layer) in &report.layers {
            table.push_row(vec![sanitize(name), group_digits(layer.times), group_digits(layer.tokens_freed)]);
        }
        table.write(auto_style(), out)?;
    }
    if !report.compactions.is_empty() {
        const HEADING: [&str; 8] = [
            "compaction",
            "by",
            "before",
            "after",
            "messages",
            "user messages verbatim",
            "paths kept",
            "invented",
        ];
        let mut table = TextTable::new(&HEADING, &[0, 1]);
        for compaction in &report.compactions {
            let audit = &compaction.audit;
            table.push_row(vec![
                sanitize(&compaction.trigger),
                sanitize(&compaction.how),
                group_digits(compaction.before),
                compaction.after.map_or_else(|| "–".to_owned(), group_digits),
                group_digits(compaction.messages),
                format!("{} of {}", audit.user_messages_verbatim, audit.user_messages),
                format!("{} of {}", audit.paths_kept, audit.paths),
                group_digits(audit.invented),
            ]);
        }
        table.write(auto_style(), out)?;
    }
    Ok(())
}

/// Prints the cache keepalive requests, if there were any.
fn print_pings(reports: &[&ReplayReport], out: &mut dyn Write) -> Result<(), Failure> {
    let mut pings = ReplayTotals::default();
    reports.iter().filter_map(|report| report.pings.as_ref()).for_each(|sent| pings.absorb(sent));
    if pings.responses > 0 {
        let (hits, price) = (percent(pings.cache_hit_ratio), dollars(pings.cost_usd));
        writeln!(
            out,
            "{} keepalive requests kept the cache warm; they read {hits} from it and cost {price}",
            pings.responses
        )?;
    }
    Ok(())
}

/// Prints the notes: their cost, the compactions that used them, and what they preserved.
fn print_notes(reports: &[&ReplayReport], out: &mut dyn Write) -> Result<(), Failure> {
    let mut forks = ReplayTotals::default();
    let (mut kept, mut full) = (NotesAudit::default(), NotesAudit::default());
    let (mut updates, mut tokens, mut by, mut cost) = (0, 0, "", 0.0);
    let (mut compactions, mut without_model) = (0, 0);
    for report in reports {
        let Some(notes) = &report.notes else { continue };
        forks.absorb(&notes.forks);
        kept.absorb(&notes.kept);
        full.absorb(&notes.full);
        updates += notes.updates;
        tokens += notes.written_tokens;
        by = notes.by;
        cost += report.measured.cost_usd.unwrap_or(0.0);
        compactions += report.compactions.len();
        without_model += report.compactions.iter().filter(|compaction| compaction.how == "notes").count();
    }
    if by.is_empty() {
        return Ok(());
    }
    let tokens = group_digits(tokens);
    writeln!(
        out,
        "notes by {by}: {updates} updates, {tokens} tokens written; {without_model} of {compactions} compactions used them"
    )?;
    if forks.responses > 0 {
        let own = forks.cost_usd.unwrap_or(0.0);
        let share = percent(own / (cost - own).max(f64::MIN_POSITIVE));
        let (hits, price) = (percent(forks.cache_hit_ratio), dollars(forks.cost_usd));
        writeln!(
            out,
            "their forks read {hits} from the cache and cost {price}, {share} of the conversation"
        )?;
    }
    if kept.summaries > 0 {
        let mut table = TextTable::new(&["before repairs", "notes", "whole summary"], &[0]);
        let mut row = |name: &str, of: &dyn Fn(&NotesAudit) -> String| {
            table.push_row(vec![name.into(), of(&kept), of(&full)]);
        };
        row("summaries", &|of| group_digits(of.summaries));
        row("tokens each", &|of| group_digits(of.tokens / of.summaries.max(1)));
        row("user messages verbatim", &|of| format!("{} of {}", of.user_messages_verbatim, of.user_messages));
        row("edited paths", &|of| format!("{} of {}", of.paths_kept, of.paths));
        row("open tasks", &|of| format!("{} of {}", of.todos_kept, of.todos));
        row("last error", &|of| format!("{} of {}", of.errors_kept, of.errors));
        row("invented paths", &|of| group_digits(of.invented));
        table.write(auto_style(), out)?;
    }
    Ok(())
}

/// Prints notices, cache breaks, refusals and lost messages of a session.
fn print_trouble(report: &ReplayReport, out: &mut dyn Write) -> Result<(), Failure> {
    for notice in &report.notices {
        writeln!(out, "{}", yellow(&sanitize(notice)))?;
    }
    for broken in report.breaks.iter().take(SHOWN_MAX) {
        let why = sanitize(&broken.reason);
        let tokens = group_digits(broken.tokens);
        writeln!(out, "request {}: {tokens} fewer tokens read from the cache: {why}", broken.request)?;
    }
    if report.breaks.len() > SHOWN_MAX {
        writeln!(out, "and {} more cache breaks", report.breaks.len() - SHOWN_MAX)?;
    }
    for rejection in &report.rejections {
        let message = sanitize(&rejection.message);
        let message = truncate_chars(&message, 300);
        writeln!(
            out,
            "{}",
            yellow(&format!("request {} was refused ({}): {message}", rejection.request, rejection.status))
        )?;
    }
    let more = report.rejected - report.rejections.len() as u64;
    if more > 0 {
        writeln!(out, "and {} more refused requests", group_digits(more))?;
    }
    for lost in report.lost.iter().take(SHOWN_MAX) {
        writeln!(out, "{}", yellow(&format!("lost: {}", sanitize(&lost.text))))?;
    }
    Ok(())
}

/// Prints one row per session, and the totals.
fn print_many(reports: &[ReplayReport], out: &mut dyn Write) -> Result<(), Failure> {
    // Fits eighty columns.
    const HEADING: [&str; 11] =
        ["session", "calls", "refused", "hits", "was", "cost", "was", "peak", "comp.", "breaks", "µs"];
    let mut table = TextTable::new(&HEADING, &[0]);
    let (mut simulated, mut recorded) = (ReplayTotals::default(), ReplayTotals::default());
    for report in reports {
        simulated.absorb(&report.measured);
        recorded.absorb(&report.recorded);
        let name = Path::new(&report.file).file_name().map(|name| name.to_string_lossy().into_owned());
        let counts = RowCounts {
            requests: report.requests,
            rejected: report.rejected,
            compactions: report.compactions.len(),
            breaks: report.breaks.len(),
            engine: group_digits(report.engine_us.p50),
        };
        let name = shortened(&sanitize(&name.unwrap_or_default()));
        table.push_row(row(name, &report.measured, &report.recorded, &counts));
    }
    let sum = |count: fn(&ReplayReport) -> u64| reports.iter().map(count).sum::<u64>();
    let counts = RowCounts {
        requests: sum(|report| report.requests),
        rejected: sum(|report| report.rejected),
        compactions: reports.iter().map(|report| report.compactions.len()).sum(),
        breaks: reports.iter().map(|report| report.breaks.len()).sum(),
        engine: String::new(),
    };
    table.push_row(row(format!("{} sessions", reports.len()), &simulated, &recorded, &counts));
    table.write(auto_style(), out)?;
    print_notes(&reports.iter().collect::<Vec<_>>(), out)?;
    print_pings(&reports.iter().collect::<Vec<_>>(), out)?;
    let lost: usize = reports.iter().map(|report| report.lost.len()).sum();
    if lost > 0 {
        writeln!(out, "{}", yellow(&format!("{lost} user messages were lost")))?;
    }
    for report in reports {
        if let Some(rejection) = report.rejections.first() {
            let message = sanitize(&rejection.message);
            let message = truncate_chars(&message, 200);
            let line = format!("{}: request {} was refused: {message}", report.file, rejection.request);
            writeln!(out, "{}", yellow(&line))?;
        }
    }
    let notices: usize = reports.iter().map(|report| report.notices.len()).sum();
    let more = if notices > 0 { format!(" ({notices} notices)") } else { String::new() };
    writeln!(out, "calls: requests sent; was: as recorded; µs: median engine time per turn")?;
    writeln!(out, "replay a single file for details{more}")?;
    Ok(())
}

/// Shortens a name to its start and end, to leave room for the figures.
fn shortened(name: &str) -> String {
    const MAX: usize = 17;
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= MAX {
        return name.to_owned();
    }
    let (head, tail) = (&characters[..9], &characters[characters.len() - 7..]);
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// Counts of a table row besides tokens and cost.
struct RowCounts {
    requests: u64,
    rejected: u64,
    compactions: usize,
    breaks: usize,
    engine: String,
}

fn row(name: String, simulated: &ReplayTotals, recorded: &ReplayTotals, counts: &RowCounts) -> Vec<String> {
    let known = |text: String| if recorded.responses > 0 { text } else { "–".to_owned() };
    vec![
        name,
        group_digits(counts.requests),
        group_digits(counts.rejected),
        percent(simulated.cache_hit_ratio),
        known(percent(recorded.cache_hit_ratio)),
        dollars(simulated.cost_usd),
        known(dollars(recorded.cost_usd)),
        group_digits(simulated.peak_context_tokens),
        group_digits(counts.compactions as u64),
        group_digits(counts.breaks as u64),
        counts.engine.clone(),
    ]
}

/// Formats a cost; a dash if the price is unknown.
fn dollars(cost: Option<f64>) -> String {
    cost.map_or_else(|| "–".to_owned(), |cost| format!("${cost:.2}"))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_folder_of_its_own() {
        let files = ["a/x.jsonl", "b/x.jsonl", "x-2.jsonl", "c/x.json"].map(PathBuf::from);
        assert_eq!(names(&files), ["x", "x-2", "x-2-2", "x-3"]);
    }
}
