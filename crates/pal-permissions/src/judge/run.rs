//! Running commands: every part of a line has to be allowed on its own.

use super::files::Touch;
use super::{Judge, asked, denied, stricter};
use crate::rule::{CommandPattern, Match, PathPattern};
use crate::shell::{self, Deed, Operand, OperandKind, Part, Script, Word};
use crate::{Mode, Placed, Rule, Target, Verdict};

impl Judge<'_> {
    pub(super) fn run(&self, command: &str) -> Verdict {
        let resolve = |named: &str, directory: &std::path::Path| self.ground.target(named, directory).real;
        let script = shell::read(command, &self.ground.directory, &resolve);
        let strict = self.strictly(command, &script);
        if matches!(strict, Verdict::Deny { .. }) {
            return strict;
        }
        if self.mode == Mode::Plan && !shell::only_looks(command) {
            let is_move = script.doubts.is_empty() && script.parts.iter().all(|part| self.only_looks(part));
            if !is_move {
                return Verdict::Deny { why: String::from("in plan mode only commands that look are run") };
            }
        }
        // Whoever wrote the whole line into a rule has seen all of it.
        let is_written = |rule: &Rule| rule.command().is_some_and(|pattern| pattern.is_text(command));
        if self.rules.answered().any(is_written) {
            return Verdict::Allow;
        }
        let is_bare = |rule: &Rule| rule.is_about_tool("Bash");
        let is_free =
            self.mode == Mode::Bypass || self.rules.allowing().any(|rule| is_bare(rule) || is_written(rule));
        if strict != Verdict::Allow || is_free {
            return strict;
        }
        self.part_by_part(command, &script)
    }

    /// What rules say that deny or ask, and where nothing is ever written.
    fn strictly(&self, command: &str, script: &Script) -> Verdict {
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
            Deed::Enter(_) => self.strict_command(command, &[shell::decode("cd")]),
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
        if let Some(verdict) = self.ruled(target, Touch::Read) {
            return verdict;
        }
        match self.ruled(target, Touch::Write) {
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

    fn part_by_part(&self, command: &str, script: &Script) -> Verdict {
        if script.parts.is_empty() && script.doubts.is_empty() && command.trim().is_empty() {
            return Verdict::Allow;
        }
        if !script.doubts.is_empty() {
            return Verdict::Ask { why: format!("it {}", script.doubts.join(", it ")), rule: whole(command) };
        }
        let mut is_shifted = false;
        let mut verdict = Verdict::Allow;
        for part in &script.parts {
            verdict = stricter(verdict, self.part(command, part, is_shifted));
            is_shifted |= matches!(&part.deed, Deed::Run(words) if shell::moves_names(words) && shell::look(words).is_none());
        }
        verdict
    }

    /// A part of a line; `is_shifted` if something before it may have changed where names lead to.
    fn part(&self, command: &str, part: &Part, is_shifted: bool) -> Verdict {
        match &part.deed {
            Deed::Run(words) => self.command(command, part, words, is_shifted),
            Deed::Enter(word) => {
                let is_covered =
                    |pattern: &CommandPattern| pattern.covers(&[shell::decode("cd"), word.clone()]).is_some();
                if self.rules.allowing().filter_map(Rule::command).any(is_covered) && !is_shifted {
                    return Verdict::Allow;
                }
                self.file(command, part, word, Touch::Read, is_shifted)
            }
            Deed::Take(word) => self.file(command, part, word, Touch::Read, is_shifted),
            Deed::Put(word) => self.file(command, part, word, Touch::Write, is_shifted),
        }
    }

    fn command(&self, command: &str, part: &Part, words: &[Word], is_shifted: bool) -> Verdict {
        let peeled = shell::peel(words);
        let reach = shell::hatch(peeled);
        let is_covered = |words: &[Word], reach: Option<usize>| {
            let mut covering = self.rules.allowing().filter_map(Rule::command);
            covering.any(|pattern| {
                pattern.covers(words).is_some_and(|n_named| reach.is_none_or(|idx| n_named > idx))
            })
        };
        let is_plain = peeled.first().is_some_and(Word::is_plain);
        let whole_reach = shell::hatch(words).map(|(idx, _)| idx);
        if is_plain
            && (is_covered(peeled, reach.as_ref().map(|(idx, _)| *idx)) || is_covered(words, whole_reach))
        {
            return Verdict::Allow;
        }
        if let Some(operands) = shell::look(words) {
            return self.looked_at(command, part, &operands, is_shifted);
        }
        let rule = shell::rule_for(peeled).filter(|_| is_plain).unwrap_or_else(|| whole(command));
        let why = match reach {
            Some((_, why)) => format!("`{}` is not allowed: {why}", part.text),
            None => format!("no rule allows `{}`", part.text),
        };
        Verdict::Ask { why, rule }
    }

    fn looked_at(&self, command: &str, part: &Part, operands: &[Operand], is_shifted: bool) -> Verdict {
        let mut verdict = Verdict::Allow;
        if is_shifted && operands.iter().any(|operand| operand.kind != OperandKind::Root) {
            verdict = shifted(command, &part.text);
        }
        for operand in operands {
            for target in self.targets(&operand.named, part) {
                verdict = stricter(
                    verdict,
                    match operand.kind {
                        OperandKind::Content | OperandKind::Names => self.read(&target),
                        OperandKind::Write => self.write(&target),
                        OperandKind::Root if self.ground.roots.contains(&target.real) => Verdict::Allow,
                        OperandKind::Root => Verdict::Ask {
                            why: format!(
                                "`{}` runs in `{}`, which may be a repository of its own",
                                part.text,
                                target.real.display()
                            ),
                            rule: shell::read(&part.text, &target.real, &|named, directory| {
                                directory.join(named)
                            })
                            .parts
                            .first()
                            .and_then(|part| match &part.deed {
                                Deed::Run(words) => shell::rule_for(words),
                                _ => None,
                            })
                            .unwrap_or_else(|| whole(command)),
                        },
                    },
                );
            }
        }
        verdict
    }

    fn file(&self, command: &str, part: &Part, word: &Word, touch: Touch, is_shifted: bool) -> Verdict {
        let Some(text) = word.text() else {
            let why = format!("which file `{}` means is known only when it runs", part.text);
            return Verdict::Ask { why, rule: whole(command) };
        };
        if is_shifted {
            return shifted(command, &part.text);
        }
        let judged = self.targets(text, part).into_iter().map(|target| match touch {
            Touch::Read => self.read(&target),
            Touch::Write => self.write(&target),
        });
        judged.fold(Verdict::Allow, stricter)
    }

    fn only_looks(&self, part: &Part) -> bool {
        match &part.deed {
            Deed::Run(words) => {
                shell::look(words).is_some_and(|operands| !operands.iter().any(Operand::is_write))
            }
            Deed::Enter(_) | Deed::Take(_) => true,
            Deed::Put(_) => false,
        }
    }

    /// Where a name leads from every directory that a part may run in.
    fn targets(&self, named: &str, part: &Part) -> Vec<Target> {
        part.directories.iter().map(|directory| self.ground.target(named, directory)).collect()
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

fn shifted(command: &str, part: &str) -> Verdict {
    let why =
        format!("a command before `{part}` may change where its files lead: run it as a call of its own");
    Verdict::Ask { why, rule: whole(command) }
}

/// The rule that allows a line as it is written.
fn whole(command: &str) -> String {
    format!("Bash({})", command.trim())
}
