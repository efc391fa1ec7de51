//! The ledger of every recorded session.

use std::collections::BTreeMap;

use pal_context::CostLedger;
use pal_context::cache::cache_read_drop;
use pal_model::{BreakCause, EntryBody, ModelCatalog};
use pal_testkit::session_files;

use super::adds_up;

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_costs_match_responses_and_drops_have_causes() {
    let cards = ModelCatalog::built_in();
    let (mut cost, mut responses) = (0.0, 0);
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for file in session_files() {
        let entries = pal_testkit::recorded_entries(&file);
        let ledger = CostLedger::from_entries(&entries, &cards);
        let place = file.display();
        let mut paid = 0.0;
        let mut previous: Option<u64> = None;
        let got = entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::Response(response) => Some((response, entry.at)),
            _ => None,
        });
        for ((response, at), row) in got.zip(&ledger.rows) {
            let usage = &response.usage;
            if !usage.has_prompt() {
                assert_eq!((row.prompt, row.cost), (None, None), "{place}: {}", row.number);
                continue;
            }
            assert_eq!(row.prompt.unwrap().total(), usage.prompt_tokens(), "{place}: {}", row.number);
            paid += cards.find_at(&response.model, at).card.cost(usage).unwrap_or(0.0);
            let read = usage.cache_read_input_tokens;
            let fell = previous.replace(read).and_then(|previous| cache_read_drop(previous, read));
            assert_eq!(
                fell,
                row.drop.as_ref().map(|fall| fall.cache_break.tokens),
                "{place}: {}",
                row.number
            );
            if let Some(BreakCause::Provider) = row.drop.as_ref().map(|fall| &fall.cache_break.cause) {
                panic!("{place}: {}: nothing says that the prefix is known", row.number);
            }
        }
        adds_up(&ledger);
        assert!((ledger.all.cost - paid).abs() < 1e-6, "{place}: {} and {paid}", ledger.all.cost);
        for (cause, totals) in ledger.drops_by_cause() {
            *causes.entry(cause).or_default() += totals.drops;
        }
        cost += paid;
        responses += ledger.rows.len();
    }
    println!("{responses} responses, ${cost:.2}, falls by cause: {causes:?}");
}
