//! Short descriptions of tool calls.

/// Input members that describe a call best, in order of preference.
const TELLING: [&str; 10] =
    ["file_path", "notebook_path", "command", "pattern", "url", "path", "query", "skill", "name", "prompt"];

/// Subject of a call from its JSON input; empty if it has none.
pub fn call_subject(input: &str) -> String {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(input).unwrap_or_default();
    let telling = TELLING.iter().find_map(|name| members.get(*name)?.as_str());
    telling.unwrap_or_default().to_owned()
}

/// Name and subject of a call in one line of at most 80 characters.
pub fn summarize_call(name: &str, input: &str) -> String {
    let is_plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let what: String = call_subject(input).chars().take(80).map(is_plain).collect();
    format!("{name} {what}").trim_end().to_owned()
}
