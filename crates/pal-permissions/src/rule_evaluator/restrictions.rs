//! Deny and ask rules applied to a command line. They err on the safe side and hold in every mode.

use super::command_access::whole_line_rule;
use super::file_access::FileAccess;
use super::{RuleEvaluator, ask_by_rule, deny_by_rule, stricter};
use crate::permission_rule::{CommandPattern, PathPattern, PatternMatch};
use crate::shell::{self, CommandAction, CommandLine, CommandPart, GitReadScope, InnerCommands, ShellWord};
use crate::{PermissionRule, SourcedRule, TargetPath, Verdict};

/// Maximum nesting of command lines, as in `bash -c 'bash -c …'`.
const NESTED_LINES_MAX: usize = 4;

impl RuleEvaluator<'_> {
    /// Verdict of deny and ask rules, including paths that are never writable.
    pub(super) fn check_restrictions(&self, command: &str, script: &CommandLine) -> Verdict {
        self.strict_script(command, script, 0)
    }

    fn strict_script(&self, command: &str, script: &CommandLine, depth: usize) -> Verdict {
        let mut verdict = Verdict::Allow;
        for part in &script.parts {
            verdict = stricter(verdict, self.strict_part(command, part, depth));
        }
        if verdict == Verdict::Allow && !script.doubts.is_empty() {
            verdict = self.ask_if_restricted(command, &script.doubts.join(", it "));
        }
        verdict
    }

    /// Asks if a restrictive rule may cover an unreadable part.
    fn ask_if_restricted(&self, command: &str, doubts: &str) -> Verdict {
        let is_at_stake =
            |placed: &&SourcedRule| placed.rule.command().is_some() || placed.rule.path().is_some();
        let placed = self.rules.deny.iter().chain(&self.rules.ask).find(is_at_stake);
        placed.map_or(Verdict::Allow, |placed| {
            let why = format!("it {doubts}, and the rule {placed} may be about it");
            Verdict::Ask { why, rule: whole_line_rule(command) }
        })
    }

    fn strict_part(&self, command: &str, part: &CommandPart, depth: usize) -> Verdict {
        match &part.action {
            CommandAction::Run(words) => {
                let verdict =
                    stricter(self.strict_command(command, words), self.strict_words(command, part, words));
                stricter(verdict, self.strict_inside(command, part, words, depth))
            }
            CommandAction::ChangeDirectory(word) => {
                self.strict_command(command, &[shell::decode_word("cd"), word.clone()])
            }
            CommandAction::ReadFile(word) => self.strict_file(command, part, word, FileAccess::Read),
            CommandAction::WriteFile(word) => self.strict_file(command, part, word, FileAccess::Write),
        }
    }

    /// Checks a command and every command that it may run.
    fn strict_command(&self, command: &str, words: &[ShellWord]) -> Verdict {
        let mut verdict = self.strict_words_of_command(command, words);
        if shell::runs_another(words) {
            for start in 1..words.len() {
                verdict = stricter(verdict, self.strict_words_of_command(command, &words[start..]));
            }
        }
        verdict
    }

    /// Checks command lines that a command gets as text.
    fn strict_inside(&self, command: &str, part: &CommandPart, words: &[ShellWord], depth: usize) -> Verdict {
        let InnerCommands { lines, maybe, unseen, shows_unnamed } = shell::find_inner_commands(words);
        let mut verdict = Verdict::Allow;
        if lines.len() + maybe.len() > 0 && depth >= NESTED_LINES_MAX {
            return self.ask_if_restricted(command, "has lines in lines in lines");
        }
        for line in &lines {
            verdict = stricter(verdict, self.strict_line(command, part, line, depth, true));
        }
        for line in &maybe {
            // It may be plain text that never runs.
            let judged = match self.strict_line(command, part, line, depth, false) {
                Verdict::Deny { why } => {
                    Verdict::Ask { why: format!("{why}, if it runs"), rule: whole_line_rule(command) }
                }
                judged => judged,
            };
            verdict = stricter(verdict, judged);
        }
        if let Some(why) = unseen {
            verdict = stricter(verdict, self.ask_if_restricted(command, why));
        }
        if shows_unnamed {
            verdict = stricter(verdict, self.denied_reading(command, |_| true));
        }
        verdict
    }

    fn strict_line(
        &self,
        command: &str,
        part: &CommandPart,
        line: &str,
        depth: usize,
        is_run: bool,
    ) -> Verdict {
        let resolve = |named: &str, directory: &std::path::Path| self.context.target(named, directory).real;
        let judged = part.directories.iter().map(|directory| {
            let mut script = shell::parse_command_line(line, directory, &resolve);
            script.doubts.retain(|_| is_run);
            self.strict_script(command, &script, depth + 1)
        });
        judged.fold(Verdict::Allow, stricter)
    }

    fn strict_words_of_command(&self, command: &str, words: &[ShellWord]) -> Verdict {
        let suspicion = |placed: &SourcedRule| {
            placed.rule.command().map_or(PatternMatch::No, |pattern| pattern.match_restrictively(words))
        };
        let mut verdict = Verdict::Allow;
        for placed in &self.rules.deny {
            match suspicion(placed) {
                PatternMatch::Yes => return deny_by_rule(placed),
                PatternMatch::Maybe => verdict = stricter(verdict, ask_by_possible_match(placed, command)),
                PatternMatch::No => {}
            }
        }
        let is_answered = |pattern: &CommandPattern| pattern.covers(words).is_some();
        if self.rules.session_rules().filter_map(PermissionRule::command).any(is_answered) {
            return verdict;
        }
        for placed in &self.rules.ask {
            if suspicion(placed) != PatternMatch::No {
                let rule = shell::suggest_rule(words).unwrap_or_else(|| whole_line_rule(command));
                verdict = stricter(verdict, ask_by_rule(placed, rule));
            }
        }
        verdict
    }

    /// Checks files named anywhere in a command, regardless of their use.
    fn strict_words(&self, command: &str, part: &CommandPart, words: &[ShellWord]) -> Verdict {
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

    /// Checks git commands, which show files without naming them.
    fn strict_git(&self, command: &str, part: &CommandPart, words: &[ShellWord]) -> Verdict {
        let words = shell::strip_wrappers(words);
        let is_git = words
            .first()
            .and_then(ShellWord::text)
            .is_some_and(|name| name.rsplit('/').next() == Some("git"));
        if !is_git {
            return Verdict::Allow;
        }
        // An unknown word may be an option.
        let texts: Vec<&str> = words[1..].iter().map(|word| word.text().unwrap_or("-?")).collect();
        match shell::git_read_scope(&texts) {
            GitReadScope::Nothing => Verdict::Allow,
            GitReadScope::Anything => self.denied_reading(command, |_| true),
            GitReadScope::Below(paths) => {
                let targets: Vec<TargetPath> =
                    paths.iter().flat_map(|path| self.targets(path, part)).collect();
                self.denied_reading(command, |pattern| {
                    targets.iter().any(|target| pattern.reaches_into(&target.real, self.context))
                })
            }
        }
    }

    /// Folders that a command reads recursively: all named paths, if its operands are unknown.
    fn folders(&self, part: &CommandPart, words: &[ShellWord]) -> Vec<TargetPath> {
        match shell::read_only_operands(words) {
            Some(operands) => {
                operands.iter().flat_map(|operand| self.targets(&operand.named, part)).collect()
            }
            None => {
                let named = words
                    .iter()
                    .skip(1)
                    .filter_map(ShellWord::text)
                    .flat_map(|text| self.targets_in(text, part));
                named.chain(self.targets(".", part)).collect()
            }
        }
    }

    fn strict_operand(&self, command: &str, target: &TargetPath) -> Verdict {
        if let Some(verdict) = self.restricted_verdict_by_pattern(target, FileAccess::Read) {
            return verdict;
        }
        match self.restricted_verdict_by_pattern(target, FileAccess::Write) {
            Some(Verdict::Deny { why }) => {
                Verdict::Ask { why: format!("{why}, if it is changed"), rule: whole_line_rule(command) }
            }
            _ => Verdict::Allow,
        }
    }

    /// Asks if a restrictive rule covers something in a folder that the command reads completely.
    fn strict_folder(&self, command: &str, target: &TargetPath, words: &[ShellWord]) -> Verdict {
        // `rg` skips hidden files by default.
        let is_tame = words.first().is_some_and(|word| word.raw == "rg")
            && !words.iter().any(|word| {
                word.raw.starts_with("--hid") || word.raw.starts_with("--no-ig") || {
                    word.raw.starts_with('-') && !word.raw.starts_with("--") && word.raw.contains(['u', '.'])
                }
            });
        let reaches = |pattern: &PathPattern| {
            pattern.reaches_into(&target.real, self.context) && !(is_tame && pattern.is_hidden())
        };
        self.denied_reading(command, reaches)
    }

    /// Checks a word whose files are unknown until the command runs.
    fn strict_unknown(
        &self,
        command: &str,
        part: &CommandPart,
        word: &ShellWord,
        words: &[ShellWord],
    ) -> Verdict {
        match (&word.text, word.is_glob) {
            (Some(text), true) => {
                let fixed = text.split(['*', '?', '[']).next().unwrap_or_default();
                let folder = fixed
                    .rsplit_once('/')
                    .map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder });
                let targets = self.targets_in(folder, part);
                let reaches = |pattern: &PathPattern| {
                    targets.iter().any(|target| pattern.reaches_into(&target.real, self.context))
                };
                self.denied_reading(command, reaches)
            }
            _ if shell::shows_content(words) => self.denied_reading(command, |_| true),
            _ => Verdict::Allow,
        }
    }

    fn denied_reading(&self, command: &str, may_be: impl Fn(&PathPattern) -> bool) -> Verdict {
        let is_meant = |placed: &&SourcedRule| {
            placed.rule.is_about_reading("Read") && placed.rule.path().is_some_and(&may_be)
        };
        let mut placed = self.rules.deny.iter().chain(&self.rules.ask);
        placed.find(is_meant).map_or(Verdict::Allow, |placed| ask_by_possible_match(placed, command))
    }

    fn strict_file(
        &self,
        command: &str,
        part: &CommandPart,
        word: &ShellWord,
        access: FileAccess,
    ) -> Verdict {
        let Some(text) = word.text() else {
            let is_meant = |placed: &&SourcedRule| placed.rule.path().is_some();
            return self
                .rules
                .deny
                .iter()
                .find(is_meant)
                .map_or(Verdict::Allow, |placed| ask_by_possible_match(placed, command));
        };
        let mut verdict = Verdict::Allow;
        for target in self.targets(text, part) {
            let own = match access {
                FileAccess::Write => self.write(&target),
                FileAccess::Read => self.read(&target),
            };
            let ruled = self.restricted_verdict(&target, access).unwrap_or(Verdict::Allow);
            let strict = if matches!(own, Verdict::Deny { .. }) { own } else { ruled };
            verdict = stricter(verdict, strict);
        }
        verdict
    }

    /// Paths that a word may contain, as in `--file=name`, `-fname`, `@name` and `HEAD:name`.
    pub(super) fn targets_in(&self, text: &str, part: &CommandPart) -> Vec<TargetPath> {
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

fn ask_by_possible_match(placed: &SourcedRule, command: &str) -> Verdict {
    Verdict::Ask {
        why: format!("the rule {placed} may be about it, which is known only when it runs"),
        rule: whole_line_rule(command),
    }
}
