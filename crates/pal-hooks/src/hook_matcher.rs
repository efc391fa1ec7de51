//! Matchers that select tool calls, sources or reasons of an event.

use regex::Regex;

/// Filter of a hook group.
#[derive(Clone, Debug)]
pub enum HookMatcher {
    /// Matches everything.
    All,
    /// Matches these names.
    Names(Vec<String>),
    /// Matches names that contain this expression.
    Pattern(Regex),
}

impl HookMatcher {
    /// Parses a matcher: empty or `*` matches everything; letters, digits, `_ - , |` and spaces form a list
    /// of names; anything else is an unanchored regular expression.
    pub fn parse(text: &str) -> Result<HookMatcher, String> {
        if matches!(text.trim(), "" | "*") {
            return Ok(HookMatcher::All);
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-,| ".contains(letter);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(HookMatcher::Names(names.map(str::to_owned).collect()));
        }
        Regex::new(text)
            .map(HookMatcher::Pattern)
            .map_err(|_| format!("a regular expression instead of {text:?}"))
    }

    /// Returns whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            HookMatcher::All => true,
            HookMatcher::Names(names) => names.iter().any(|known| known == name),
            HookMatcher::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_lists_or_expressions() {
        let cases = [
            ("", "Bash", true),
            (" * ", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Write", true),
            ("Edit|Write", "MultiEdit", false),
            ("edit", "Edit", false),
            ("mcp__.*__write", "mcp__disk__write_file", true),
            ("^Not(Edit)?$", "NotEdit", true),
            ("Bash.", "Bash", false),
            ("mcp-one_two", "mcp-one_two", true),
        ];
        for (matcher, name, fits) in cases {
            assert_eq!(HookMatcher::parse(matcher).unwrap().matches(name), fits, "{matcher} {name}");
        }
        assert!(HookMatcher::parse("Bash(").is_err());
    }
}
