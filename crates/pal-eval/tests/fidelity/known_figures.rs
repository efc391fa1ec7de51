//! A small log whose figures are counted by hand.

use pal_eval::fidelity::{CompactionFigures, FidelityPlan, FidelityReport, run_fidelity};
use pal_eval::replay::RecordedSession;
use pal_model::ModelCatalog;
use pal_testkit::script;

fn report(log: &str) -> FidelityReport {
    let entries = script(log).unwrap();
    let plan = FidelityPlan { rows: Vec::new(), window: 200_000, cards: ModelCatalog::built_in() };
    run_fidelity(&plan, 1, &|_| Ok(RecordedSession::new("made", entries.clone())), &mut |_| {})
}

fn recorded(report: &FidelityReport) -> &CompactionFigures {
    report.compactions.iter().find(|figures| figures.maker.ends_with(": summary")).unwrap()
}

/// A conversation about two files, up to its compaction.
fn talk(summary: &str) -> String {
    let filler = "nothing of note ".repeat(400);
    format!(
        "tools Read Edit\nuser: Fix the lexer. Never touch build_all.sh, please.\nsent\n\
         model m1: call r1 Read {{\"file_path\":\"/p/lexer.rs\"}}\nresult r1: fn next_token() {{ peek_char() }} {filler}\nsent\n\
         model m2: call r2 Read {{\"file_path\":\"/p/parser.rs\"}}\nresult r2: fn parse_list() {{}} {filler}\nsent\n\
         model m3: Both are read.\nboundary - -: {summary}\nuser: Go on with error_kind.\nsent\n"
    )
}

#[test]
fn facts_files_and_constraints_are_counted() {
    let next = "model m4: call r3 Read {\"file_path\":\"/p/lexer.rs\"}\nresult r3: fn next_token() { peek_char() }\nsent\n\
                model m5: call e1 Edit {\"file_path\":\"/p/lexer.rs\",\"old_string\":\"peek_char()\",\"new_string\":\"error_kind()\"}\n\
                result e1: done\nsent\nmodel m6: Done.\n";
    let report = report(&(talk("The lexer calls peek_char and parse_list.") + next));
    let figures = recorded(&report);
    // Used next: the path of the lexer and peek_char; the user names error_kind. The summary has peek_char.
    assert_eq!(figures.facts, (2, 1), "{figures:?}");
    assert_eq!(figures.lost, ["p/lexer.rs"]);
    // The lexer was shown before and is read again; the edit follows that read.
    assert!(figures.reread_characters.0 > 0 && figures.reread_characters.0 == figures.reread_characters.1);
    assert_eq!(figures.files, (1, 0));
    assert_eq!(figures.constraints, (1, 0));
    assert_eq!(figures.summary_words, (2, 1), "parse_list is never written");
    assert_eq!((figures.call, figures.calls_after, figures.calls_to_edit), (4, 3, Some(2)));
    let ours: Vec<&CompactionFigures> =
        report.compactions.iter().filter(|figures| figures.maker.ends_with("as shipped")).collect();
    assert!(!ours.is_empty() && ours.iter().all(|figures| figures.constraints == (1, 1)), "{ours:?}");
    assert!(report.compactions.iter().all(|figures| figures.facts.0 == 2));
}

#[test]
fn a_summary_that_repeats_the_user_keeps_the_constraint() {
    let report = report(&(talk("Never touch build_all.sh,   please.") + "model m4: Done.\n"));
    assert_eq!(recorded(&report).constraints, (1, 1));
    assert_eq!(recorded(&report).facts, (0, 0));
}

#[test]
fn nothing_is_measured_where_the_session_ends() {
    let log = talk("It goes on.");
    let end = log.find("user: Go on").unwrap();
    assert!(report(&log[..end]).compactions.is_empty());
}
