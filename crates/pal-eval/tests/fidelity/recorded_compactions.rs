//! Compactions of recorded sessions. `PAL_FIDELITY_OUT=DIR` writes the report there.

use std::path::{Path, PathBuf};

use pal_eval::fidelity::{FidelityPlan, FidelityReport, MakerFigures, run_fidelity};
use pal_eval::replay::RecordedSession;
use pal_model::ModelCatalog;
use pal_testkit::{read_entries, session_files};
use pal_view::CardEstimator;

fn recorded(file: &Path) -> Result<RecordedSession, String> {
    let cards = ModelCatalog::built_in();
    let entries = read_entries(file, &CardEstimator { cards: &cards }).map_err(|error| error.to_string())?;
    Ok(RecordedSession::new(file.to_string_lossy(), entries))
}

fn maker<'a>(report: &'a FidelityReport, name: &str) -> &'a MakerFigures {
    report.makers.iter().find(|maker| maker.maker == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_compactions_keep_less_than_ours() {
    let files = session_files();
    let plan = FidelityPlan { rows: Vec::new(), window: 200_000, cards: ModelCatalog::built_in() };
    let report = run_fidelity(&plan, files.len(), &|at| recorded(&files[at]), &mut |_| {});
    println!("{}", report.markdown());
    if let Some(out) = std::env::var_os("PAL_FIDELITY_OUT").map(PathBuf::from) {
        report.write(&out).unwrap();
    }
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    // The sessions in the repository have no compactions of other clients.
    let Some(theirs) = report.makers.iter().find(|maker| maker.maker == "claude-code: summary") else {
        return;
    };
    let same_size = maker(&report, "extracted, claude-code: summary of the same size");
    assert!(same_size.tokens.1 <= theirs.tokens.1, "{same_size:?}");
    assert!(same_size.facts_kept.unwrap() >= 1.25 * theirs.facts_kept.unwrap(), "{same_size:?}");
    for ours in ["extracted, claude-code: as shipped", "notes, claude-code: as shipped"] {
        let ours = maker(&report, ours);
        let baseline = report.reread_baseline.unwrap();
        assert!(ours.reread_characters * 10 <= theirs.reread_characters * 6, "{ours:?}");
        assert!(ours.reread_characters * 2 <= baseline * 3, "{ours:?}");
        assert_eq!(ours.constraints_kept, Some(1.0));
        assert!(ours.files_shown.unwrap() >= 0.7, "{ours:?}");
    }
}
