//! The one place where permission rules are looked at before permissions get them.

/// Whether a text is a rule: the name of a tool, or a name with a pattern in brackets.
pub(crate) fn is_rule(text: &str) -> bool {
    let (name, pattern) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')),
        None => (text, Some("*")),
    };
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '*' | '.' | ':');
    !name.is_empty() && name.chars().all(fits) && pattern.is_some_and(|pattern| !pattern.trim().is_empty())
}
