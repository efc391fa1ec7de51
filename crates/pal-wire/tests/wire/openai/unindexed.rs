//! Streams of the Responses dialect whose events name items by id, or not at all, instead of an index.

use pal_wire::{Dialect, ResponseDecoder};

use super::responses::{completed, created, event, texts};
use super::{check, decoded, stream};

const THOUGHT: &str = r#"{"id":"rs_a","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm, so."}],"encrypted_content":""}"#;
const ANSWER: &str = r#"{"id":"msg_a","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"It is \"so\"."}]}"#;
const END: &str = "resp_1 end_turn in 100 write 400 read 1500 out 60";

fn added(item: &str) -> String {
    event("output_item.added", &format!(r#","item":{item}"#))
}

fn done(item: &str) -> String {
    event("output_item.done", &format!(r#","item":{item}"#))
}

/// A delta of an item; without an id it belongs to the newest open item.
fn delta(kind: &str, id: &str, words: &str) -> String {
    let words = serde_json::to_string(words).unwrap();
    event(kind, &format!(r#","item_id":"{id}","delta":{words}"#))
}

fn thought(words: &str) -> String {
    delta("reasoning_text.delta", "rs_a", words)
}

fn said(words: &str) -> String {
    delta("output_text.delta", "msg_a", words)
}

fn thought_added() -> String {
    added(r#"{"id":"rs_a","type":"reasoning","summary":[],"content":[],"status":"in_progress"}"#)
}

fn answer_added() -> String {
    added(r#"{"id":"msg_a","type":"message","status":"in_progress","role":"assistant","content":[]}"#)
}

fn thought_block(index: usize) -> String {
    format!(r#"{index} = {{"type":"reasoning","item":{THOUGHT}}}"#)
}

fn answer_block(index: usize) -> String {
    format!(r#"{index} = {{"type":"text","text":"It is \"so\".","item":{ANSWER}}}"#)
}

/// Checks the events between the first and the last, in one piece and in pieces of every small size.
#[track_caller]
fn check_between(frames: &[String], expected: &[&str]) {
    let frames: Vec<String> = [&[created()], frames].concat();
    let expected = [&["started resp_1 gpt-6-sol"], expected, &[END]].concat();
    check(Dialect::Responses, &texts(&frames), &expected);
    let bytes = stream(&texts(&frames));
    let whole = decoded(Dialect::Responses, &bytes);
    for size in (1..40).chain([64, 500, 1000]) {
        let mut decoder = ResponseDecoder::new(Dialect::Responses);
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.push(piece, &mut events);
        }
        decoder.finish(&mut events);
        assert_eq!(events, whole, "{size}");
    }
}

#[test]
fn consecutive_items_are_distinguished_by_id() {
    check_between(
        &[
            thought_added(),
            thought("Hm, "),
            thought("so."),
            done(THOUGHT),
            answer_added(),
            event("content_part.added", r#","item_id":"msg_a","part":{"type":"output_text","text":""}"#),
            said("It is "),
            said("\"so\"."),
            event("output_text.done", r#","item_id":"msg_a","text":"It is \"so\".""#),
            done(ANSWER),
            completed(&format!("{THOUGHT},{ANSWER}")),
        ],
        &[
            "0 reasoning",
            "0 ~ Hm, ",
            "0 ~ so.",
            &thought_block(0),
            "1 text",
            "1 + It is ",
            "1 + \"so\".",
            &answer_block(1),
        ],
    );
}

#[test]
fn interleaved_items_are_distinguished_by_id() {
    let growing =
        [thought_added(), thought("Hm, "), answer_added(), said("It is "), thought("so."), said("\"so\".")];
    let shown = ["0 reasoning", "0 ~ Hm, ", "1 text", "1 + It is ", "0 ~ so.", "1 + \"so\"."];
    let blocks = [thought_block(0), answer_block(1)];
    let expected = [&shown[..], &[&blocks[0], &blocks[1]]].concat();
    let last = completed(&format!("{THOUGHT},{ANSWER}"));
    let ends = [
        vec![done(THOUGHT), done(ANSWER), last.clone()],
        vec![done(THOUGHT), last.clone()],
        vec![last],
        vec![done(THOUGHT), done(ANSWER), done(THOUGHT), completed("")],
        // The last list has fewer items, in another order.
        vec![done(THOUGHT), completed(ANSWER)],
        vec![done(THOUGHT), done(ANSWER), completed(&format!("{ANSWER},{THOUGHT}"))],
    ];
    for end in ends {
        check_between(&[&growing[..], &end].concat(), &expected);
    }
}

#[test]
fn items_without_an_added_event_start_with_their_first_delta() {
    check_between(
        &[thought("Hm, so."), said("It is \"so\"."), completed(&format!("{THOUGHT},{ANSWER}"))],
        &["0 reasoning", "0 ~ Hm, so.", "1 text", "1 + It is \"so\".", &thought_block(0), &answer_block(1)],
    );
}

#[test]
fn item_of_the_last_list_alone_is_not_merged_into_another() {
    check_between(
        &[answer_added(), said("It is \"so\"."), done(ANSWER), completed(&format!("{THOUGHT},{ANSWER}"))],
        &["0 text", "0 + It is \"so\".", &answer_block(0), "1 reasoning", "1 ~ Hm, so.", &thought_block(1)],
    );
}

#[test]
fn deltas_without_an_id_belong_to_the_newest_open_item() {
    check_between(
        &[
            thought_added(),
            answer_added(),
            thought("Hm, "),
            delta("output_text.delta", "", "It is \"so\"."),
            done(ANSWER),
            event("reasoning_text.delta", r#","delta":"so.""#),
            done(THOUGHT),
            completed(&format!("{THOUGHT},{ANSWER}")),
        ],
        &[
            "0 reasoning",
            "1 text",
            "0 ~ Hm, ",
            "1 + It is \"so\".",
            &answer_block(1),
            "0 ~ so.",
            &thought_block(0),
        ],
    );
}

#[test]
fn parts_of_a_summary_are_separated() {
    let part = |index: usize| {
        event("reasoning_summary_part.added", &format!(r#","item_id":"rs_a","summary_index":{index}"#))
    };
    let summary = |words| delta("reasoning_summary_text.delta", "rs_a", words);
    check_between(
        &[
            thought_added(),
            answer_added(),
            part(0),
            summary("a"),
            part(1),
            summary("b"),
            completed(&format!("{THOUGHT},{ANSWER}")),
        ],
        &[
            "0 reasoning",
            "1 text",
            "0 ~ a",
            "0 ~ \n\n",
            "0 ~ b",
            &thought_block(0),
            "1 + It is \"so\".",
            &answer_block(1),
        ],
    );
}

#[test]
fn index_takes_precedence_over_id() {
    let at = |index: usize, event: String| event.replacen('{', &format!(r#"{{"output_index":{index},"#), 1);
    // The ids of the deltas match no item or the wrong one; the ids in the last list differ again.
    let other = ANSWER.replace("msg_a", "msg_b");
    for id in ["msg_c", "rs_a"] {
        check_between(
            &[
                at(0, thought_added()),
                at(1, answer_added()),
                at(0, thought("Hm, so.")),
                at(1, delta("output_text.delta", id, "It is \"so\".")),
                at(0, done(THOUGHT)),
                at(1, done(ANSWER)),
                completed(&format!("{THOUGHT},{other}")),
            ],
            &[
                "0 reasoning",
                "1 text",
                "0 ~ Hm, so.",
                "1 + It is \"so\".",
                &thought_block(0),
                &answer_block(1),
            ],
        );
    }
    // The index of an item applies to deltas with its id alone.
    check_between(
        &[
            at(3, thought_added()),
            at(1, answer_added()),
            thought("Hm, so."),
            said("It is \"so\"."),
            done(THOUGHT),
            done(ANSWER),
            completed(&format!("{THOUGHT},{ANSWER}")),
        ],
        &["3 reasoning", "1 text", "3 ~ Hm, so.", "1 + It is \"so\".", &thought_block(3), &answer_block(1)],
    );
}

#[test]
fn item_without_an_id_is_the_open_one() {
    for id in ["", r#""id":"","#, r#""id":null,"#] {
        let item = ANSWER.replace(r#""id":"msg_a","#, id);
        let begun = added(&format!(r#"{{{id}"type":"message","content":[]}}"#));
        let block = format!(r#"0 = {{"type":"text","text":"It is \"so\".","item":{item}}}"#);
        let expected = ["0 text", "0 + It is ", "0 + \"so\".", &block];
        let piece = |words| delta("output_text.delta", "", words);
        let frames = [begun.clone(), piece("It is "), piece("\"so\"."), done(&item), completed(&item)];
        check_between(&frames, &expected);
        check_between(&[&frames[..3], &frames[4..]].concat(), &expected);
        // Deltas may have an id that the added item lacked.
        check_between(&[begun, said("It is "), said("\"so\"."), done(&item), completed(&item)], &expected);
    }
}

#[test]
fn calls_without_an_item_id_are_matched_by_call_id() {
    let call = |id: &str, arguments: &str| {
        format!(r#"{{"type":"function_call","arguments":"{arguments}","call_id":"{id}","name":"Read"}}"#)
    };
    let piece = |id, words| delta("function_call_arguments.delta", id, words);
    let (one, two) = (call("fc_1", "{}"), call("fc_2", "{ }"));
    let block = |index: usize, id: &str, input: &str, item: &str| {
        format!(r#"{index} = {{"type":"tool_use","id":"{id}","name":"Read","input":{input},"item":{item}}}"#)
    };
    let frames = [
        created(),
        added(&call("fc_1", "")),
        piece("fc_1", "{}"),
        added(&call("fc_2", "")),
        piece("fc_2", "{ }"),
        done(&one),
        done(&two),
        completed(&format!("{one},{two}")),
    ];
    check(
        Dialect::Responses,
        &texts(&frames),
        &[
            "started resp_1 gpt-6-sol",
            "0 tool_use Read",
            "0 < {}",
            "1 tool_use Read",
            "1 < { }",
            &block(0, "fc_1", "{}", &one),
            &block(1, "fc_2", "{ }", &two),
            "resp_1 tool_use in 100 write 400 read 1500 out 60",
        ],
    );
}
