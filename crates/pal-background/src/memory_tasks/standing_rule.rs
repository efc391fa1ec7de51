//! Standing rules in what the user says, such as `always pnpm, never npm`. They are worth remembering however little was
//! said.

/// Words that a rule starts with.
const RULE_STARTS: [&str; 8] =
    ["always", "never", "remember", "immer", "nie", "niemals", "toujours", "siempre"];
/// Words before the start of a rule that do not change it.
const OPENINGS: [&str; 14] =
    ["please", "and", "but", "also", "so", "ok", "okay", "no", "we", "you", "should", "must", "bitte", "wir"];
/// Phrases anywhere in a sentence that make it a rule.
const RULE_PHRASES: [&str; 4] = ["from now on", "in future", "ab jetzt", "in zukunft"];
/// Maximum words of a sentence: rules are short.
const WORDS_MAX: usize = 30;

/// Returns true if a text states a rule for what follows. Questions are none.
pub(super) fn states_rule(text: &str) -> bool {
    text.split_inclusive(['.', '!', '?', '\n', ';', ',', ':']).any(|clause| {
        let words: Vec<String> = clause
            .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        if clause.ends_with('?') || words.len() < 2 || words.len() > WORDS_MAX {
            return false;
        }
        let mut rest = words.iter().map(String::as_str).skip_while(|word| OPENINGS.contains(word));
        let starts = rest.next().is_some_and(|word| RULE_STARTS.contains(&word));
        let joined = words.join(" ");
        (starts && rest.next().is_some_and(|word| word != "mind"))
            || RULE_PHRASES.iter().any(|phrase| joined.contains(phrase))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_from_other_statements() {
        for rule in [
            "always pnpm, never npm",
            "Never push to main.",
            "Looks good. Please always run the linter before you commit!",
            "We never release on Fridays",
            "From now on, write tests first.",
            "remember that the port is 4010",
            "Bitte nie auf main pushen",
        ] {
            assert!(states_rule(rule), "{rule}");
        }
        for other in [
            "never mind",
            "the build always fails on this machine",
            "should we always use pnpm?",
            "fix the parser",
            "always",
            "",
        ] {
            assert!(!states_rule(other), "{other}");
        }
    }
}
