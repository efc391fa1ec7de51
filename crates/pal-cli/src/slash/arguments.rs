//! Words behind a slash command.

/// Arguments of a slash command, taken out one by one; what is left over is an error.
pub(super) struct SlashArguments<'a> {
    words: Vec<&'a str>,
}

impl<'a> SlashArguments<'a> {
    pub(super) fn new(text: &'a str) -> SlashArguments<'a> {
        SlashArguments { words: text.split_whitespace().collect() }
    }

    /// Takes a flag such as `--all`.
    pub(super) fn take_flag(&mut self, flag: &str) -> bool {
        let count = self.words.len();
        self.words.retain(|word| *word != flag);
        self.words.len() < count
    }

    /// Takes an option with a value: `--format html` or `--format=html`.
    pub(super) fn take_option(&mut self, option: &str) -> Option<&'a str> {
        let with_value = |word: &'a str| word.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
        if let Some(at) = self.words.iter().position(|word| with_value(word).is_some()) {
            return with_value(self.words.remove(at));
        }
        let at = self.words.iter().position(|word| *word == option)?;
        self.words.remove(at);
        (at < self.words.len()).then(|| self.words.remove(at))
    }

    /// Takes the first word that is no option.
    pub(super) fn take_word(&mut self) -> Option<&'a str> {
        let at = self.words.iter().position(|word| !word.starts_with("--"))?;
        Some(self.words.remove(at))
    }

    /// Checks that nothing is left; the error names the first word that is.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.words.first() {
            Some(word) => Err(format!("unexpected argument `{}`", pal_report::sanitize(word))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_options_and_words_are_taken_in_any_order() {
        let mut arguments = SlashArguments::new("out.html --no-mask --format html");
        assert_eq!(arguments.take_option("--format"), Some("html"));
        assert!(arguments.take_flag("--no-mask") && !arguments.take_flag("--no-mask"));
        assert_eq!((arguments.take_word(), arguments.finish()), (Some("out.html"), Ok(())));
        assert_eq!(SlashArguments::new("--format=json").take_option("--format"), Some("json"));
        assert_eq!(SlashArguments::new("x").finish(), Err(String::from("unexpected argument `x`")));
    }
}
