//! Rules that deny or ask, held against a command line: they err on the safe side, and they hold in every mode.

use super::files::Touch;
use super::run::whole;
use super::{Judge, asked, denied, stricter};
use crate::rule::{CommandPattern, Match, PathPattern};
use crate::shell::{self, Deed, Part, Script, Word};
use crate::{Placed, Rule, Target, Verdict};

impl Judge<'_> {
    /// What rules say that deny or ask, and where nothing is ever written.
    pub(super) fn strictly(&self, command: &str, script: &Script) -> Verdict {
        let mut verdict = Verdict::Allow;
        for part in &script.parts {
            verdict = stricter(verdict, self.strict_part(command, part));
        }
        if verdict == Verdict::Allow && !script.doubts.is_empty() {
            // What cannot be read may be what a rule denies.
            let is_at_stake =
                |placed: &&Placed| placed.rule.command().is_some() || placed.rule.path().is_some();
            if let Some(placed) = self.rules.deny.iter().chain(&self.rules.ask).find(is_at_stake) {
                let why =
                    format!("it {}, and the rule {placed} may be about it", script.doubts.join(", it "));
                verdict = Verdict::Ask { why, rule: whole(command) };
            }
        }
        verdict
    }

    fn strict_part(&self, command: &str, part: &Part) -> Verdict {
        match &part.deed {
            Deed::Run(words) => {
                stricter(self.strict_command(command, words), self.strict_words(command, part, words))
            }
            Deed::Enter(word) => self.strict_command(command, &[shell::decode("cd"), word.clone()]),
            Deed::Take(word) => self.strict_file(command, part, word, Touch::Read),
            Deed::Put(word) => self.strict_file(command, part, word, Touch::Write),
        }
    }

    /// A command, or one that it runs, may be meant by a rule.
    fn strict_command(&self, command: &str, words: &[Word]) -> Verdict {
        let mut verdict = self.strict_words_of_command(command, words);
        if shell::runs_another(words) {
            for start in 1..words.len() {
                verdict = stricter(verdict, self.strict_words_of_command(command, &words[start..]));
            }
        }
        if let Some(line) = shell::inner_line(words) {
            let resolve =
                |named: &str, directory: &std::path::Path| self.ground.target(named, directory).real;
            // One step in: what a shell inside a shell inside a shell does is asked for anyway.
            let inner = shell::read(&line, &self.ground.directory, &resolve);
            for part in &inner.parts {
                if let Deed::Run(words) = &part.deed {
                    verdict = stricter(verdict, self.strict_words_of_command(command, words));
                    verdict = stricter(verdict, self.strict_words(command, part, words));
                }
            }
        }
        verdict
    }

    fn strict_words_of_command(&self, command: &str, words: &[Word]) -> Verdict {
        let suspicion =
            |placed: &Placed| placed.rule.command().map_or(Match::No, |pattern| pattern.suspects(words));
        let mut verdict = Verdict::Allow;
        for placed in &self.rules.deny {
            match suspicion(placed) {
                Match::Yes => return denied(placed),
                Match::Maybe => verdict = stricter(verdict, asked_maybe(placed, command)),
                Match::No => {}
            }
        }
        let is_answered = |pattern: &CommandPattern| pattern.covers(words).is_some();
        if self.rules.answered().filter_map(Rule::command).any(is_answered) {
            return verdict;
        }
        for placed in &self.rules.ask {
            if suspicion(placed) != Match::No {
                let rule = shell::rule_for(words).unwrap_or_else(|| whole(command));
                verdict = stricter(verdict, asked(placed, rule));
            }
        }
        verdict
    }

    /// Files that are named anywhere in a command may be meant by a rule, whatever the command does with them.
    fn strict_words(&self, command: &str, part: &Part, words: &[Word]) -> Verdict {
        let mut verdict = Verdict::Allow;
        for word in words.iter().skip(1) {
            verdict = stricter(
                verdict,
                match word.text() {
                    Some(text) => {
                        let named = self.targets_in(text, part).into_iter();
                        named
                            .map(|target| self.strict_operand(command, &target))
                            .fold(Verdict::Allow, stricter)
                    }
                    None => self.strict_unknown(command, part, word, words),
                },
            );
        }
        if shell::is_recursive_reader(words) {
            for folder in self.folders(part, words) {
                verdict = stricter(verdict, self.strict_folder(command, &folder, words));
            }
        }
        verdict
    }

    /// Folders that a command goes through: all that it names, if it is not known which of its words are folders.
    fn folders(&self, part: &Part, words: &[Word]) -> Vec<Target> {
        match shell::look(words) {
            Some(operands) => {
                operands.iter().flat_map(|operand| self.targets(&operand.named, part)).collect()
            }
            None => {
                let named =
                    words.iter().skip(1).filter_map(Word::text).flat_map(|text| self.targets_in(text, part));
                named.chain(self.targets(".", part)).collect()
            }
        }
    }

    fn strict_operand(&self, command: &str, target: &Target) -> Verdict {
        if let Some(verdict) = self.ruled_by_pattern(target, Touch::Read) {
            return verdict;
        }
        match self.ruled_by_pattern(target, Touch::Write) {
            Some(Verdict::Deny { why }) => {
                Verdict::Ask { why: format!("{why}, if it is changed"), rule: whole(command) }
            }
            _ => Verdict::Allow,
        }
    }

    /// Something in a folder may not be looked at, and the command looks at all of it.
    fn strict_folder(&self, command: &str, target: &Target, words: &[Word]) -> Verdict {
        // `rg` passes over hidden files unless it is told otherwise.
        let is_tame = words.first().is_some_and(|word| word.raw == "rg")
            && !words.iter().any(|word| {
                word.raw.starts_with("--hid") || word.raw.starts_with("--no-ig") || {
                    word.raw.starts_with('-') && !word.raw.starts_with("--") && word.raw.contains(['u', '.'])
                }
            });
        let reaches = |pattern: &PathPattern| {
            pattern.reaches_into(&target.real, self.ground) && !(is_tame && pattern.is_hidden())
        };
        self.denied_reading(command, reaches)
    }

    /// A word of which it is not known which files it stands for.
    fn strict_unknown(&self, command: &str, part: &Part, word: &Word, words: &[Word]) -> Verdict {
        match (&word.text, word.is_glob) {
            (Some(text), true) => {
                let fixed = text.split(['*', '?', '[']).next().unwrap_or_default();
                let folder = fixed
                    .rsplit_once('/')
                    .map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder });
                let targets = self.targets_in(folder, part);
                let reaches = |pattern: &PathPattern| {
                    targets.iter().any(|target| pattern.reaches_into(&target.real, self.ground))
                };
                self.denied_reading(command, reaches)
            }
            _ if shell::shows_content(words) => self.denied_reading(command, |_| true),
            _ => Verdict::Allow,
        }
    }

    fn denied_reading(&self, command: &str, may_be: impl Fn(&PathPattern) -> bool) -> Verdict {
        let is_meant = |placed: &&Placed| {
            placed.rule.is_about_reading("Read") && placed.rule.path().is_some_and(&may_be)
        };
        self.rules.deny.iter().find(is_meant).map_or(Verdict::Allow, |placed| asked_maybe(placed, command))
    }

    fn strict_file(&self, command: &str, part: &Part, word: &Word, touch: Touch) -> Verdict {
        let Some(text) = word.text() else {
            let is_meant = |placed: &&Placed| placed.rule.path().is_some();
            return self
                .rules
                .deny
                .iter()
                .find(is_meant)
                .map_or(Verdict::Allow, |placed| asked_maybe(placed, command));
        };
        let mut verdict = Verdict::Allow;
        for target in self.targets(text, part) {
            let own = match touch {
                Touch::Write => self.write(&target),
                Touch::Read => self.read(&target),
            };
            let ruled = self.ruled(&target, touch).unwrap_or(Verdict::Allow);
            let strict = if matches!(own, Verdict::Deny { .. }) { own } else { ruled };
            verdict = stricter(verdict, strict);
        }
        verdict
    }

    /// Files that may be named inside a word, such as in `--file=name`, `-fname`, `@name` and `HEAD:name`.
    fn targets_in(&self, text: &str, part: &Part) -> Vec<Target> {
        let mut names = vec![text];
        names.extend(text.match_indices(['=', ':', '@', ',']).map(|(at, _)| &text[at + 1..]));
        let glued =
            text.strip_prefix('-').and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
        names.extend(glued);
        names.retain(|name| !name.is_empty());
        names.iter().flat_map(|name| self.targets(name, part)).collect()
    }
}

fn asked_maybe(placed: &Placed, command: &str) -> Verdict {
    Verdict::Ask {
        why: format!("the rule {placed} may be about it, which is known only when it runs"),
        rule: whole(command),
    }
}
