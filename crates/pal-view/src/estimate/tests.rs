//! Worked examples and laws.

use proptest::prelude::*;

use pal_model::TokenGeneration;

use super::{Calibration, CorrectionFactor, Estimator, TextCounts};

/// Compares the counts that are not zero, as "name number", with the expected list.
fn check(text: &str, expected: &[&str]) {
    let counts = TextCounts::from_text(text);
    let named = TextCounts::NAMES.iter().zip(counts.as_array()).filter(|(_, count)| **count > 0);
    let found: Vec<String> = named.map(|(name, count)| format!("{name} {count}")).collect();
    assert_eq!(found, expected, "counts of {text:?}");
}

#[test]
fn empty_text_has_no_counts() {
    check("", &[]);
}

#[test]
fn words_count_by_start_and_length() {
    check("a word", &["WordAfterSpace 1", "WordElsewhere 1", "Letters2To4 3", "Space 1"]);
    check(
        "internationally",
        &["WordElsewhere 1", "Letters2To4 3", "Letters5To7 3", "Letters8To11 4", "Letters12Up 4"],
    );
}

#[test]
fn capitals_start_pieces() {
    check(
        "getHTTPName",
        &["WordElsewhere 1", "Letters2To4 5", "CapitalInWord 1", "SecondCapital 1", "FurtherCapital 3"],
    );
    check(
        "MAX_LEN",
        &[
            "CapitalAfterUnderscore 1",
            "CapitalElsewhere 1",
            "SecondCapital 2",
            "FurtherCapital 2",
            "Underscore 1",
        ],
    );
}

#[test]
fn digits_count_in_groups_of_three() {
    check("1234567", &["DigitGroup 3", "FurtherDigit 4"]);
}

#[test]
fn blanks_count_by_position() {
    check(
        "\n    x\n\n\ty\r\n",
        &["WordElsewhere 2", "Indent 1", "FurtherSpace 4", "Tab 1", "LineEnd 2", "BlankLine 2"],
    );
}

#[test]
fn punctuation_counts_once_then_as_a_run() {
    check(
        r#"{"a": "b"}"#,
        &[
            "WordElsewhere 2",
            "Space 1",
            "QuoteAfterBlank 1",
            "QuoteElsewhere 2",
            "Bracket 1",
            "PunctuationRun 3",
        ],
    );
    check("----;\n", &["LineEndAfterPunctuation 1", "Dash 1", "PunctuationRun 1", "DashRun 3"]);
}

#[test]
fn characters_beyond_ascii_count_by_script() {
    check(
        "é я ع 中 の 한 😀",
        &["Space 6", "OtherTwoByte 1", "Cyrillic 1", "Arabic 1", "Kana 1", "Han 1", "Hangul 1", "Rare 1"],
    );
    check("├──", &["Symbol 1", "SymbolRun 2"]);
}

#[test]
fn the_classic_rule_is_exact() {
    let classic = Estimator::classic();
    assert_eq!(classic.total(0.0), 0);
    assert_eq!(classic.total(classic.text("abc")), 1, "3 bytes are 3/4, times 4/3 is 1");
    assert_eq!(classic.total(classic.text("abcd")), 2, "1 token, times 4/3, rounded up");
    assert_eq!(classic.total(classic.text("я")), 1, "bytes, not characters");
    assert_eq!(classic.total(classic.json("{}")), 2);
    assert_eq!(classic.total(classic.media()), 2_667);
    assert_eq!(classic.result_frame(), 0.0);
    // 4 bytes of name are 1, 12 bytes of input are 6, together 7 × 4/3 = 9.33.
    assert_eq!(classic.total(classic.call("Read", r#"{"path":"a"}"#)), 10);
    // Parts are summed before they are rounded: 0.25 + 0.25 + 0.25 = 0.75, which is 1.
    assert_eq!(classic.total(classic.text("a") + classic.text("b") + classic.text("c")), 1);
    // Exact where single precision would not be.
    assert_eq!(classic.total(classic.text("x") + 30_000_000.0), 40_000_001);
}

#[test]
fn classic_rule_ignores_corrections() {
    let mut calibration = Calibration::default();
    (0..100).for_each(|_| calibration.observe(1_000.0, 1_500));
    let classic = Estimator::classic();
    assert_eq!(classic.corrected(calibration.factor()), classic);
}

#[test]
fn newer_generations_take_more_tokens() {
    let code = "    pub fn open(path: &Path) -> Result<Store, OpenError> {\n".repeat(50);
    let tokens = TokenGeneration::ALL.map(|generation| Estimator::shipped(generation).text(&code));
    let [claude_46, claude_47, o200k, neutral] = tokens;
    assert!(neutral > 0.9 * o200k && neutral < 0.9 * claude_47, "{neutral}");
    assert!(o200k < claude_46 && claude_46 < claude_47, "{tokens:?}");
}

#[test]
fn no_script_is_free() {
    for generation in TokenGeneration::ALL {
        for character in ["é", "я", "ع", "中", "の", "한", "ก", "😀", "→"] {
            let tokens = Estimator::shipped(generation).text(&character.repeat(100));
            assert!((5.0..300.0).contains(&tokens), "{generation:?} {character} {tokens}");
        }
    }
}

/// Encoded blobs take far more tokens than prose of the same length.
#[test]
fn encoded_blobs_take_more_tokens() {
    let alphabets = [
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ];
    for alphabet in alphabets {
        let mut seed: u32 = 7;
        let blob: String = (0..4_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(alphabet.as_bytes()[(seed >> 26) as usize])
            })
            .collect();
        for generation in TokenGeneration::ALL {
            let bytes_per_token = blob.len() as f64 / Estimator::shipped(generation).text(&blob);
            assert!((1.0..2.2).contains(&bytes_per_token), "{generation:?} {bytes_per_token}");
        }
    }
}

#[test]
fn framing_adds_tokens() {
    let estimator = Estimator::shipped(TokenGeneration::Claude47);
    assert!(estimator.call("Read", "{}") > estimator.text("Read") + estimator.json("{}"));
    assert!(estimator.result_frame() > 0.0);
}

#[test]
fn a_calibration_finds_the_factor_and_ignores_outliers() {
    let mut calibration = Calibration::default();
    assert_eq!(calibration.factor(), CorrectionFactor::ONE);
    for round in 0..40 {
        calibration.observe(1_000.0, if round % 5 == 0 { 9_000 } else { 1_200 });
    }
    assert_eq!(calibration.factor(), CorrectionFactor::from(12_000));
    let estimator = Estimator::shipped(TokenGeneration::O200k).corrected(calibration.factor());
    assert_eq!(estimator.total(1_000.0), 1_200);
}

#[test]
fn calibration_needs_several_observations() {
    let mut calibration = Calibration::default();
    (0..5).for_each(|_| calibration.observe(1_000.0, 1_300));
    assert_eq!(calibration.factor(), CorrectionFactor::ONE);
}

#[test]
fn a_calibration_ignores_small_and_broken_estimates() {
    let mut calibration = Calibration::default();
    for estimated in [0.0, 10.0, -5_000.0, f64::NAN, f64::INFINITY] {
        calibration.observe(estimated, 10_000);
    }
    assert_eq!(calibration.observation_count(), 0);
}

#[test]
fn calibration_round_trips_and_clamps() {
    let mut calibration = Calibration::default();
    (0..60).for_each(|round| calibration.observe(700.0 + f64::from(round), 1_000));
    let stored = serde_json::to_string(&calibration).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&stored).unwrap(), calibration);
    let nonsense: Calibration = serde_json::from_str(r#"{"recent":[0,0,0,0,0,0,0,0]}"#).unwrap();
    assert_eq!(nonsense.factor(), CorrectionFactor::MIN);
    assert_eq!(serde_json::to_string(&CorrectionFactor::from(4_000_000_000)).unwrap(), "20000");
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        "[ -~]{0,60}",
        "[ \t]{0,12}[a-zA-Z_]{1,20}[(){};,.\"]{0,4}",
        "\\PC{0,30}",
        "[а-я中の한─😀\r]{0,10}",
    ];
    prop::collection::vec(line, 0..80)
}

proptest! {
    #[test]
    fn counts_add_up_over_lines(lines in lines()) {
        let lines: Vec<String> = lines.into_iter().map(|line| line + "\n").collect();
        let mut sum = [0; TextCounts::LEN];
        for line in &lines {
            for (cell, count) in sum.iter_mut().zip(TextCounts::from_text(line).as_array()) {
                *cell += count;
            }
        }
        prop_assert_eq!(*TextCounts::from_text(&lines.concat()).as_array(), sum);
    }

    #[test]
    fn lanes_do_not_change_counts(lines in lines(), separator in prop::sample::select(vec!["\n", ",", "\",", ",-", "\"_A"])) {
        let text = lines.join(separator).repeat(2);
        prop_assert_eq!(TextCounts::from_text(&text), TextCounts::in_one_lane(&text));
    }

    #[test]
    fn estimates_grow_with_the_text(text in any::<String>(), more in any::<String>()) {
        for generation in TokenGeneration::ALL {
            let estimator = Estimator::shipped(generation);
            let shorter = estimator.text(&text);
            let longer = estimator.text(&format!("{text}{more}"));
            prop_assert!(shorter >= 0.0);
            prop_assert!(longer >= shorter - 1e-9, "{} after {}", longer, shorter);
            prop_assert!(longer <= 3.0 * (text.len() + more.len()) as f64);
        }
    }

    #[test]
    fn splitting_text_changes_estimates_little(lines in lines(), place in any::<prop::sample::Index>()) {
        let text = lines.join("\n");
        let boundaries: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let (before, after) = text.split_at(*place.get(&boundaries));
        for generation in TokenGeneration::ALL {
            let estimator = Estimator::shipped(generation);
            let difference = estimator.text(before) + estimator.text(after) - estimator.text(&text);
            // Only a run of letters can differ for more than a few bytes: lengths are counted anew.
            prop_assert!(difference.abs() < 16.0, "{}", difference);
        }
    }

    #[test]
    fn factors_stay_within_bounds(observations in prop::collection::vec((any::<f64>(), any::<u64>()), 0..80)) {
        let mut calibration = Calibration::default();
        for (estimated, reported) in observations {
            calibration.observe(estimated, reported);
            prop_assert!((CorrectionFactor::MIN..=CorrectionFactor::MAX).contains(&calibration.factor()));
        }
    }
}

#[test]
fn every_text_costs_tokens() {
    for generation in TokenGeneration::ALL {
        let estimator = Estimator::shipped(generation);
        for unit in ["x", "X", "=", "-", " ", "\n", "\t", "0", "─", "é", "漢", "\"", "{", "_", "a=", "A1"]
        {
            let text = unit.repeat(100_000);
            let tokens = estimator.text(&text);
            assert!(tokens >= text.len() as f64 / 320.0, "{generation:?} {unit:?}: {tokens}");
        }
    }
}
