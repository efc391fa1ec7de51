//! The ledger on constructed logs: every cause, and figures worked out by hand.
//!
//! The model has round prices per million tokens: 10 dollars for input, 12.5 and 20 for writing, 1 for
//! reading, 50 for output.

mod causes;
mod real;
mod tape;

use pal_context::{CostLedger, CostTotals, PromptTokens, price_of_break};
use pal_model::{LayerReport, ModelCatalog, Usage, UsageIteration};
use pal_testkit::{RandomLogOptions, cases, random_log};
use pal_view::Category;
use proptest::prelude::*;
use proptest::test_runner::Config;
use tape::{LogTape, MODEL, cleared, used};

#[track_caller]
fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("nothing instead of {expected}"));
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn rows_report_cost_and_cache_saving() {
    let mut tape = LogTape::new();
    tape.turn(0, used(0, 100_000, 10));
    tape.turn(30, used(100_000, 2_000, 0));
    let ledger = tape.ledger();
    let [first, second] = ledger.rows.as_slice() else { panic!() };
    // 100 000 × 12.5 + 10 × 10 + 100 × 50
    close(first.cost, 1.2551);
    // 100 010 × 10 + 100 × 50, less that
    close(first.saved, -0.25);
    close(first.cost_without_cache(), 1.0051);
    // 100 000 × 1 + 2 000 × 12.5 + 100 × 50
    close(second.cost, 0.13);
    close(second.saved, 0.895);
    close(ledger.all.known_cost(), 1.3851);
    assert_eq!(first.prompt, Some(PromptTokens { read: 0, written: 100_000, written_1h: 0, uncached: 10 }));
    assert_eq!((first.idle_ms, second.idle_ms), (None, Some(30_000)));
    assert_eq!((second.number, second.context), (2, Some(102_100)));
    assert!((ledger.all.share_read().unwrap() - 100_000.0 / 202_010.0).abs() < 1e-9);
    let user = second.by_category.iter().find(|(category, _)| *category == Category::UserText).unwrap();
    assert!(user.1 > 0.0);
}

#[test]
fn hour_writes_and_additional_passes_are_priced() {
    let mut tape = LogTape::new();
    let mut usage = used(0, 10_000, 0);
    usage.cache_creation.as_mut().unwrap().ephemeral_1h_input_tokens = 4_000;
    let pass = |kind: &str| UsageIteration {
        kind: kind.into(),
        input_tokens: 30_000,
        output_tokens: 1_000,
        ..UsageIteration::default()
    };
    usage.iterations = Some(vec![pass("compaction")]);
    tape.turn(0, usage);
    let ledger = tape.ledger();
    // 6 000 × 12.5 + 4 000 × 20 + 100 × 50, and 30 000 × 10 + 1 000 × 50 beside
    close(ledger.rows[0].cost, 0.16 + 0.35);
    assert_eq!(ledger.rows[0].additional, 31_000);
    let prompt = ledger.rows[0].prompt.unwrap();
    assert_eq!((prompt.written, prompt.written_1h), (6_000, 4_000));
}

#[test]
fn break_cost_is_the_surcharge_over_reading() {
    let own = "[models.steep]\nlike = \"claude-fable-5\"\n\
               cliff = { above = 200_000, input = 20, output = 50, write_5m = 25, write_1h = 40, read = 2 }\n";
    let cards = ModelCatalog::built_in().with_overrides(own).unwrap();
    let card = cards.find(MODEL).card;
    let price = |usage: &Usage, tokens| price_of_break(&card, usage, tokens);
    close(price(&used(0, 104_000, 0), 100_000), 100_000.0 * 11.5 / 1e6);
    close(price(&used(0, 0, 60_000), 50_000), 50_000.0 * 9.0 / 1e6);
    close(price(&used(0, 30_000, 60_000), 50_000), (30_000.0 * 11.5 + 20_000.0 * 9.0) / 1e6);
    // Content that is no longer sent costs nothing.
    close(price(&used(0, 5_000, 0), 100_000), 5_000.0 * 11.5 / 1e6);
    close(price(&used(90_000, 0, 0), 10_000), 0.0);
    let mut hour = used(0, 10_000, 0);
    hour.cache_creation.as_mut().unwrap().ephemeral_1h_input_tokens = 10_000;
    close(price(&hour, 10_000), 10_000.0 * 19.0 / 1e6);
    let steep = cards.find("steep").card;
    close(price_of_break(&steep, &used(0, 300_000, 0), 100_000), 100_000.0 * 23.0 / 1e6);
    assert_eq!(price_of_break(&cards.find("nobody-knows-it").card, &used(0, 9_000, 0), 9_000), None);
}

#[test]
fn unreported_usage_is_unknown_not_free() {
    let mut tape = LogTape::new();
    tape.turn(0, used(0, 50_000, 0));
    tape.turn(10, Usage::default());
    tape.turn(10, Usage { output_tokens: 70, ..Usage::default() });
    tape.model = "nobody-knows-it";
    tape.turn(10, used(50_000, 0, 0));
    let ledger = tape.ledger();
    let CostTotals { requests, unreported, unpriced, .. } = ledger.all;
    assert_eq!((requests, unreported, unpriced), (4, 2, 1));
    for row in &ledger.rows[1..3] {
        assert_eq!((row.prompt, row.cost, row.saved, row.context), (None, None, None, None));
        assert!(row.context_tokens() > 0.0, "the estimate stands in");
    }
    assert_eq!((ledger.rows[3].cost, ledger.rows[3].saved), (None, None));
    close(ledger.all.known_cost(), 0.63);
    let unknown = ledger.by_model.iter().find(|(model, _)| model == "nobody-knows-it").unwrap();
    assert_eq!(unknown.1.known_cost(), None);
    assert_eq!(ledger.all.output, 270);
}

#[test]
fn savings_count_for_every_later_request() {
    let mut tape = LogTape::new();
    tape.turn(0, used(0, 50_000, 0));
    let clear = tape.decide(cleared(), 5_000);
    tape.layers = vec![LayerReport {
        layer: "microcompact".into(),
        acted: true,
        tokens_freed: 5_000,
        reason: "old".into(),
    }];
    tape.turn(10, used(20_000, 25_000, 0));
    tape.turn(10, used(45_000, 300, 0));
    tape.undo(clear);
    tape.turn(10, used(20_000, 30_000, 0));
    let ledger = tape.ledger();
    let [saving] = ledger.savings.as_slice() else { panic!("{:?}", ledger.savings) };
    assert_eq!((saving.kind.as_str(), saving.decisions), ("clear", 1));
    assert_eq!((saving.tokens_freed, saving.tokens_not_sent), (0, 10_000));
    close(Some(saving.cost), 0.01);
    assert_eq!(ledger.rows[1].decisions, [("clear".into(), 5_000)]);
    assert_eq!(ledger.rows[1].layers[0].layer, "microcompact");
    assert_eq!(ledger.rows[3].decisions, [("undo".into(), 0)]);
}

#[test]
fn decisions_on_abandoned_branches_save_nothing() {
    let mut tape = LogTape::new();
    tape.turn(0, used(0, 50_000, 0));
    let before = tape.newest();
    tape.decide(cleared(), 5_000);
    tape.turn(10, used(20_000, 25_000, 0));
    tape.rewind(before);
    tape.turn(10, used(45_000, 300, 0));
    let ledger = tape.ledger();
    assert_eq!((ledger.savings[0].tokens_freed, ledger.savings[0].tokens_not_sent), (0, 5_000));
    assert_eq!(ledger.all.requests, 3, "what was left was paid for, too");
}

#[test]
fn compactions_report_sizes_and_position() {
    let mut tape = LogTape::new();
    tape.say(&"a long story ".repeat(3_000));
    tape.turn(0, used(0, 9_000, 0));
    tape.boundary("A story was told.");
    tape.turn(10, used(0, 200, 0));
    let ledger = tape.ledger();
    let [compaction] = ledger.compactions.as_slice() else { panic!() };
    assert_eq!((compaction.before_row, compaction.tokens_before), (2, 9_100));
    assert!(compaction.tokens_after < 100, "{compaction:?}");
    assert_eq!(ledger.savings[0].kind, "boundary");
    assert_eq!(ledger.savings[0].tokens_freed, compaction.tokens_before - compaction.tokens_after);
}

fn sum<'a>(all: impl Iterator<Item = &'a CostTotals>) -> (u64, u64, u64, u64, f64, f64) {
    all.fold((0, 0, 0, 0, 0.0, 0.0), |sum, totals| {
        (
            sum.0 + totals.requests,
            sum.1 + totals.prompt.total(),
            sum.2 + totals.output,
            sum.3 + totals.unreported,
            sum.4 + totals.cost,
            sum.5 + totals.saved,
        )
    })
}

/// The totals equal the sums of the rows in every grouping.
pub(crate) fn adds_up(ledger: &CostLedger) {
    let all = sum([ledger.all].iter());
    let parts = [
        sum(ledger.by_source.iter().map(|(_, totals)| totals)),
        sum(ledger.by_model.iter().map(|(_, totals)| totals)),
        ledger.rows.iter().fold((0, 0, 0, 0, 0.0, 0.0), |sum, row| {
            (
                sum.0 + 1,
                sum.1 + row.prompt.map_or(0, |prompt| prompt.total()),
                sum.2 + row.output,
                sum.3 + u64::from(row.prompt.is_none()),
                sum.4 + row.cost.unwrap_or(0.0),
                sum.5 + row.saved.unwrap_or(0.0),
            )
        }),
    ];
    for part in parts {
        assert_eq!((part.0, part.1, part.2, part.3), (all.0, all.1, all.2, all.3));
        assert!((part.4 - all.4).abs() < 1e-6 && (part.5 - all.5).abs() < 1e-6);
    }
    let falls: u64 = ledger.drops_by_cause().iter().map(|(_, totals)| totals.drops).sum();
    assert_eq!(falls as usize, ledger.drops().count());
    assert!(ledger.rows.iter().enumerate().all(|(at, row)| row.number == at + 1));
}

proptest! {
    #![proptest_config(Config { cases: cases(300), failure_persistence: None, ..Config::default() })]

    #[test]
    fn totals_equal_the_sum_of_rows(
        entries in random_log(RandomLogOptions { steps: 60, decisions: true, boundaries: true, rewinds: true, prefixes: true })
    ) {
        let ledger = CostLedger::from_entries(&entries, &ModelCatalog::built_in());
        let responses = entries.iter().filter(|entry| matches!(entry.body, pal_model::EntryBody::Response(_))).count();
        prop_assert_eq!(ledger.rows.len(), responses);
        adds_up(&ledger);
    }
}
