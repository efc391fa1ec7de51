//! Running commands: every part of a line has to be allowed on its own.

use super::files::Touch;
use super::{Judge, stricter};
use crate::confinement::level_by_rule;
use crate::rule::CommandPattern;
use crate::shell::{self, Deed, Operand, OperandKind, Part, Script, Word};
use crate::{Mode, Rule, SandboxLevel, SandboxState, Target, Verdict};

impl Judge<'_> {
    pub(super) fn run(&self, command: &str) -> Verdict {
        let resolve = |named: &str, directory: &std::path::Path| self.ground.target(named, directory).real;
        let script = shell::read(command, &self.ground.directory, &resolve);
        let strict = self.strictly(command, &script);
        if matches!(strict, Verdict::Deny { .. }) {
            return strict;
        }
        let is_read_only =
            script.doubts.is_empty() && script.parts.iter().all(|part| self.is_read_only(part));
        if self.mode == Mode::Plan && !is_read_only {
            return Verdict::Deny { why: String::from("plan mode runs read-only commands only") };
        }
        // Whoever wrote the whole line into a rule has seen all of it.
        let is_written = |rule: &Rule| rule.command().is_some_and(|pattern| pattern.is_text(command));
        if self.rules.answered().any(is_written) {
            return Verdict::Allow;
        }
        let is_free = self.mode == Mode::Bypass || self.rules.allowing().any(is_written);
        if strict != Verdict::Allow || is_free {
            return strict;
        }
        if self.rules.allowing().any(|rule| rule.is_about_tool("Bash")) {
            return self.guarded_line(command, &script);
        }
        self.part_by_part(command, &script)
    }

    /// A line that a rule for all of `Bash` allows: guarded paths are asked about even so.
    fn guarded_line(&self, command: &str, script: &Script) -> Verdict {
        let judged = script.parts.iter().map(|part| match &part.deed {
            Deed::Run(words) if self.is_read_only(part) => {
                let operands = shell::read_only_operands(words).unwrap_or_default();
                let targets = operands.iter().flat_map(|operand| self.targets(&operand.named, part));
                targets.map(|target| self.unguarded(command, part, &target)).fold(Verdict::Allow, stricter)
            }
            Deed::Run(words) => self.unguarded_words(command, part, words),
            Deed::Put(word) | Deed::Take(word) if word.text().is_none() => unknown_path(command, &part.text),
            Deed::Put(word) | Deed::Take(word) => {
                let targets = word.text().map(|text| self.targets(text, part)).unwrap_or_default();
                targets
                    .iter()
                    .map(|target| self.unguarded(command, part, target))
                    .fold(Verdict::Allow, stricter)
            }
            Deed::Enter(_) => Verdict::Allow,
        });
        judged.fold(Verdict::Allow, stricter)
    }

    /// A rule about a command says nothing about guarded paths: where one is named, in whichever word, a person is asked.
    fn unguarded_words(&self, command: &str, part: &Part, words: &[Word]) -> Verdict {
        if may_hide_guarded_path(shell::peel(words)) {
            return unknown_path(command, &part.text);
        }
        let texts = words.iter().skip(1).filter_map(|word| word.text.as_deref());
        let targets = texts.flat_map(|text| self.targets_in(text, part));
        targets.map(|target| self.unguarded(command, part, &target)).fold(Verdict::Allow, stricter)
    }

    fn unguarded(&self, command: &str, part: &Part, target: &Target) -> Verdict {
        match self.guarded_name(target) {
            None => Verdict::Allow,
            Some(name) => Verdict::Ask {
                why: format!(
                    "`{}` names a guarded path (`{name}`), which a rule for the command does not cover",
                    part.text
                ),
                rule: whole(command),
            },
        }
    }

    fn part_by_part(&self, command: &str, script: &Script) -> Verdict {
        if script.parts.is_empty() && script.doubts.is_empty() && command.trim().is_empty() {
            return Verdict::Allow;
        }
        if !script.doubts.is_empty() {
            return Verdict::Ask { why: format!("it {}", script.doubts.join(", it ")), rule: whole(command) };
        }
        if let Some(name) = script.variables.first() {
            return shown(command, name);
        }
        let judged = script.parts.iter().enumerate();
        judged
            .map(|(idx, part)| self.part(command, part, script.is_shifted(idx)))
            .fold(Verdict::Allow, stricter)
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
        let is_ruled = is_plain
            && (is_covered(peeled, reach.as_ref().map(|(idx, _)| *idx)) || is_covered(words, whole_reach));
        if let Some(operands) = shell::read_only_operands(words) {
            let judged = match part.variables.first() {
                Some(name) => shown(command, name),
                None => self.looked_at(command, part, &operands, is_shifted),
            };
            let judged = match judged {
                Verdict::Allow => self.confined(command, part, words),
                judged => judged,
            };
            if judged == Verdict::Allow || !is_ruled {
                return judged;
            }
        }
        if is_ruled {
            return self.unguarded_words(command, part, words);
        }
        let rule = shell::rule_for(peeled).filter(|_| is_plain).unwrap_or_else(|| whole(command));
        let why = match reach {
            Some((_, why)) => format!("`{}` is not allowed: {why}", part.text),
            None => format!("no rule allows `{}`", part.text),
        };
        Verdict::Ask { why, rule }
    }

    /// A read-only command runs in the sandbox; where there is none, a person is asked.
    fn confined(&self, command: &str, part: &Part, words: &[Word]) -> Verdict {
        let is_builtin = words.first().and_then(Word::text).is_some_and(shell::is_builtin);
        let why = match self.ground.sandbox.state {
            SandboxState::Available => return Verdict::Allow,
            _ if is_builtin => return Verdict::Allow,
            SandboxState::Unavailable => "this machine has no sandbox to run it in (install bubblewrap)",
            SandboxState::Off => "the sandbox is switched off",
        };
        let rule = shell::rule_for(shell::peel(words)).unwrap_or_else(|| whole(command));
        Verdict::Ask { why: format!("no rule allows `{}`, and {why}", part.text), rule }
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
                        // What is in a folder is in its files, hidden ones too.
                        OperandKind::Content if (self.ground.is_folder)(&target.real) => {
                            stricter(self.read(&target), hidden_too(command, part))
                        }
                        OperandKind::Content | OperandKind::Tree | OperandKind::Names => self.read(&target),
                        OperandKind::Everything => stricter(self.read(&target), hidden_too(command, part)),
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

    fn is_read_only(&self, part: &Part) -> bool {
        match &part.deed {
            Deed::Run(words) => shell::read_only_operands(words)
                .is_some_and(|operands| !operands.iter().any(|operand| operand.is_write())),
            Deed::Enter(_) | Deed::Take(_) => true,
            Deed::Put(_) => false,
        }
    }

    /// Where a name leads from every directory that a part may run in.
    pub(crate) fn targets(&self, named: &str, part: &Part) -> Vec<Target> {
        part.directories.iter().map(|directory| self.ground.target(named, directory)).collect()
    }
}

fn shifted(command: &str, part: &str) -> Verdict {
    let why =
        format!("a command before `{part}` may change where its files lead: run it as a call of its own");
    Verdict::Ask { why, rule: whole(command) }
}

/// A search goes through hidden files.
fn hidden_too(command: &str, part: &Part) -> Verdict {
    let why = format!(
        "`{}` shows hidden files, too, and they may hold credentials: name files one by one, use `rg` without options for \
         hidden files, or `grep -r` with `--exclude='.*'` or `--include='*.rs'`",
        part.text
    );
    let words = match &part.deed {
        Deed::Run(words) => shell::peel(words),
        _ => &[],
    };
    Verdict::Ask { why, rule: shell::rule_for(words).unwrap_or_else(|| whole(command)) }
}

/// A variable that the line did not set may be shown.
fn shown(command: &str, name: &str) -> Verdict {
    Verdict::Ask { why: format!("the variable `{name}` may hold credentials"), rule: whole(command) }
}

/// Whether a command may name a guarded path in a way that cannot be seen before it runs: by a word that is not known, by a text
/// that the shell itself runs, or as a setting of git.
fn may_hide_guarded_path(words: &[Word]) -> bool {
    let text = |idx: usize| words.get(idx).and_then(Word::text).unwrap_or_default();
    let is_unknown = |word: &Word| word.text.is_none();
    let operands = words.get(1..).unwrap_or_default();
    match text(0) {
        "eval" | "source" | "." | "trap" | "exec" | "builtin" | "command" | "coproc" | "enable" => {
            !operands.is_empty()
        }
        "git" if operands.iter().any(|word| word.text() == Some("config")) => {
            shell::read_only_operands(words).is_none()
        }
        _ if level_by_rule(words) == SandboxLevel::Full => {
            operands.iter().any(|word| is_unknown(word) && word.raw.starts_with('-'))
        }
        _ => operands.iter().any(is_unknown),
    }
}

fn unknown_path(command: &str, part: &str) -> Verdict {
    Verdict::Ask {
        why: format!("`{part}` may name a guarded path, which a rule for the command does not cover"),
        rule: whole(command),
    }
}

/// The rule that allows a line as it is written.
pub(super) fn whole(command: &str) -> String {
    format!("Bash({})", shell::trimmed(command))
}
