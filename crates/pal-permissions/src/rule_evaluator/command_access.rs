//! Verdicts on commands: every part of a line must be allowed on its own.

use super::file_access::FileAccess;
use super::{RuleEvaluator, stricter};
use crate::permission_rule::CommandPattern;
use crate::shell::{self, CommandAction, CommandLine, CommandPart, Operand, OperandKind, ShellWord};
use crate::trusted_programs::level_by_rule;
use crate::{PermissionMode, PermissionRule, SandboxLevel, SandboxState, TargetPath, Verdict};

impl RuleEvaluator<'_> {
    pub(super) fn run(&self, command: &str) -> Verdict {
        let resolve = |named: &str, directory: &std::path::Path| self.context.target(named, directory).real;
        let script = shell::parse_command_line(command, &self.context.directory, &resolve);
        let strict = self.check_restrictions(command, &script);
        if matches!(strict, Verdict::Deny { .. }) {
            return strict;
        }
        let is_read_only =
            script.doubts.is_empty() && script.parts.iter().all(|part| self.is_read_only(part));
        if self.mode == PermissionMode::Plan && !is_read_only {
            return Verdict::Deny { why: String::from("plan mode runs read-only commands only") };
        }
        // The author of a rule with the whole line has seen all of it.
        let is_written =
            |rule: &PermissionRule| rule.command().is_some_and(|pattern| pattern.is_text(command));
        if self.rules.session_rules().any(is_written) {
            return Verdict::Allow;
        }
        let is_free = self.mode == PermissionMode::Bypass || self.rules.allow_rules().any(is_written);
        if strict != Verdict::Allow || is_free {
            return strict;
        }
        if self.rules.allow_rules().any(|rule| rule.is_about_tool("Bash")) {
            return self.guarded_line(command, &script);
        }
        self.check_parts(command, &script)
    }

    /// Checks a line that a rule for all of `Bash` allows: guarded paths still ask.
    fn guarded_line(&self, command: &str, script: &CommandLine) -> Verdict {
        let judged = script.parts.iter().map(|part| match &part.action {
            CommandAction::Run(words) if self.is_read_only(part) => {
                let operands = shell::read_only_operands(words).unwrap_or_default();
                let targets = operands.iter().flat_map(|operand| self.targets(&operand.named, part));
                targets.map(|target| self.unguarded(command, part, &target)).fold(Verdict::Allow, stricter)
            }
            CommandAction::Run(words) => self.unguarded_words(command, part, words),
            CommandAction::WriteFile(word) | CommandAction::ReadFile(word) if word.text().is_none() => {
                unknown_path(command, &part.text)
            }
            CommandAction::WriteFile(word) | CommandAction::ReadFile(word) => {
                let targets = word.text().map(|text| self.targets(text, part)).unwrap_or_default();
                targets
                    .iter()
                    .map(|target| self.unguarded(command, part, target))
                    .fold(Verdict::Allow, stricter)
            }
            CommandAction::ChangeDirectory(_) => Verdict::Allow,
        });
        judged.fold(Verdict::Allow, stricter)
    }

    /// Asks if any word names a guarded path: a rule for a command does not cover those.
    fn unguarded_words(&self, command: &str, part: &CommandPart, words: &[ShellWord]) -> Verdict {
        if may_hide_guarded_path(shell::strip_wrappers(words)) {
            return unknown_path(command, &part.text);
        }
        let texts = words.iter().skip(1).filter_map(|word| word.text.as_deref());
        let targets = texts.flat_map(|text| self.targets_in(text, part));
        targets.map(|target| self.unguarded(command, part, &target)).fold(Verdict::Allow, stricter)
    }

    fn unguarded(&self, command: &str, part: &CommandPart, target: &TargetPath) -> Verdict {
        match self.guarded_name(target) {
            None => Verdict::Allow,
            Some(name) => Verdict::Ask {
                why: format!(
                    "`{}` names a guarded path (`{name}`), which a rule for the command does not cover",
                    part.text
                ),
                rule: whole_line_rule(command),
            },
        }
    }

    fn check_parts(&self, command: &str, script: &CommandLine) -> Verdict {
        if script.parts.is_empty() && script.doubts.is_empty() && command.trim().is_empty() {
            return Verdict::Allow;
        }
        if !script.doubts.is_empty() {
            return Verdict::Ask {
                why: format!("it {}", script.doubts.join(", it ")),
                rule: whole_line_rule(command),
            };
        }
        if let Some(name) = script.variables.first() {
            return ask_about_variable(command, name);
        }
        let judged = script.parts.iter().enumerate();
        judged
            .map(|(idx, part)| self.part(command, part, script.has_unstable_paths(idx)))
            .fold(Verdict::Allow, stricter)
    }

    /// Checks a part of a line; `has_unstable_paths` if an earlier part may have changed what its paths resolve to.
    fn part(&self, command: &str, part: &CommandPart, is_shifted: bool) -> Verdict {
        match &part.action {
            CommandAction::Run(words) => self.command(command, part, words, is_shifted),
            CommandAction::ChangeDirectory(word) => {
                let is_covered = |pattern: &CommandPattern| {
                    pattern.covers(&[shell::decode_word("cd"), word.clone()]).is_some()
                };
                if self.rules.allow_rules().filter_map(PermissionRule::command).any(is_covered) && !is_shifted
                {
                    return Verdict::Allow;
                }
                self.file(command, part, word, FileAccess::Read, is_shifted)
            }
            CommandAction::ReadFile(word) => self.file(command, part, word, FileAccess::Read, is_shifted),
            CommandAction::WriteFile(word) => self.file(command, part, word, FileAccess::Write, is_shifted),
        }
    }

    fn command(&self, command: &str, part: &CommandPart, words: &[ShellWord], is_shifted: bool) -> Verdict {
        let peeled = shell::strip_wrappers(words);
        let reach = shell::find_escape(peeled);
        let is_covered = |words: &[ShellWord], reach: Option<usize>| {
            let mut covering = self.rules.allow_rules().filter_map(PermissionRule::command);
            covering.any(|pattern| {
                pattern.covers(words).is_some_and(|n_named| reach.is_none_or(|idx| n_named > idx))
            })
        };
        let is_plain = peeled.first().is_some_and(ShellWord::is_plain);
        let whole_reach = shell::find_escape(words).map(|(idx, _)| idx);
        let is_ruled = is_plain
            && (is_covered(peeled, reach.as_ref().map(|(idx, _)| *idx)) || is_covered(words, whole_reach));
        if let Some(operands) = shell::read_only_operands(words) {
            let judged = match part.variables.first() {
                Some(name) => ask_about_variable(command, name),
                None => self.check_operands(command, part, &operands, is_shifted),
            };
            let judged = match judged {
                Verdict::Allow => self.check_sandbox(command, part, words),
                judged => judged,
            };
            if judged == Verdict::Allow || !is_ruled {
                return judged;
            }
        }
        if is_ruled {
            return self.unguarded_words(command, part, words);
        }
        let rule =
            shell::suggest_rule(peeled).filter(|_| is_plain).unwrap_or_else(|| whole_line_rule(command));
        let why = match reach {
            Some((_, why)) => format!("`{}` is not allowed: {why}", part.text),
            None => format!("no rule allows `{}`", part.text),
        };
        Verdict::Ask { why, rule }
    }

    /// Allows a read-only command if there is a sandbox for it; else asks.
    fn check_sandbox(&self, command: &str, part: &CommandPart, words: &[ShellWord]) -> Verdict {
        let is_builtin = words.first().and_then(ShellWord::text).is_some_and(shell::is_builtin);
        let why = match self.context.sandbox.state {
            SandboxState::Available => return Verdict::Allow,
            _ if is_builtin => return Verdict::Allow,
            SandboxState::Unavailable => "this machine has no sandbox to run it in (install bubblewrap)",
            SandboxState::Off => "the sandbox is switched off",
        };
        let rule =
            shell::suggest_rule(shell::strip_wrappers(words)).unwrap_or_else(|| whole_line_rule(command));
        Verdict::Ask { why: format!("no rule allows `{}`, and {why}", part.text), rule }
    }

    fn check_operands(
        &self,
        command: &str,
        part: &CommandPart,
        operands: &[Operand],
        is_shifted: bool,
    ) -> Verdict {
        let mut verdict = Verdict::Allow;
        if is_shifted && operands.iter().any(|operand| operand.kind != OperandKind::Root) {
            verdict = ask_about_unstable_paths(command, &part.text);
        }
        for operand in operands {
            for target in self.targets(&operand.named, part) {
                verdict = stricter(
                    verdict,
                    match operand.kind {
                        // Content of a folder includes its hidden files.
                        OperandKind::Content if (self.context.is_folder)(&target.real) => {
                            stricter(self.read(&target), ask_about_hidden_files(command, part))
                        }
                        OperandKind::Content | OperandKind::Tree | OperandKind::Names => self.read(&target),
                        OperandKind::Everything => {
                            stricter(self.read(&target), ask_about_hidden_files(command, part))
                        }
                        OperandKind::Write => self.write(&target),
                        OperandKind::Root if self.context.roots.contains(&target.real) => Verdict::Allow,
                        OperandKind::Root => Verdict::Ask {
                            why: format!(
                                "`{}` runs in `{}`, which may be a repository of its own",
                                part.text,
                                target.real.display()
                            ),
                            rule: shell::parse_command_line(&part.text, &target.real, &|named, directory| {
                                directory.join(named)
                            })
                            .parts
                            .first()
                            .and_then(|part| match &part.action {
                                CommandAction::Run(words) => shell::suggest_rule(words),
                                _ => None,
                            })
                            .unwrap_or_else(|| whole_line_rule(command)),
                        },
                    },
                );
            }
        }
        verdict
    }

    fn file(
        &self,
        command: &str,
        part: &CommandPart,
        word: &ShellWord,
        access: FileAccess,
        is_shifted: bool,
    ) -> Verdict {
        let Some(text) = word.text() else {
            let why = format!("which file `{}` means is known only when it runs", part.text);
            return Verdict::Ask { why, rule: whole_line_rule(command) };
        };
        if is_shifted {
            return ask_about_unstable_paths(command, &part.text);
        }
        let judged = self.targets(text, part).into_iter().map(|target| match access {
            FileAccess::Read => self.read(&target),
            FileAccess::Write => self.write(&target),
        });
        judged.fold(Verdict::Allow, stricter)
    }

    fn is_read_only(&self, part: &CommandPart) -> bool {
        match &part.action {
            CommandAction::Run(words) => shell::read_only_operands(words)
                .is_some_and(|operands| !operands.iter().any(|operand| operand.is_write())),
            CommandAction::ChangeDirectory(_) | CommandAction::ReadFile(_) => true,
            CommandAction::WriteFile(_) => false,
        }
    }

    /// Resolves a name in every directory that a part may run in.
    pub(crate) fn targets(&self, named: &str, part: &CommandPart) -> Vec<TargetPath> {
        part.directories.iter().map(|directory| self.context.target(named, directory)).collect()
    }
}

fn ask_about_unstable_paths(command: &str, part: &str) -> Verdict {
    let why =
        format!("a command before `{part}` may change where its files lead: run it as a call of its own");
    Verdict::Ask { why, rule: whole_line_rule(command) }
}

/// Asks about a search that includes hidden files.
fn ask_about_hidden_files(command: &str, part: &CommandPart) -> Verdict {
    let why = format!(
        "`{}` shows hidden files, too, and they may hold credentials: name files one by one, use `rg` without options for \
         hidden files, or `grep -r` with `--exclude='.*'` or `--include='*.rs'`",
        part.text
    );
    let words = match &part.action {
        CommandAction::Run(words) => shell::strip_wrappers(words),
        _ => &[],
    };
    Verdict::Ask { why, rule: shell::suggest_rule(words).unwrap_or_else(|| whole_line_rule(command)) }
}

/// Asks about printing a variable that the line did not set.
fn ask_about_variable(command: &str, name: &str) -> Verdict {
    Verdict::Ask {
        why: format!("the variable `{name}` may hold credentials"),
        rule: whole_line_rule(command),
    }
}

/// Returns whether a command may name a guarded path in a way that is unknown before it runs: by an unknown
/// word, by text that the shell itself runs, or as a git setting.
fn may_hide_guarded_path(words: &[ShellWord]) -> bool {
    let text = |idx: usize| words.get(idx).and_then(ShellWord::text).unwrap_or_default();
    let is_unknown = |word: &ShellWord| word.text.is_none();
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
        rule: whole_line_rule(command),
    }
}

/// Rule that allows a line exactly as written.
pub(super) fn whole_line_rule(command: &str) -> String {
    format!("Bash({})", shell::trimmed(command))
}
