//! The ledger of every recorded session.

use std::collections::BTreeMap;
use std::path::Path;

use pal_context::Ledger;
use pal_context::cache::reads_fell;
use pal_import::{Measure, Options};
use pal_model::{Body, BreakCause, Cards, Entry, Text};
use pal_testkit::session_files;

use super::adds_up;

struct Thirds;

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

fn entries(file: &Path) -> Vec<Entry> {
    let source = std::fs::read(file).unwrap();
    let imported = pal_import::import(&source, &Options { measure: &Thirds, strict: false }).unwrap();
    let log = Text::from(imported.log);
    log.lines().map(|line| Entry::parse(log.slice_of(line)).unwrap()).collect()
}

#[test]
fn costs_are_those_of_the_responses_and_every_fall_has_a_cause() {
    let cards = Cards::shipped();
    let (mut cost, mut responses) = (0.0, 0);
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for file in session_files() {
        let entries = entries(&file);
        let ledger = Ledger::of(&entries, &cards);
        let place = file.display();
        let mut paid = 0.0;
        let mut previous: Option<u64> = None;
        let got = entries.iter().filter_map(|entry| match &entry.body {
            Body::Response(response) => Some(response),
            _ => None,
        });
        for (response, row) in got.zip(&ledger.rows) {
            let usage = &response.usage;
            if !usage.has_prompt() {
                assert_eq!((row.prompt, row.cost), (None, None), "{place}: {}", row.number);
                continue;
            }
            assert_eq!(row.prompt.unwrap().total(), usage.prompt_tokens(), "{place}: {}", row.number);
            paid += cards.find(&response.model).card.cost(usage).unwrap_or(0.0);
            let read = usage.cache_read_input_tokens;
            let fell = previous.replace(read).and_then(|previous| reads_fell(previous, read));
            assert_eq!(fell, row.fall.as_ref().map(|fall| fall.what.tokens), "{place}: {}", row.number);
            if let Some(BreakCause::Provider) = row.fall.as_ref().map(|fall| &fall.what.cause) {
                panic!("{place}: {}: nothing says that the prefix is known", row.number);
            }
        }
        adds_up(&ledger);
        assert!((ledger.all.cost - paid).abs() < 1e-6, "{place}: {} and {paid}", ledger.all.cost);
        for (cause, totals) in ledger.falls_by_cause() {
            *causes.entry(cause).or_default() += totals.falls;
        }
        cost += paid;
        responses += ledger.rows.len();
    }
    println!("{responses} responses, ${cost:.2}, falls by cause: {causes:?}");
}
