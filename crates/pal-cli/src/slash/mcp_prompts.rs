//! Prompts of MCP servers as commands: `/mcp__SERVER__PROMPT`, or shorter `/SERVER:PROMPT`.

use pal_mcp::{McpPrompt, ServerPool};
use pal_report::sanitize;
use pal_tui::CommandInfo;
use serde_json::{Map, Value};

/// Lists the prompts as commands; optional arguments are in brackets.
pub(super) fn list(servers: &ServerPool) -> Vec<CommandInfo> {
    let info = |prompt: McpPrompt| CommandInfo {
        name: prompt.command(),
        arguments: hint(&prompt),
        about: sanitize(prompt.description.lines().next().unwrap_or_default()),
    };
    servers.prompts().into_iter().map(info).collect()
}

/// Finds the prompt that a command names.
pub(super) fn find(servers: &ServerPool, name: &str) -> Option<McpPrompt> {
    let wanted = match name.split_once(':') {
        Some((server, prompt)) => format!("mcp__{server}__{prompt}"),
        None => name.to_owned(),
    };
    servers.prompts().into_iter().find(|prompt| prompt.command() == wanted)
}

fn hint(prompt: &McpPrompt) -> String {
    let one = |(name, is_needed): &(String, bool)| match is_needed {
        true => sanitize(name),
        false => format!("[{}]", sanitize(name)),
    };
    prompt.arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Parses typed arguments into a JSON object: `name=value`, or one word per argument in order; the last takes the rest.
pub(super) fn arguments(prompt: &McpPrompt, typed: &str) -> Result<String, String> {
    let mut given = Map::new();
    let mut rest = typed.trim();
    for (at, (name, _)) in prompt.arguments.iter().enumerate() {
        let is_named = |word: &str| {
            let named = word.split_once('=').map(|(name, _)| name);
            named.is_some_and(|named| prompt.arguments.iter().any(|(known, _)| known == named))
        };
        if rest.is_empty() || is_named(rest) {
            break;
        }
        let is_last = at + 1 == prompt.arguments.len();
        let (word, left) = if is_last { whole(rest) } else { word(rest) };
        given.insert(name.clone(), Value::from(word));
        rest = left;
    }
    while let Some((name, value)) = rest.split_once('=').filter(|(name, _)| is_argument(prompt, name)) {
        let (value, left) = word(value);
        given.insert(name.to_owned(), Value::from(value));
        rest = left;
    }
    if !rest.is_empty() {
        return Err(format!("too many arguments: {}", sanitize(rest)));
    }
    let is_missing = |(name, is_needed): &&(String, bool)| *is_needed && !given.contains_key(name);
    let missing: Vec<String> =
        prompt.arguments.iter().filter(is_missing).map(|(name, _)| sanitize(name)).collect();
    match missing.is_empty() {
        true => Ok(Value::from(given).to_string()),
        false => Err(format!("missing arguments: {}", missing.join(", "))),
    }
}

fn is_argument(prompt: &McpPrompt, name: &str) -> bool {
    prompt.arguments.iter().any(|(known, _)| known == name)
}

/// Splits off the first word, which may be quoted.
fn word(text: &str) -> (&str, &str) {
    if let Some((word, left)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return (word, left.trim_start());
    }
    let (word, left) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, left.trim_start())
}

/// The whole text without the quotes around it.
fn whole(text: &str) -> (&str, &str) {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    (quoted.filter(|text| !text.contains('"')).unwrap_or(text), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> McpPrompt {
        McpPrompt {
            server: String::from("my server"),
            name: String::from("fix it"),
            description: String::new(),
            arguments: arguments.iter().map(|(name, needed)| ((*name).to_owned(), *needed)).collect(),
        }
    }

    #[test]
    fn words_fill_arguments_in_order_and_by_name() {
        let two = prompt(&[("who", true), ("what", false)]);
        for (typed, given) in [
            ("Ada", r#"{"who":"Ada"}"#),
            ("Ada all the rest", r#"{"what":"all the rest","who":"Ada"}"#),
            (r#""Ada Lovelace" x"#, r#"{"what":"x","who":"Ada Lovelace"}"#),
            ("what=now who=Ada", r#"{"what":"now","who":"Ada"}"#),
            ("Ada what=now", r#"{"what":"now","who":"Ada"}"#),
            ("a=b", r#"{"who":"a=b"}"#),
        ] {
            let parsed: Value = serde_json::from_str(&arguments(&two, typed).unwrap()).unwrap();
            assert_eq!(parsed, serde_json::from_str::<Value>(given).unwrap(), "{typed}");
        }
        assert_eq!(arguments(&two, "what=x"), Err(String::from("missing arguments: who")));
        assert_eq!(arguments(&two, ""), Err(String::from("missing arguments: who")));
        assert_eq!(arguments(&prompt(&[]), "x"), Err(String::from("too many arguments: x")));
        assert_eq!(arguments(&prompt(&[]), "").as_deref(), Ok("{}"));
    }

    #[test]
    fn command_names_are_one_word_and_hints_mark_optional_arguments() {
        let two = prompt(&[("who", true), ("what", false)]);
        assert_eq!((two.command().as_str(), hint(&two).as_str()), ("mcp__my_server__fix_it", "who [what]"));
    }
}
