//! Choice of the sandbox for a command: a second barrier, independent of the verdict.
//!
//! Every command starts at the strictest level, and only a rule or the mode raises it. So a command that was
//! wrongly taken for harmless still changes nothing.

use std::path::PathBuf;

use crate::permission_rule::CommandPattern;
use crate::rule_evaluator::{PermissionRequest, RuleEvaluator};
use crate::shell::{self, CommandAction, CommandPart, ShellWord};
use crate::trusted_programs::level_by_rule;
use crate::{
    PermissionContext, PermissionMode, PermissionRule, RuleSet, SandboxLevel, SandboxState, ToolAccess,
    is_credential_path,
};

/// Sandbox of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confinement {
    /// Sandbox of the whole line.
    pub level: SandboxLevel,
    /// Commands in the line with a stricter sandbox of their own, in order. Empty if all have the same level.
    pub parts: Vec<ConfinedPart>,
    /// Files outside the project or with credentials that rules allow to read.
    pub readable: Vec<PathBuf>,
}

/// Command in a line with a sandbox of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfinedPart {
    /// Byte offset in the line at which the command starts.
    pub start: usize,
    /// Sandbox of the command.
    pub level: SandboxLevel,
}

impl Confinement {
    /// Confines the whole line to one level.
    pub fn whole(level: SandboxLevel) -> Confinement {
        Confinement { level, parts: Vec::new(), readable: Vec::new() }
    }
}

/// Chooses the sandbox for an allowed command. The caller runs confirmed commands without one.
pub fn confine_command(
    command: &str,
    mode: PermissionMode,
    rules: &RuleSet,
    context: &PermissionContext<'_>,
) -> Confinement {
    let evaluator = RuleEvaluator::new(&PermissionRequest { tool: "Bash", needs: &[], mode }, rules, context);
    let resolve = |named: &str, directory: &std::path::Path| context.target(named, directory).real;
    let script = shell::parse_command_line(command, &context.directory, &resolve);
    let unruled = match mode {
        PermissionMode::Bypass if context.sandbox.state == SandboxState::Off => SandboxLevel::Full,
        PermissionMode::Bypass => SandboxLevel::WorkspaceWrite,
        PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Plan => {
            SandboxLevel::ReadOnly
        }
    };
    let is_written = |rule: &PermissionRule| rule.command().is_some_and(|pattern| pattern.is_text(command));
    if rules.allow_rules().any(is_written) {
        return Confinement::whole(SandboxLevel::Full);
    }
    let is_bare = rules.allow_rules().any(|rule| rule.is_about_tool("Bash"));
    if !script.doubts.is_empty() {
        // Its parts are unknown.
        return Confinement::whole(if is_bare { SandboxLevel::Guarded.max(unruled) } else { unruled });
    }
    let ruled = |words: &[ShellWord]| {
        let peeled = shell::strip_wrappers(words);
        let covers =
            |pattern: &CommandPattern| pattern.covers(peeled).is_some() || pattern.covers(words).is_some();
        (is_bare || rules.allow_rules().filter_map(PermissionRule::command).any(covers))
            .then(|| level_by_rule(peeled))
    };
    let mut levels = Vec::new();
    let mut has_writes = false;
    for part in &script.parts {
        match &part.action {
            CommandAction::Run(words)
                if words.first().and_then(ShellWord::text).is_some_and(shell::is_builtin) => {}
            CommandAction::Run(words) => {
                let unruled = evaluator.level_of_writes(part, words, unruled);
                let level = ruled(words).map_or(unruled, |level| level.max(unruled));
                levels.push((start_of_program(part, words), level));
            }
            // In bypass mode the shell itself writes inside the sandbox.
            CommandAction::WriteFile(_) => has_writes |= mode != PermissionMode::Bypass,
            CommandAction::ChangeDirectory(_) | CommandAction::ReadFile(_) => {}
        }
    }
    let readable = evaluator.readable(&script.parts);
    let first = levels.first().map_or(unruled, |(_, level)| *level);
    let is_one = levels.iter().all(|(_, level)| *level == first);
    if is_one && !has_writes {
        return Confinement { level: first, parts: Vec::new(), readable };
    }
    // The shell itself only joins the parts and writes where rules or the mode allowed it.
    let confined = levels.iter().filter(|(_, level)| *level != SandboxLevel::Full);
    let parts: Option<Vec<_>> =
        confined.map(|(start, level)| Some(ConfinedPart { start: (*start)?, level: *level })).collect();
    match parts {
        Some(mut parts) => {
            parts.sort_by_key(|part| part.start);
            Confinement { level: SandboxLevel::Full, parts, readable }
        }
        None => Confinement { level: unruled, parts: Vec::new(), readable },
    }
}

/// Byte offset of a command's program in its line, after a leading `time`.
fn start_of_program(part: &CommandPart, words: &[ShellWord]) -> Option<usize> {
    let is_word = |idx: usize, text: &str| words.get(idx).and_then(ShellWord::text) == Some(text);
    let idx = match (is_word(0, "time"), is_word(1, "-p")) {
        (true, true) => 2,
        (true, false) => 1,
        (false, _) => 0,
    };
    part.starts.get(idx).copied()
}

impl RuleEvaluator<'_> {
    /// Sandbox level that a command needs for the files it creates, as far as rules allow them.
    fn level_of_writes(
        &self,
        part: &CommandPart,
        words: &[ShellWord],
        unruled: SandboxLevel,
    ) -> SandboxLevel {
        let operands = shell::read_only_operands(words).unwrap_or_default();
        let written = operands.iter().filter(|operand| operand.is_write());
        let targets: Vec<_> = written.flat_map(|operand| self.targets(&operand.named, part)).collect();
        if targets.is_empty()
            || !targets.iter().all(|target| self.is_allowed(&ToolAccess::Write(target.clone())))
        {
            return unruled;
        }
        match targets.iter().all(|target| self.context.is_inside(&target.real)) {
            true => SandboxLevel::WorkspaceWrite.max(unruled),
            false => SandboxLevel::Full,
        }
    }

    /// Files outside the project or with credentials that a line reads and rules allow.
    fn readable(&self, parts: &[CommandPart]) -> Vec<PathBuf> {
        let mut readable = Vec::new();
        for part in parts {
            let names: Vec<String> = match &part.action {
                CommandAction::Run(words) => shell::read_only_operands(words)
                    .map(|operands| operands.into_iter().map(|operand| operand.named).collect())
                    .unwrap_or_default(),
                CommandAction::ReadFile(word) | CommandAction::ChangeDirectory(word) => {
                    word.text().map(String::from).into_iter().collect()
                }
                CommandAction::WriteFile(_) => Vec::new(),
            };
            for target in names.iter().flat_map(|name| self.targets(name, part)) {
                // All other files of the project are visible anyway.
                let is_closed = !self.context.is_inside(&target.real) || is_credential_path(&target.real);
                let need = ToolAccess::Read(target.clone());
                if is_closed && self.is_allowed(&need) && !readable.contains(&target.real) {
                    readable.push(target.real);
                }
            }
        }
        readable
    }
}
