//! `pal replay`: recorded sessions once more, against the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use pal_context::NotesCadence;
use pal_context::thrifty::Thrift;
use pal_engine::EngineError;
use pal_replay::{
    CompactWith, Kept, Measured, NoteTaking, NotesBy, Options, Policy, Recorded, ReplayError, Report,
    grouped_notices, replay as replay_one,
};

use crate::arguments::{LayerName, NotesName, PolicyName, Replay, SummaryName};
use crate::aside;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Settings;
use crate::table::{Table, bar, bold, harmless, thousands, yellow};

/// Refusals, breaks and lost words that are shown of one session.
const SHOWN_MOST: usize = 5;

pub(crate) fn replay(
    arguments: &Replay,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if let Some(why) = settings.compaction_off().filter(|_| auto_compact(arguments)) {
        aside::tell(format_args!("replayed without automatic compaction: switched off by {why}"));
    }
    let jobs = jobs(arguments, settings);
    let mut reports = Vec::new();
    let mut failures = 0;
    let mut is_good = true;
    let mut is_read = Ok(());
    each(&jobs, settings, |done| match done {
        Ok(report) => {
            is_good &= kept_all(&report, arguments.policy);
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
        aside::tell(format_args!("{failures} of {} files were not replayed", arguments.files.len()));
    }
    Ok(if failures > 0 || !is_good { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Whether a policy of our own kept what was said and sent nothing that was refused. What a recording did without one is
/// not for us to judge.
fn kept_all(report: &Report, policy: PolicyName) -> bool {
    match policy {
        PolicyName::None => true,
        PolicyName::Classic | PolicyName::Thrifty => report.lost.is_empty() && report.rejected == 0,
    }
}

/// One file to replay.
struct Job<'a> {
    file: &'a Path,
    options: Options,
}

fn jobs<'a>(arguments: &'a Replay, settings: &Settings) -> Vec<Job<'a>> {
    let names = names(&arguments.files);
    let folder = |name: String| arguments.out.as_ref().map(|out| out.join(name));
    let options = |name: String| Options {
        cards: settings.cards.clone(),
        model: arguments.model.clone(),
        window: arguments.window,
        policy: match arguments.policy {
            PolicyName::None => Policy::None,
            PolicyName::Classic => Policy::Classic,
            PolicyName::Thrifty => Policy::Thrifty,
        },
        layers: layers(arguments, settings),
        auto_compact: auto_compact(arguments) && settings.compaction_off().is_none(),
        may_compact: settings.may_compact(),
        compact_with: match arguments.compact_with {
            SummaryName::Extractive => CompactWith::Extractive,
            SummaryName::Recorded => CompactWith::Recorded,
        },
        notes: notes(arguments),
        out: folder(name),
        ..Options::plain()
    };
    arguments.files.iter().zip(names).map(|(file, name)| Job { file, options: options(name) }).collect()
}

/// Who keeps notes of the sessions.
fn notes(arguments: &Replay) -> Option<NoteTaking> {
    let by = match arguments.notes {
        NotesName::Off => return None,
        NotesName::Fork => NotesBy::Fork,
        NotesName::Main => NotesBy::Main,
    };
    Some(NoteTaking { by, writes_whole: arguments.notes_whole, cadence: NotesCadence::default() })
}

/// Whether the context is compacted when it is full, as far as the command says.
fn auto_compact(arguments: &Replay) -> bool {
    match (&arguments.layers, arguments.policy) {
        (Some(layers), _) => layers.contains(&LayerName::AutoCompact),
        (None, policy) => policy != PolicyName::None,
    }
}

/// What the layers do that were chosen.
fn layers(arguments: &Replay, settings: &Settings) -> pal_context::Policy {
    let standard = match arguments.policy {
        PolicyName::None => pal_context::Policy::none(),
        PolicyName::Classic => pal_context::Policy::classic(),
        PolicyName::Thrifty => {
            pal_context::Policy::thrifty(Thrift { fidelity: settings.fidelity, pings: settings.pings })
        }
    };
    let Some(chosen) = &arguments.layers else { return standard };
    let has = |layer| chosen.contains(&layer);
    pal_context::Policy {
        spill: has(LayerName::Spill),
        condense: has(LayerName::Condense),
        snip: has(LayerName::Snip),
        cold_clear: has(LayerName::Micro),
        warm_clear: has(LayerName::Micro),
        pressure: has(LayerName::Micro),
        fold: has(LayerName::Fold),
        ..standard
    }
}

/// A name for each file: its own without its ending, and a number where that is taken.
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

/// Replays all files, as many at a time as there are cores, and hands the results over in the order of the files.
fn each(jobs: &[Job<'_>], settings: &Settings, mut take: impl FnMut(Result<Report, Failure>)) {
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
                    // Whoever takes the results waits for all of them.
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

fn run(job: &Job<'_>, settings: &Settings) -> Result<Report, Failure> {
    let session = Session::read(job.file, settings)?;
    let recorded = Recorded::new(job.file.to_string_lossy(), session.branch);
    let mut report = replay_one(&recorded, &job.options).map_err(|error| failure(job, &error))?;
    report.notices.extend(grouped_notices(session.problems));
    Ok(report)
}

fn failure(job: &Job<'_>, error: &ReplayError) -> Failure {
    let what = format!("{}: {error}", job.file.display());
    match error {
        ReplayError::NoModel | ReplayError::Model(_) => Failure::with_hint(what, "name one with --model"),
        ReplayError::Open(_) | ReplayError::File(_) | ReplayError::Engine(EngineError::Open(_))
            if job.options.out.is_some() =>
        {
            Failure::with_hint(what, "name another folder with --out, or remove the log that is there")
        }
        _ => Failure::new(what),
    }
}

/// How far it is, where a person waits for several files.
fn show_progress(done: usize, count: usize) {
    if count < 2 || !std::io::stderr().is_terminal() {
        return;
    }
    if done == count {
        eprint!("\r\x1b[2K");
    } else {
        eprint!("\r{:<20} {done}/{count} sessions", bar(done as f64 / count as f64));
    }
}

/// One session: what the simulator counts beside what was recorded.
fn print(report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    let models: Vec<String> = report.models.keys().map(|model| harmless(model)).collect();
    // Where nothing left no model was asked.
    let models = if models.is_empty() { String::new() } else { format!(" ({})", models.join(", ")) };
    writeln!(out, "{}", bold(&format!("{}{models}", report.file)))?;
    let mut table = Table::new(&["", "simulated", "recorded"], &[0]);
    let recorded = (report.recorded.responses > 0).then_some(&report.recorded);
    let mut row = |name: &str, value: &dyn Fn(&Measured) -> String| {
        let recorded = recorded.map_or_else(|| "–".to_owned(), value);
        table.row(vec![name.into(), value(&report.measured), recorded]);
    };
    row("responses", &|of| thousands(of.responses));
    row("prompt tokens", &|of| thousands(of.tokens.prompt()));
    row("  read from the cache", &|of| thousands(of.tokens.cache_read));
    row("  written to the cache", &|of| thousands(of.tokens.cache_write));
    row("  neither", &|of| thousands(of.tokens.input));
    row("output tokens", &|of| thousands(of.tokens.output));
    row("cache hits", &|of| percent(of.cache_hit_ratio));
    row("largest context", &|of| thousands(of.peak_context_tokens));
    row("cost", &|of| dollars(of.cost_usd));
    table.write(out)?;
    let engine = &report.engine_us;
    writeln!(out, "window {}", thousands(report.window))?;
    writeln!(
        out,
        "the engine took {} µs a turn (p99 {}, most {})",
        thousands(engine.p50),
        thousands(engine.p99),
        thousands(engine.max)
    )?;
    print_layers(report, out)?;
    print_notes(&[report], out)?;
    print_pings(&[report], out)?;
    print_trouble(report, out)
}

fn print_layers(report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    if !report.layers.is_empty() {
        let mut table = Table::new(&["layer", "times", "tokens freed"], &[0]);
        for (name, layer) in &report.layers {
            table.row(vec![harmless(name), thousands(layer.times), thousands(layer.tokens_freed)]);
        }
        table.write(out)?;
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
        let mut table = Table::new(&HEADING, &[0, 1]);
        for compaction in &report.compactions {
            let audit = &compaction.audit;
            table.row(vec![
                harmless(&compaction.trigger),
                harmless(&compaction.how),
                thousands(compaction.before),
                compaction.after.map_or_else(|| "–".to_owned(), thousands),
                thousands(compaction.messages),
                format!("{} of {}", audit.user_messages_verbatim, audit.user_messages),
                format!("{} of {}", audit.paths_kept, audit.paths),
                thousands(audit.invented),
            ]);
        }
        table.write(out)?;
    }
    Ok(())
}

/// What was sent only to keep the cache warm, if anything was.
fn print_pings(reports: &[&Report], out: &mut dyn Write) -> Result<(), Failure> {
    let mut pings = Measured::default();
    reports.iter().filter_map(|report| report.pings.as_ref()).for_each(|sent| pings.absorb(sent));
    if pings.responses > 0 {
        let (hits, price) = (percent(pings.cache_hit_ratio), dollars(pings.cost_usd));
        writeln!(out, "{} pings kept the cache warm, read {hits} from it and cost {price}", pings.responses)?;
    }
    Ok(())
}

/// What notes came to: what they took, how many compactions needed no model for them, and what they kept.
fn print_notes(reports: &[&Report], out: &mut dyn Write) -> Result<(), Failure> {
    let mut forks = Measured::default();
    let (mut kept, mut full) = (Kept::default(), Kept::default());
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
    let tokens = thousands(tokens);
    writeln!(
        out,
        "notes by {by}: {updates} times, {tokens} tokens written; {without_model} of {compactions} compactions took them"
    )?;
    if forks.responses > 0 {
        let own = forks.cost_usd.unwrap_or(0.0);
        let share = percent(own / (cost - own).max(f64::MIN_POSITIVE));
        let (hits, price) = (percent(forks.cache_hit_ratio), dollars(forks.cost_usd));
        writeln!(
            out,
            "their forks read {hits} from the cache and cost {price}, {share} of what the conversation cost"
        )?;
    }
    if kept.summaries > 0 {
        let mut table = Table::new(&["before repairs", "notes", "whole summary"], &[0]);
        let mut row = |name: &str, of: &dyn Fn(&Kept) -> String| {
            table.row(vec![name.into(), of(&kept), of(&full)]);
        };
        row("summaries", &|of| thousands(of.summaries));
        row("tokens each", &|of| thousands(of.tokens / of.summaries.max(1)));
        row("user messages verbatim", &|of| format!("{} of {}", of.user_messages_verbatim, of.user_messages));
        row("edited paths", &|of| format!("{} of {}", of.paths_kept, of.paths));
        row("open tasks", &|of| format!("{} of {}", of.todos_kept, of.todos));
        row("last error", &|of| format!("{} of {}", of.errors_kept, of.errors));
        row("invented paths", &|of| thousands(of.invented));
        table.write(out)?;
    }
    Ok(())
}

/// What went wrong in a session.
fn print_trouble(report: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    for notice in &report.notices {
        writeln!(out, "{}", yellow(&harmless(notice)))?;
    }
    for broken in report.breaks.iter().take(SHOWN_MOST) {
        let why = harmless(&broken.cause.to_string());
        let tokens = thousands(broken.tokens);
        writeln!(out, "request {}: {tokens} tokens fewer from the cache: {why}", broken.request)?;
    }
    if report.breaks.len() > SHOWN_MOST {
        writeln!(out, "and {} more breaks of the cache", report.breaks.len() - SHOWN_MOST)?;
    }
    for rejection in &report.rejections {
        let message: String = harmless(&rejection.message).chars().take(300).collect();
        writeln!(
            out,
            "{}",
            yellow(&format!("request {} was refused ({}): {message}", rejection.request, rejection.status))
        )?;
    }
    let more = report.rejected - report.rejections.len() as u64;
    if more > 0 {
        writeln!(out, "and {} more refused requests", thousands(more))?;
    }
    for lost in report.lost.iter().take(SHOWN_MOST) {
        writeln!(out, "{}", yellow(&format!("lost: {}", harmless(&lost.text))))?;
    }
    Ok(())
}

/// One row a session, and the sums.
fn print_many(reports: &[Report], out: &mut dyn Write) -> Result<(), Failure> {
    // Fits eighty columns.
    const HEADING: [&str; 11] =
        ["session", "calls", "refused", "hits", "was", "cost", "was", "peak", "comp.", "breaks", "µs"];
    let mut table = Table::new(&HEADING, &[0]);
    let (mut simulated, mut recorded) = (Measured::default(), Measured::default());
    for report in reports {
        simulated.absorb(&report.measured);
        recorded.absorb(&report.recorded);
        let name = Path::new(&report.file).file_name().map(|name| name.to_string_lossy().into_owned());
        let counts = Counts {
            requests: report.requests,
            rejected: report.rejected,
            compactions: report.compactions.len(),
            breaks: report.breaks.len(),
            engine: thousands(report.engine_us.p50),
        };
        let name = shortened(&harmless(&name.unwrap_or_default()));
        table.row(row(name, &report.measured, &report.recorded, &counts));
    }
    let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
    let counts = Counts {
        requests: sum(|report| report.requests),
        rejected: sum(|report| report.rejected),
        compactions: reports.iter().map(|report| report.compactions.len()).sum(),
        breaks: reports.iter().map(|report| report.breaks.len()).sum(),
        engine: String::new(),
    };
    table.row(row(format!("{} sessions", reports.len()), &simulated, &recorded, &counts));
    table.write(out)?;
    print_notes(&reports.iter().collect::<Vec<_>>(), out)?;
    print_pings(&reports.iter().collect::<Vec<_>>(), out)?;
    let lost: usize = reports.iter().map(|report| report.lost.len()).sum();
    if lost > 0 {
        writeln!(out, "{}", yellow(&format!("{lost} messages of people were lost")))?;
    }
    for report in reports {
        if let Some(rejection) = report.rejections.first() {
            let message: String = harmless(&rejection.message).chars().take(200).collect();
            let line = format!("{}: request {} was refused: {message}", report.file, rejection.request);
            writeln!(out, "{}", yellow(&line))?;
        }
    }
    let notices: usize = reports.iter().map(|report| report.notices.len()).sum();
    let more = if notices > 0 { format!(" ({notices} notices)") } else { String::new() };
    writeln!(out, "calls: requests that left; was: as recorded; µs: the engine's time a turn, median")?;
    writeln!(out, "replay a file alone to see more of it{more}")?;
    Ok(())
}

/// A name that leaves room for the figures: its beginning and its end.
fn shortened(name: &str) -> String {
    const MOST: usize = 17;
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= MOST {
        return name.to_owned();
    }
    let (head, tail) = (&characters[..9], &characters[characters.len() - 7..]);
    format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// What a row counts besides tokens and money.
struct Counts {
    requests: u64,
    rejected: u64,
    compactions: usize,
    breaks: usize,
    engine: String,
}

fn row(name: String, simulated: &Measured, recorded: &Measured, counts: &Counts) -> Vec<String> {
    let known = |text: String| if recorded.responses > 0 { text } else { "–".to_owned() };
    vec![
        name,
        thousands(counts.requests),
        thousands(counts.rejected),
        percent(simulated.cache_hit_ratio),
        known(percent(recorded.cache_hit_ratio)),
        dollars(simulated.cost_usd),
        known(dollars(recorded.cost_usd)),
        thousands(simulated.peak_context_tokens),
        thousands(counts.compactions as u64),
        thousands(counts.breaks as u64),
        counts.engine.clone(),
    ]
}

/// An amount; models without prices have none.
fn dollars(cost: Option<f64>) -> String {
    cost.map_or_else(|| "–".to_owned(), |cost| format!("${cost:.2}"))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
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
