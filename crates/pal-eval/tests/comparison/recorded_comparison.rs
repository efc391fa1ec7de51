//! Comparisons over a few recorded sessions: every row runs, and the report is consistent. `PAL_LAB_OUT=DIR` measures all sessions and
//! writes the report there; `PAL_LAB_POLICIES` and `PAL_LAB_FILES` (names, or parts of them, separated by commas) take only some.

use std::path::{Path, PathBuf};

use pal_eval::comparison::{EvalPlan, POLICY_ROWS, PolicyRow, run_evaluation};
use pal_eval::replay::RecordedSession;
use pal_model::ModelCatalog;
use pal_testkit::{read_entries, session_files};
use pal_view::CardEstimator;

fn recorded(file: &Path) -> Result<RecordedSession, String> {
    let cards = ModelCatalog::built_in();
    let entries = read_entries(file, &CardEstimator { cards: &cards }).map_err(|error| error.to_string())?;
    Ok(RecordedSession::new(file.to_string_lossy(), entries))
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_are_compared() {
    let out = std::env::var_os("PAL_LAB_OUT").map(PathBuf::from);
    let mut files = session_files();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())));
    if out.is_none() {
        // Of Claude Code, a long one and a short one.
        let is_wanted = |file: &PathBuf| {
            let name = file.to_string_lossy();
            ["8ecab05f", "0fccf939"].iter().any(|wanted| name.contains(wanted))
        };
        files.retain(is_wanted);
    }
    let named = |variable: &str| {
        std::env::var(variable).ok().map(|names| names.split(',').map(str::to_owned).collect())
    };
    let policies: Option<Vec<String>> = named("PAL_LAB_POLICIES");
    let parts: Option<Vec<String>> = named("PAL_LAB_FILES");
    files.retain(|file| {
        parts.as_ref().is_none_or(|parts| parts.iter().any(|part| file.to_string_lossy().contains(part)))
    });
    if files.is_empty() {
        return;
    }
    let is_wanted =
        |row: &&PolicyRow| policies.as_ref().is_none_or(|names| names.iter().any(|name| name == row.name));
    let plan = EvalPlan {
        rows: POLICY_ROWS.iter().filter(is_wanted).collect(),
        models: vec![None],
        windows: vec![200_000, 1_000_000],
        cards: ModelCatalog::built_in(),
    };
    let start = std::time::Instant::now();
    let findings = run_evaluation(&plan, files.len(), &|at| recorded(&files[at]), &mut |_| {});
    println!("{} sessions in {:.1} s", findings.sessions, start.elapsed().as_secs_f64());
    println!("{}", findings.markdown());
    if let Some(out) = out {
        findings.write(&out).unwrap();
        return;
    }
    assert!(findings.failures.is_empty() && findings.sessions == 2, "{:?}", findings.failures);
    let [small, large] = findings.tables.as_slice() else { panic!("two windows") };
    for table in [small, large] {
        let of = |name: &str| table.row(name).unwrap();
        for row in &table.rows {
            assert!(row.refused == 0 && row.cost_usd > 0.0 && row.total_usd >= row.cost_usd, "{row:?}");
            assert!(row.against_clairvoyant.unwrap() > 0.97, "beats the limit: {row:?}");
        }
        assert!(of("compact-100k").compactions > of("none").compactions);
        assert!(of("compact-100k").page_faults >= of("none").page_faults);
        // The optimum and the simulator agree on the undisputed part.
        let faults: Vec<u64> = table.frontier.iter().map(|point| point.page_faults).collect();
        assert!(faults.is_sorted_by(|one, other| one >= other), "dearer faults are fewer: {faults:?}");
        let costs: Vec<f64> = table.frontier.iter().map(|point| point.total_usd).collect();
        assert!(costs.is_sorted_by(|one, other| *one <= other + 1e-9), "and cost more: {costs:?}");
    }
    let birth = large.row("birth").unwrap();
    assert_eq!(birth.compactions, 0);
    let agreement = large.kept_usd / birth.cost_usd;
    assert!(
        (0.9..1.1).contains(&agreement),
        "{agreement}: {} by the rules, {}",
        large.kept_usd,
        birth.cost_usd
    );
    assert!(large.row("compact-90").unwrap().replays == 0, "nothing is replayed twice");
}
