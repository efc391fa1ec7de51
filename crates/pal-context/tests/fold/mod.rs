//! Fold: old stretches as summaries.

use pal_context::{ActionKind, WindowBudgets, extractive_fold, fold_decision, fold_question};
use pal_model::{Decision, DecisionKind};

use crate::common::{LayerFixture, check};

/// A conversation of `rounds` rounds; `said` holds user messages by round.
fn log(rounds: usize, said: &[(usize, &str)]) -> String {
    let mut log = String::from("user: first request\nsent\n");
    for at in 0..rounds {
        log += &format!(
            "model m{at}: call c{at} Bash {{\"command\":\"step {at}\"}}\nresult c{at}: output {at}\\n~30000~\nsent\n"
        );
        if let Some((_, words)) = said.iter().find(|(round, _)| *round == at) {
            log += &format!("model n{at}: done\nuser: {words}\nsent\n");
        }
    }
    log + "model z: all done\nuser: more"
}

fn setting(log: &str, window: u64) -> LayerFixture {
    LayerFixture::of("claude-opus-4-6", log).with_window(window).with_policy(|policy| policy.fold = true)
}

#[test]
fn the_oldest_whole_rounds_are_folded() {
    check("fold", setting(&log(4, &[]), 200_000), &["nothing: 32,420 tokens, acts from 162,000"]);
    check(
        "fold",
        setting(&log(21, &[]), 200_000),
        &["fold 3 to 10: 170,180 tokens are over 162,000: the oldest stretch, 24,311 tokens, is folded"],
    );
    check(
        "fold",
        setting(&log(22, &[]), 200_000),
        &[
            "fold 3 to 10 at once: 178,284 tokens are over 162,000: the oldest stretch, 24,311 tokens, is folded",
        ],
    );
}

#[test]
fn a_persons_message_ends_a_stretch_unless_it_is_short() {
    let short = log(21, &[(1, "yes, but leave the tests alone")]);
    let setting_of = |log: &str| setting(log, 200_000);
    let act = setting_of(&short).act("fold");
    let ActionKind::Fold(stretch) = act.kind else { panic!("{act:?}") };
    let LayerFixture { view, place, .. } = setting_of(&short);
    let budgets = WindowBudgets::new(&setting_of(&short).limits);
    let decision = fold_decision(&view, stretch, "They tried things.", budgets, &place).unwrap();
    let DecisionKind::Fold { text, .. } = &decision.kind else { panic!() };
    assert!(text.contains("They tried things.") && text.contains("yes, but leave the tests alone"), "{text}");
    check(
        "fold",
        setting_of(&log(21, &[(1, "~4000~ no")])),
        &[
            "fold 3 to 9 at once: 171,255 tokens are over 162,000: the oldest stretch, 16,209 tokens, is folded",
        ],
    );
}

#[test]
fn fold_text_is_truncated_and_useless_folds_are_refused() {
    let setting = setting(&log(21, &[]), 200_000);
    let ActionKind::Fold(stretch) = setting.act("fold").kind else { panic!() };
    let budgets = WindowBudgets::new(&setting.limits);
    let long = "a sentence of the summary\n".repeat(2_000);
    let decision = fold_decision(&setting.view, stretch, &long, budgets, &setting.place).unwrap();
    let DecisionKind::Fold { text, .. } = &decision.kind else { panic!() };
    let estimator = setting.view.estimator();
    let tokens = estimator.total(estimator.text(text));
    assert!((700..=800).contains(&tokens), "{tokens}");
    assert!(decision.cost.tokens_freed > 23_000, "{:?}", decision.cost);
    assert!(decision.cost.tokens_rewritten > 100_000, "{:?}", decision.cost);
    let folded = setting.view.with_decision(&decision);
    assert_eq!(
        fold_decision(&folded, stretch, "again", budgets, &setting.place),
        None,
        "what is folded is not folded again"
    );
    let question = fold_question(&setting.view, stretch, budgets).unwrap();
    assert_eq!((question.begins.as_str(), question.max_tokens), ("Bash step 0", 800));
    assert!(text.contains(&stretch.head.to_string()) && text.contains("/s/log.jsonl"), "{text}");
    let extract = extractive_fold(&setting.view, stretch);
    assert!(extract.contains("- ran `step 1`\n- ran `step 0`\n"), "{extract}");
}

#[test]
fn folding_repeats_until_it_fits_and_avoids_compaction() {
    let mut setting = setting(&log(40, &[(20, "go on")]), 200_000);
    let mut folds: Vec<Decision> = Vec::new();
    while let ActionKind::Fold(stretch) = setting.act("fold").kind {
        let budgets = WindowBudgets::new(&setting.limits);
        let decision = fold_decision(
            &setting.view,
            stretch,
            &extractive_fold(&setting.view, stretch),
            budgets,
            &setting.place,
        )
        .unwrap();
        setting.apply_action(&pal_context::LayerAction::decide(vec![decision.clone()], ""));
        folds.push(decision);
        setting.checked_body();
        assert!(folds.len() < 20);
    }
    assert!(folds.len() >= 5 && setting.view.size().tokens < 162_000, "{}", setting.view.size().tokens);
    check("auto-compact", setting, &["nothing: 154,924 tokens, and folding handles them up to 171,000"]);
}

#[test]
fn compaction_follows_when_nothing_is_foldable() {
    let log = format!("user: ~700000~\nsent\n{}", log(2, &[]));
    let full = setting(&log, 200_000);
    check(
        "fold",
        setting(&log, 200_000),
        &["nothing: 203,061 tokens are over 162,000, but no old stretch is long enough to be folded"],
    );
    check("auto-compact", full, &["compact: 203,061 tokens have reached the threshold of 171,000"]);
}
