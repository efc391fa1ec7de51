//! Malformed and hostile input: no panics, and the same JSON syntax as an ordinary parser.

use pal_wire::{BetaSet, RequestRules, check_request};
use proptest::prelude::*;
use serde_json::Value;

use crate::{old_rules, samples};

/// Checks a body under several rules; returns true if the newest ones accept it.
fn judge(body: &[u8]) -> bool {
    let _ = check_request(body, &old_rules());
    let _ = check_request(body, &RequestRules { betas: BetaSet::none(), ..RequestRules::newest() });
    check_request(body, &RequestRules::newest()).is_ok()
}

/// Returns true if the scanner and `serde_json` agree whether this is JSON.
fn agrees(body: &[u8]) -> bool {
    let ours = match check_request(body, &RequestRules::newest()) {
        Err(error) => !error.message.starts_with("The request body is not valid JSON"),
        Ok(_) => true,
    };
    let theirs = std::str::from_utf8(body).is_ok() && serde_json::from_slice::<Value>(body).is_ok();
    // A number too large for a float is still valid syntax.
    ours == theirs
        || serde_json::from_slice::<Value>(body).is_err_and(|e| e.to_string().contains("out of range"))
}

#[test]
fn every_prefix_is_refused() {
    for sample in [samples::agent(), samples::compacted()] {
        let body = sample.to_string().into_bytes();
        for end in 0..body.len() {
            assert!(!judge(&body[..end]), "the first {end} bytes pass");
        }
        assert!(judge(&body));
    }
}

/// Collects the pointers to all values.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

#[test]
fn every_single_change_is_checked() {
    for sample in [samples::agent(), samples::compacted()] {
        let mut places = Vec::new();
        pointers(&sample, "", &mut places);
        for place in &places {
            for value in
                [Value::Null, Value::Bool(true), 7.into(), "".into(), "x".into(), Value::Array(vec![])]
            {
                let mut body = sample.clone();
                *body.pointer_mut(place).unwrap() = value;
                judge(body.to_string().as_bytes());
            }
            let Some((parent, last)) = place.rsplit_once('/') else { continue };
            let mut body = sample.clone();
            match body.pointer_mut(parent).unwrap() {
                Value::Object(map) => {
                    map.shift_remove(last);
                }
                Value::Array(list) => {
                    let index: usize = last.parse().unwrap();
                    let item = list[index].clone();
                    list.insert(0, item);
                    judge(body.to_string().as_bytes());
                    continue;
                }
                _ => {}
            }
            judge(body.to_string().as_bytes());
        }
    }
}

#[test]
fn many_calls_are_checked_in_linear_time() {
    let n_calls = 60_000;
    let call = |i: usize| format!(r#"{{"type":"tool_use","id":"toolu_{i}","name":"a","input":{{}}}}"#);
    let result = |i: usize| format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{i}"}}"#);
    let calls: Vec<String> = (0..n_calls).map(call).collect();
    let results: Vec<String> = (0..n_calls).rev().map(result).collect();
    let body = format!(
        r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{}]}},{{"role":"user","content":[{}]}}]}}"#,
        calls.join(","),
        results.join(",")
    );
    assert!(judge(body.as_bytes()));
}

/// Generates a few bytes that have a meaning in JSON.
fn shard() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b"\\u",
        b"\\ud800",
        b"\\udc00",
        b"null",
        b"true",
        b"-",
        b"0",
        b"12",
        b".5",
        b"e9",
        b" ",
        b"\n",
        b"\x01",
        b"\xff",
        b"\"type\":",
        b"\"a\"",
        b"\xc3\xa9",
    ];
    proptest::sample::select(words).prop_map(<[u8]>::to_vec)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        judge(&body);
        prop_assert!(agrees(&body));
    }

    #[test]
    fn shards(body in proptest::collection::vec(shard(), 0..24)) {
        let body = body.concat();
        judge(&body);
        prop_assert!(agrees(&body), "{}", String::from_utf8_lossy(&body));
    }

    #[test]
    fn spliced(places in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, shard()), 1..4)) {
        let mut body = samples::agent().to_string().into_bytes();
        for (index, n_lost, shard) in places {
            let start = index.index(body.len());
            let end = (start + n_lost).min(body.len());
            body.splice(start..end, shard);
        }
        judge(&body);
        prop_assert!(agrees(&body), "{}", String::from_utf8_lossy(&body));
    }

    #[test]
    fn texts(words in "\\PC*") {
        let body = crate::said(&serde_json::json!([crate::text(&words)])).to_string();
        prop_assert_eq!(judge(body.as_bytes()), !words.trim().is_empty());
    }
}
