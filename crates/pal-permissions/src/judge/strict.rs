//! Rules that deny or ask, held against a command line: they err on the safe side, and they hold in every mode.

use super::files::Touch;
use super::run::whole;
use super::{Judge, asked, denied, stricter};
use crate::rule::{CommandPattern, Match, PathPattern};
use crate::shell::{self, Deed, Inner, Part, Script, Shown, Word};
use crate::{Placed, Rule, Target, Verdict};

/// How deep lines in lines are followed, as in `bash -c 'bash -c …'`.
const LINES_IN_LINES_MAX: usize = 4;

impl Judge<'_> {
    /// What rules say that deny or ask, and where nothing is ever written.
    pub(super) fn strictly(&self, command: &str, script: &Script) -> Verdict {
        self.strict_script(command, script, 0)
    }

    fn strict_script(&self, command: &str, script: &Script, depth: usize) -> Verdict {
        let mut verdict = Verdict::Allow;
        for part in &script.parts {
            verdict = stricter(verdict, self.strict_part(command, part, depth));
        }
        if verdict == Verdict::Allow && !script.doubts.is_empty() {
            verdict = self.at_stake(command, &script.doubts.join(", it "));
        }
        verdict
    }

    /// What cannot be read may be what a rule denies.
    fn at_stake(&self, command: &str, doubts: &str) -> Verdict {
        let is_at_stake = |placed: &&Placed| placed.rule.command().is_some() || placed.rule.path().is_some();
        let placed = self.rules.deny.iter().chain(&self.rules.ask).find(is_at_stake);
        placed.map_or(Verdict::Allow, |placed| {
            let why = format!("it {doubts}, and the rule {placed} may be about it");
            Verdict::Ask { why, rule: whole(command) }
        })
    }

    fn strict_part(&self, command: &str, part: &Part, depth: usize) -> Verdict {
        match &part.deed {
            Deed::Run(words) => {
                let verdict =
                    stricter(self.strict_command(command, words), self.strict_words(command, part, words));
                stricter(verdict, self.strict_inside(command, part, words, depth))
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
        verdict
    }

    /// What a command is given to run as a text may be meant by a rule.
    fn strict_inside(&self, command: &str, part: &Part, words: &[Word], depth: usize) -> Verdict {
        let Inner { lines, maybe, unseen, shows_unnamed } = shell::inner(words);
        let mut verdict = Verdict::Allow;
        if lines.len() + maybe.len() > 0 && depth >= LINES_IN_LINES_MAX {
            return self.at_stake(command, "has lines in lines in lines");
        }
        for line in &lines {
            verdict = stricter(verdict, self.strict_line(command, part, line, depth, true));
        }
        for line in &maybe {
            // It may as well be a text that nobody runs, and need not be a line at all.
            let judged = match self.strict_line(command, part, line, depth, false) {
                Verdict::Deny { why } => {
                    Verdict::Ask { why: format!("{why}, if it runs"), rule: whole(command) }
                }
                judged => judged,
            };
            verdict = stricter(verdict, judged);
        }
        if let Some(why) = unseen {
            verdict = stricter(verdict, self.at_stake(command, why));
        }
        if shows_unnamed {
            verdict = stricter(verdict, self.denied_reading(command, |_| true));
        }
        verdict
    }

    fn strict_line(&self, command: &str, part: &Part, line: &str, depth: usize, is_run: bool) -> Verdict {
        let resolve = |named: &str, directory: &std::path::Path| self.ground.target(named, directory).real;
        let judged = part.directories.iter().map(|directory| {
            let mut script = shell::read(line, directory, &resolve);
            script.doubts.retain(|_| is_run);
            self.strict_script(command, &script, depth + 1)
        });
        judged.fold(Verdict::Allow, stricter)
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
        verdict = stricter(verdict, self.strict_git(command, part, words));
        if shell::is_recursive_reader(words) {
            for folder in self.folders(part, words) {
                verdict = stricter(verdict, self.strict_folder(command, &folder, words));
            }
        }
        verdict
    }

    /// Git shows files without naming them.
    fn strict_git(&self, command: &str, part: &Part, words: &[Word]) -> Verdict {
        let words = shell::peel(words);
        let is_git =
            words.first().and_then(Word::text).is_some_and(|name| name.rsplit('/').next() == Some("git"));
        if !is_git {
            return Verdict::Allow;
        }
        // What is not known may be an option.
        let texts: Vec<&str> = words[1..].iter().map(|word| word.text().unwrap_or("-?")).collect();
        match shell::shown(&texts) {
            Shown::Nothing => Verdict::Allow,
            Shown::Anything => self.denied_reading(command, |_| true),
            Shown::Below(paths) => {
                let targets: Vec<Target> = paths.iter().flat_map(|path| self.targets(path, part)).collect();
                self.denied_reading(command, |pattern| {
                    targets.iter().any(|target| pattern.reaches_into(&target.real, self.ground))
                })
            }
        }
    }

    /// Folders that a command goes through: all that it names, if it is not known which of its words are folders.
    fn folders(&self, part: &Part, words: &[Word]) -> Vec<Target> {
        match shell::read_only_operands(words) {
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
        let mut placed = self.rules.deny.iter().chain(&self.rules.ask);
        placed.find(is_meant).map_or(Verdict::Allow, |placed| asked_maybe(placed, command))
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
    pub(super) fn targets_in(&self, text: &str, part: &Part) -> Vec<Target> {
        let mut names = vec![text];
        names.extend(text.match_indices(['=', ':', '@', ',']).map(|(at, _)| &text[at + 1..]));
        names.extend(text.split(['=', ':', '@', ',']));
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
