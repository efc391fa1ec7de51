//! What the Models endpoint says about a model, as far as a card cares. Prices and the smallest cacheable prefix are
//! not among it; those stay as the card has them.

use pal_model::{Card, JsonError, fields, member};
use smol_str::SmolStr;

/// The path of the endpoint that describes one model.
pub fn model_path(model: &str) -> String {
    let mut path = String::from("/v1/models/");
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// Puts what the provider says about a model, the body of `GET /v1/models/{id}`, over what the card says. What the
/// answer leaves out stays as it is.
pub fn refresh(card: &mut Card, model: &str) -> Result<(), JsonError> {
    fields(model)?;
    let count = |name: &str| at(model, &[name])?.parse::<u64>().ok().filter(|count| *count > 0);
    set(&mut card.window, count("max_input_tokens"));
    set(&mut card.max_output, count("max_tokens"));
    let can = |path: &[&str]| is_supported(at(model, &["capabilities"])?, path);
    set(&mut card.thinking.adaptive, can(&["thinking", "types", "adaptive"]));
    set(&mut card.thinking.enabled, can(&["thinking", "types", "enabled"]));
    set(&mut card.thinking.disabled, can(&["thinking", "types", "disabled"]));
    set(&mut card.thinking.between_tools, can(&["thinking", "types", "between_tools"]));
    set(&mut card.can.provider_compaction, can(&["compaction", "summarize"]));
    set(&mut card.can.images, can(&["image_input"]));
    set(&mut card.can.documents, can(&["pdf_input"]));
    set(&mut card.can.context_management, at(model, &["capabilities", "context_management"]).and_then(edits));
    Ok(())
}

fn set<T>(known: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *known = said;
    }
}

/// The edits that run, in the order of the answer.
fn edits(management: &str) -> Option<Vec<SmolStr>> {
    let known = fields(management).ok()?;
    if is_supported(management, &[]) == Some(false) {
        return Some(Vec::new());
    }
    let runs = known.iter().filter(|(_, leaf)| is_supported(leaf, &[]) == Some(true));
    Some(runs.map(|(name, _)| SmolStr::new(name)).collect())
}

/// What the leaf at a path says. A model that cannot do something at all may leave out what is below.
fn is_supported(json: &str, path: &[&str]) -> Option<bool> {
    match at(at(json, path)?, &["supported"])? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The value at a path of names.
fn at<'a>(json: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(json, |json, name| member(&fields(json).ok()?, name))
}

#[cfg(test)]
mod tests {
    use pal_model::Cards;

    use super::*;

    fn check(model: &str, changes: impl FnOnce(&mut Card)) {
        let shipped = Cards::shipped().find("claude-opus-5-5").card;
        let (mut found, mut expected) = (shipped.clone(), shipped);
        refresh(&mut found, model).unwrap();
        changes(&mut expected);
        assert_eq!(found, expected);
    }

    #[test]
    fn what_the_provider_says_counts_and_the_rest_stays() {
        check(r#"{"id":"claude-opus-5-5","type":"model"}"#, |_| {});
        check(r#"{"max_input_tokens":0,"max_tokens":null,"capabilities":null}"#, |_| {});
        check(
            r#"{"id":"claude-opus-5-5","display_name":"Claude Opus 5.5","max_input_tokens":500000,"max_tokens":64000,
            "lifecycle":"active","line":"opus","capabilities":{"image_input":{"supported":false},"pdf_input":{"supported":true},
            "thinking":{"supported":true,"types":{"adaptive":{"supported":false},"between_tools":{"supported":true},"disabled":{"supported":true},"enabled":{"supported":true}}},
            "compaction":{"summarize":{"supported":false}},
            "context_management":{"supported":true,"clear_thinking_20251015":{"supported":true},"clear_tool_uses_20250919":{"supported":false},"compact_20260112":{"supported":true},"later_20270101":{"supported":true}}}}"#,
            |card| {
                (card.window, card.max_output) = (500_000, 64_000);
                (card.can.images, card.can.documents, card.can.provider_compaction) = (false, true, false);
                card.thinking = pal_model::ThinkingKinds {
                    adaptive: false,
                    enabled: true,
                    disabled: true,
                    between_tools: true,
                };
                card.can.context_management =
                    ["clear_thinking_20251015", "compact_20260112", "later_20270101"]
                        .map(SmolStr::new)
                        .to_vec();
            },
        );
        check(
            r#"{"capabilities":{"context_management":{"supported":false,"compact_20260112":{"supported":true}}}}"#,
            |card| card.can.context_management.clear(),
        );
    }

    #[test]
    fn what_is_no_description_changes_nothing() {
        let shipped = Cards::shipped().find("claude-opus-5-5").card;
        for odd in ["", "[]", "null", "{", r#"{"a":1} x"#] {
            let mut card = shipped.clone();
            assert!(refresh(&mut card, odd).is_err(), "{odd}");
            assert_eq!(card, shipped);
        }
    }

    #[test]
    fn a_path_has_no_name_that_breaks_it() {
        assert_eq!(model_path("claude-opus-5-5"), "/v1/models/claude-opus-5-5");
        assert_eq!(model_path("a/b?c#d é"), "/v1/models/a%2Fb%3Fc%23d%20%C3%A9");
    }
}
