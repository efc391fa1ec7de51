//! For which calls, sources or reasons of an event a hook is meant.

use regex::Regex;

/// What a hook is meant for.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Everything.
    All,
    /// These names.
    Names(Vec<String>),
    /// Names in which this is found.
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher: nothing or `*` is everything; letters, digits, `_ - , |` and spaces are a list of names;
    /// anything else is a regular expression that may match anywhere in the name.
    pub fn parse(text: &str) -> Result<Matcher, String> {
        if matches!(text.trim(), "" | "*") {
            return Ok(Matcher::All);
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-,| ".contains(letter);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Matcher::Names(names.map(str::to_owned).collect()));
        }
        Regex::new(text)
            .map(Matcher::Pattern)
            .map_err(|_| format!("a regular expression instead of {text:?}"))
    }

    /// Whether a name is meant.
    pub fn fits(&self, name: &str) -> bool {
        match self {
            Matcher::All => true,
            Matcher::Names(names) => names.iter().any(|known| known == name),
            Matcher::Pattern(pattern) => pattern.is_match(name),
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
            assert_eq!(Matcher::parse(matcher).unwrap().fits(name), fits, "{matcher} {name}");
        }
        assert!(Matcher::parse("Bash(").is_err());
    }
}
