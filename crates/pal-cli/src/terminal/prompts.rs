//! Prompts of MCP servers as commands: `/mcp__SERVER__PROMPT`, or shorter `/SERVER:PROMPT`.

use pal_mcp::{PromptOffered, Servers};
use pal_tui::CommandInfo;
use serde_json::{Map, Value};

use crate::table::harmless;

/// The prompts as commands: what may stand behind each are its arguments, those in brackets may be left out.
pub(super) fn list(servers: &Servers) -> Vec<CommandInfo> {
    let info = |prompt: PromptOffered| CommandInfo {
        name: prompt.command(),
        arguments: hint(&prompt),
        about: harmless(prompt.description.lines().next().unwrap_or_default()),
    };
    servers.prompts().into_iter().map(info).collect()
}

/// The prompt that a command names.
pub(super) fn find(servers: &Servers, name: &str) -> Option<PromptOffered> {
    let wanted = match name.split_once(':') {
        Some((server, prompt)) => format!("mcp__{server}__{prompt}"),
        None => name.to_owned(),
    };
    servers.prompts().into_iter().find(|prompt| prompt.command() == wanted)
}

fn hint(prompt: &PromptOffered) -> String {
    let one = |(name, is_needed): &(String, bool)| match is_needed {
        true => harmless(name),
        false => format!("[{}]", harmless(name)),
    };
    prompt.arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// What was typed as a JSON object: `name=value`, or one word for each argument in order; the last takes all that is left.
pub(super) fn arguments(prompt: &PromptOffered, typed: &str) -> Result<String, String> {
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
        return Err(format!("there is no place for: {}", harmless(rest)));
    }
    let is_missing = |(name, is_needed): &&(String, bool)| *is_needed && !given.contains_key(name);
    let missing: Vec<String> =
        prompt.arguments.iter().filter(is_missing).map(|(name, _)| harmless(name)).collect();
    match missing.is_empty() {
        true => Ok(Value::from(given).to_string()),
        false => Err(format!("it needs: {}", missing.join(", "))),
    }
}

fn is_argument(prompt: &PromptOffered, name: &str) -> bool {
    prompt.arguments.iter().any(|(known, _)| known == name)
}

/// The first word, which may stand in quotes, and what is behind it.
fn word(text: &str) -> (&str, &str) {
    if let Some((word, left)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return (word, left.trim_start());
    }
    let (word, left) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, left.trim_start())
}

/// Everything, without the quotes around it.
fn whole(text: &str) -> (&str, &str) {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    (quoted.filter(|text| !text.contains('"')).unwrap_or(text), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> PromptOffered {
        PromptOffered {
            server: String::from("my server"),
            name: String::from("fix it"),
            description: String::new(),
            arguments: arguments.iter().map(|(name, needed)| ((*name).to_owned(), *needed)).collect(),
        }
    }

    #[test]
    fn words_go_to_arguments_in_order_and_by_name() {
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
        assert_eq!(arguments(&two, "what=x"), Err(String::from("it needs: who")));
        assert_eq!(arguments(&two, ""), Err(String::from("it needs: who")));
        assert_eq!(arguments(&prompt(&[]), "x"), Err(String::from("there is no place for: x")));
        assert_eq!(arguments(&prompt(&[]), "").as_deref(), Ok("{}"));
    }

    #[test]
    fn a_name_is_one_word_and_the_hint_says_what_is_needed() {
        let two = prompt(&[("who", true), ("what", false)]);
        assert_eq!((two.command().as_str(), hint(&two).as_str()), ("mcp__my_server__fix_it", "who [what]"));
    }
}
