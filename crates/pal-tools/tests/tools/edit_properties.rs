//! Properties of edits and pages.

use proptest::prelude::*;
use serde_json::json;

use crate::common::Place;

/// Short lines with few letters, so that pieces occur more than once.
fn any_text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        6 => prop::sample::select(vec!['a', 'b', ' ', '\t', '<', '\\', 'é', '日', '\u{200d}', '\u{feff}', '"']),
        2 => Just('\n'),
    ];
    prop::collection::vec(letter, 1..60).prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_of_a_unique_piece_is_a_replacement(
        text in any_text(), new in any_text(), from in 0_usize..60, length in 1_usize..12,
    ) {
        let letters: Vec<char> = text.chars().collect();
        let old: String = letters.iter().skip(from % letters.len()).take(length).collect();
        prop_assume!(old != new);
        let place = Place::new();
        place.put("a", &text);
        let _ = place.read("a").good();
        let said = place.call("Edit", &json!({"file_path": "a", "old_string": old, "new_string": new}));
        if text.matches(&old).count() == 1 {
            said.good();
            prop_assert_eq!(place.text("a"), text.replacen(&old, &new, 1));
        } else {
            prop_assert!(said.wrong().contains("times, at lines"));
            prop_assert_eq!(place.text("a"), &text[..]);
            let all = json!({"file_path": "a", "old_string": old, "new_string": new, "replace_all": true});
            place.call("Edit", &all).good();
            prop_assert_eq!(place.text("a"), text.replace(&old, &new));
        }
    }

    #[test]
    fn all_pages_together_are_the_file(
        lines in prop::collection::vec("[ab\t é日\\[\\]]{0,8}", 0..40), is_ended in any::<bool>(), limit in 1_u64..9,
    ) {
        let mut text = lines.join("\n");
        if is_ended && !text.is_empty() {
            text.push('\n');
        }
        let place = Place::new();
        place.put("a", &text);
        let (mut pieces, mut offset) = (String::new(), 1);
        loop {
            let said = place.call("Read", &json!({"file_path": "a", "offset": offset, "limit": limit})).good();
            // A note follows an empty line; file lines start with their number.
            let (page, note) = said.split_once("\n\n[").unwrap_or((said.trim_end_matches('\n'), ""));
            if !page.starts_with('[') {
                for row in page.split('\n') {
                    let (number, line) = row.split_once('\t').unwrap();
                    prop_assert_eq!(number.parse::<u64>().unwrap(), offset);
                    pieces.push_str(line);
                    pieces.push('\n');
                    offset += 1;
                }
            }
            if note.contains("has no line end") {
                pieces.pop();
            }
            if !note.contains("Read on with offset") {
                break;
            }
        }
        prop_assert_eq!(pieces, text);
    }
}
