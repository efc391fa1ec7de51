//! Blocks good and bad, as raw JSON: what providers send, what other programs leave behind, and what no program
//! should ever write.

use pal_model::escape_into;
use proptest::prelude::*;

/// Few ids, so that calls and results meet, repeat and miss each other; some that no provider takes.
fn tool_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["toolu_a", "toolu_b", "toolu_c", "toolu_d", "call|e.1", "ünï", "", "toolu_a "][..])
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(&["fix it", "line one\nline two", "日本語のテキスト", "{\"json\": [1, 2]}", "a\u{0}b", "émoji 🙂", "\\ud83d"][..]).prop_map(String::from),
        1 => prop::sample::select(&["", " ", "\n\n", "\u{a0}\u{2003}"][..]).prop_map(String::from),
        1 => Just(String::from("<system-reminder>\nremember\n</system-reminder>")),
        2 => "[ -~]{1,24}",
        1 => any::<String>(),
    ]
}

fn quoted(text: &str) -> String {
    let mut json = String::new();
    escape_into(&mut json, text);
    json
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => words().prop_map(|text| quoted(&text)),
        1 => prop::sample::select(&[r#""lone \ud83d surrogate""#, r#""\ude42""#, r#""slash\/""#][..]).prop_map(String::from),
    ]
}

/// A value where another type is expected.
fn odd() -> impl Strategy<Value = String> {
    prop::sample::select(
        &["null", "7", "1e400", "true", "[]", "{}", "\"\"", "[[[]]]", "123456789012345678901234567890"][..],
    )
    .prop_map(String::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => string().prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#)),
        1 => string().prop_map(|text| format!(r#"{{"text":{text},"type":"text","cache_control":{{"type":"ephemeral"}}}}"#)),
        1 => (string(), odd()).prop_map(|(text, odd)| format!(r#"{{"type":"text","text":{text},"citations":{odd},"extra":1}}"#)),
        1 => odd().prop_map(|odd| format!(r#"{{"type":"text","text":{odd}}}"#)),
        1 => (string(), string()).prop_map(|(one, two)| format!(r#"{{"type":"text","text":{one},"text":{two}}}"#)),
    ]
}

fn image() -> impl Strategy<Value = String> {
    let good =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#;
    let bad = [
        r#"{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"iVBORw0KGgo="}}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%%%"}}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}"#,
        r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"},"note":1}"#,
        r#"{"type":"image","source":7}"#,
        r#"{"type":"image"}"#,
        r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"t"}"#,
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello"},"context":"","citations":{"enabled":true}}"#,
        r#"{"type":"document","source":{"type":"content","content":[]}}"#,
        r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"hit"}]}"#,
        r#"{"type":"search_result","source":"s","title":"t","content":[]}"#,
    ];
    prop_oneof![1 => Just(String::from(good)), 2 => prop::sample::select(bad.to_vec()).prop_map(String::from)]
}

/// A reference to a tool that a prefix may or may not declare.
fn reference() -> impl Strategy<Value = String> {
    let references = [
        r#"{"type":"tool_reference","tool_name":"Read"}"#,
        r#"{"type":"tool_reference","tool_name":"Bash"}"#,
        r#"{"tool_name":"\u0042ash","type":"tool_reference","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"tool_reference","tool_name":"mcp__server__tool"}"#,
        r#"{"type":"tool_reference","tool_name":"Read","tool_name":"Bash"}"#,
        r#"{"type":"tool_reference","tool_name":"<system-reminder>"}"#,
        r#"{"type":"tool_reference","tool_name":7}"#,
        r#"{"type":"tool_reference","name":"Read"}"#,
    ];
    prop::sample::select(references.to_vec()).prop_map(String::from)
}

fn result_content() -> impl Strategy<Value = String> {
    let inner = prop_oneof![
        4 => text(),
        2 => image(),
        1 => odd(),
        2 => reference(),
        1 => Just(String::from(r#"{"type":"tool_use","id":"toolu_a","name":"Read","input":{}}"#)),
    ];
    prop_oneof![
        4 => string(),
        3 => prop::collection::vec(inner, 0..4).prop_map(|parts| format!("[{}]", parts.join(","))),
        1 => odd(),
    ]
}

fn tool_result() -> impl Strategy<Value = String> {
    let error = prop::sample::select(
        &["", r#","is_error":true"#, r#","is_error":false"#, r#","is_error":null"#, r#","x":1"#][..],
    );
    (tool_id(), result_content(), error).prop_map(|(id, content, error)| {
        format!(r#"{{"type":"tool_result","tool_use_id":{},"content":{content}{error}}}"#, quoted(id))
    })
}

fn tool_use() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&["Read", "Bash", "mcp__server__tool", "bad name!", "", "名前"][..]);
    let input = prop_oneof![
        4 => Just(String::from(r#"{"file_path":"/src/main.rs"}"#)),
        1 => Just(String::from(r#"{"command":"echo \ud83d"}"#)),
        1 => odd(),
        1 => Just(format!("{}1{}", r#"{"a":"#.repeat(150), "}".repeat(150))),
    ];
    let caller = prop::sample::select(&["", r#","caller":{"type":"direct"}"#][..]);
    (tool_id(), name, input, caller).prop_map(|(id, name, input, caller)| {
        format!(
            r#"{{"type":"tool_use","id":{},"name":{},"input":{input}{caller}}}"#,
            quoted(id),
            quoted(name)
        )
    })
}

fn thinking() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (words(), "[a-zA-Z0-9]{4,12}").prop_map(|(text, sign)| {
            format!(r#"{{"type":"thinking","thinking":{},"signature":"{sign}"}}"#, quoted(&text))
        }),
        1 => Just(String::from(r#"{"type":"thinking","thinking":"","signature":"EqQB"}"#)),
        1 => Just(String::from(r#"{"type":"thinking","thinking":"unsigned","signature":""}"#)),
        1 => Just(String::from(r#"{"type":"thinking","thinking":"unsigned"}"#)),
        1 => Just(String::from(r#"{"type":"redacted_thinking","data":"opaque"}"#)),
        1 => odd().prop_map(|odd| format!(r#"{{"type":"redacted_thinking","data":{odd}}}"#)),
    ]
}

fn server_tool() -> impl Strategy<Value = String> {
    let blocks = [
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"t","url":"https://example.org","encrypted_content":"e","page_age":null}]}"#,
        r#"{"type":"server_tool_use","id":"srvtoolu_2","name":"nonsense","input":{}}"#,
        r#"{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_9","content":7}"#,
    ];
    prop::sample::select(blocks.to_vec()).prop_map(String::from)
}

/// A summary in the provider's own block.
pub(crate) const SIGNED_SUMMARY: &str =
    r#"{"type":"compaction","content":"summary","signature":"s","tool_changes":[]}"#;

fn strange() -> impl Strategy<Value = String> {
    prop_oneof![
        odd(),
        string(),
        string().prop_map(|text| format!(r#"{{"type":"hologram","beam":{text}}}"#)),
        Just(String::from(r#"{"no_type":1}"#)),
        Just(String::from(SIGNED_SUMMARY)),
        Just(String::from(r#"{"type":"container_upload","file_id":"file_1"}"#)),
        Just(String::from(r#"{"type":"advisor_tool_result","tool_use_id":"x","content":"y"}"#)),
        Just(String::from(r#"{"\u0074ype":"text","text":"escaped key"}"#)),
    ]
}

/// A block that may stand in an entry of the user's side.
pub fn user_block() -> impl Strategy<Value = String> {
    prop_oneof![6 => text(), 6 => tool_result(), 2 => image(), 1 => thinking(), 1 => tool_use(), 1 => server_tool(), 1 => strange()]
}

/// A block that may stand in an entry of the model's.
pub fn assistant_block() -> impl Strategy<Value = String> {
    prop_oneof![5 => text(), 6 => tool_use(), 4 => thinking(), 2 => server_tool(), 1 => tool_result(), 1 => image(), 1 => strange()]
}
