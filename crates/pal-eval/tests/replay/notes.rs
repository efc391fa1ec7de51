//! Recorded sessions with notes, written by a fork and by the agent itself: compactions use them, lose no user message, and the
//! content lost compared with a full summary is measured.

use std::path::PathBuf;

use pal_context::NotesCadence;
use pal_eval::replay::{
    NotesAudit, ReplayNoteWriter, ReplayNotes, ReplayOptions, ReplayReport, ReplayTotals, replay,
};
use pal_testkit::{has_all_recorded_sessions, map_on_all_cores, session_files};

use crate::sessions::{recorded, threshold};

/// The window that most models have.
const WINDOW: u64 = 200_000;
/// The longest sessions, which are replayed with notes that the agent writes itself, and in a sample.
const SESSIONS: usize = 4;
/// Bars for notes by a fork: compactions without a model call, share of cache reads, and maximum cost.
const FREE_MIN: f64 = 0.9;
const CACHED_MIN: f64 = 0.95;
const COST_MAX: f64 = 0.08;

fn with_notes(by: ReplayNoteWriter) -> ReplayOptions {
    let notes = ReplayNotes { by, writes_whole: false, cadence: NotesCadence::default() };
    ReplayOptions { notes: Some(notes), ..threshold(Some(WINDOW)) }
}

/// The longest sessions first.
fn files() -> Vec<PathBuf> {
    let mut files = session_files();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())));
    files
}

/// Number of compactions there were, and how many asked no model.
fn compactions(reports: &[ReplayReport]) -> (usize, usize) {
    let all = reports.iter().flat_map(|report| &report.compactions);
    let free = all.clone().filter(|compaction| compaction.how == "notes").count();
    (all.count(), free)
}

fn sums(reports: &[ReplayReport]) -> (ReplayTotals, ReplayTotals, NotesAudit, NotesAudit) {
    let (mut whole, mut forks) = (ReplayTotals::default(), ReplayTotals::default());
    let (mut kept, mut full) = (NotesAudit::default(), NotesAudit::default());
    for report in reports {
        let notes = report.notes.as_ref().unwrap();
        whole.absorb(&report.measured);
        forks.absorb(&notes.forks);
        kept.absorb(&notes.kept);
        full.absorb(&notes.full);
    }
    (whole, forks, kept, full)
}

/// Whatever keeps notes: nothing is refused or lost, no word of the user is out of reach, and what notes lose is known.
fn check(by: ReplayNoteWriter, reports: &[ReplayReport]) {
    let (all, free) = compactions(reports);
    let (_, forks, kept, full) = sums(reports);
    println!("{by:?}: {free} of {all} compactions took notes; {kept:?} against {full:?}");
    assert!(free > 0, "{by:?}: none of {all}");
    for report in reports {
        assert_eq!((report.rejected, report.lost.len()), (0, 0), "{by:?}: {}", report.file);
        for compaction in &report.compactions {
            let audit = compaction.audit;
            let found = audit.user_messages_verbatim + audit.user_messages_by_pointer;
            assert!(found >= audit.user_messages, "{by:?}: {} {compaction:?}", report.file);
        }
    }
    assert_eq!((kept.summaries, full.summaries), (free as u64, free as u64), "{by:?}");
    assert_eq!(kept.invented, 0, "{by:?}");
    assert_eq!(
        forks.responses > 0,
        by == ReplayNoteWriter::Fork,
        "the agent itself makes no requests for them"
    );
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_compact_by_notes_of_a_fork() {
    let mut files = files();
    if !has_all_recorded_sessions() {
        files.truncate(SESSIONS);
    }
    let reports = map_on_all_cores(&files, |file| {
        replay(&recorded(file), &with_notes(ReplayNoteWriter::Fork)).unwrap()
    });
    check(ReplayNoteWriter::Fork, &reports);
    // The bars are for the sum of all sessions.
    if !has_all_recorded_sessions() {
        return;
    }
    let (all, free) = compactions(&reports);
    assert!(free as f64 >= FREE_MIN * all as f64, "{free} of {all}");
    let (whole, forks, ..) = sums(&reports);
    assert!(forks.cache_hit_ratio >= CACHED_MIN, "{:.4} cached", forks.cache_hit_ratio);
    let own = forks.cost_usd.unwrap();
    let share = own / (whole.cost_usd.unwrap() - own);
    println!("{:.2} % cached, {:.2} % of the cost", 100.0 * forks.cache_hit_ratio, 100.0 * share);
    assert!(share <= COST_MAX, "{:.4} of the cost", share);
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_compact_by_notes_of_the_agent() {
    let files = files();
    let longest = &files[..SESSIONS.min(files.len())];
    let reports = map_on_all_cores(longest, |file| {
        replay(&recorded(file), &with_notes(ReplayNoteWriter::Main)).unwrap()
    });
    if !reports.is_empty() {
        check(ReplayNoteWriter::Main, &reports);
    }
}

/// Prints the figures of all sessions, at three windows, without notes and with them by both ways.
#[test]
#[ignore = "prints figures of all sessions, which takes minutes"]
fn figures_of_notes() {
    let files = files();
    let taking = |by, writes_whole| Some(ReplayNotes { by, writes_whole, cadence: NotesCadence::default() });
    let ways = [
        ("off", None),
        ("fork, edits", taking(ReplayNoteWriter::Fork, false)),
        ("fork, whole", taking(ReplayNoteWriter::Fork, true)),
        ("main, edits", taking(ReplayNoteWriter::Main, false)),
    ];
    for window in [Some(200_000), Some(60_000), None] {
        for (way, notes) in ways {
            let options = ReplayOptions { notes, ..threshold(window) };
            let reports = map_on_all_cores(&files, |file| replay(&recorded(file), &options).unwrap());
            tell(window, way, &reports);
        }
    }
}

fn tell(window: Option<u64>, way: &str, reports: &[ReplayReport]) {
    let (all, free) = compactions(reports);
    let mut whole = ReplayTotals::default();
    reports.iter().for_each(|report| whole.absorb(&report.measured));
    let cost = whole.cost_usd.unwrap_or(0.0);
    println!("## {window:?} {way}: {free} of {all} compactions took notes, ${cost:.2}");
    let mut why = std::collections::BTreeMap::<&str, usize>::new();
    for notice in reports.iter().flat_map(|report| &report.notices) {
        if let Some((_, reason)) = notice.split_once("compaction: notes: ") {
            *why.entry(reason).or_default() += 1;
        }
    }
    println!("   not taken: {why:?}");
    if reports.iter().all(|report| report.notes.is_some()) {
        let (_, forks, kept, full) = sums(reports);
        let notes = || reports.iter().filter_map(|report| report.notes.as_ref());
        let own = forks.cost_usd.unwrap_or(0.0);
        println!(
            "   {} updates, {} tokens written, {} of reminders, longest {}, {} late; forks: {:.2} % cached, ${own:.2}, {:.2} %",
            notes().map(|notes| notes.updates).sum::<u64>(),
            notes().map(|notes| notes.written_tokens).sum::<u64>(),
            notes().map(|notes| notes.reminder_tokens).sum::<u64>(),
            notes().map(|notes| notes.longest).max().unwrap_or(0),
            notes().map(|notes| notes.late).sum::<u64>(),
            100.0 * forks.cache_hit_ratio,
            100.0 * own / (cost - own),
        );
        println!("   notes: {kept:?}\n   whole: {full:?}");
    }
}
