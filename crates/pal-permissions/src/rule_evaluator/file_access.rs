//! Verdicts on reading and changing files.

use std::path::Path;

use super::{RuleEvaluator, ask_by_rule, deny_by_rule};
use crate::permission_rule::PathPattern;
use crate::sensitive_paths::{credential, protected};
use crate::{PermissionMode, PermissionRule, SourcedRule, TargetPath, Verdict};

/// Tools that record their changes of memories.
const RECORDING_TOOLS: [&str; 2] = ["Edit", "Write"];

/// Kind of access to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    Write,
}

impl RuleEvaluator<'_> {
    pub(super) fn read(&self, target: &TargetPath) -> Verdict {
        if let Some(verdict) = self
            .check_application_files(target, FileAccess::Read)
            .or_else(|| self.restricted_verdict(target, FileAccess::Read))
        {
            return verdict;
        }
        let path = self.below(&target.real);
        let named = self.context.rule_paths(target);
        let real = target.real.as_path();
        // A memory file with a credential name holds no credentials.
        let is_memory = self.context.is_memory(real);
        let secret = credential(path).or_else(|| credential(self.below(&named[1]))).filter(|_| !is_memory);
        let is_free = self.context.is_inside(real) || self.context.is_of_session(real) || is_memory;
        let is_allowed = match &secret {
            Some(name) => self.allows_by_name(target, FileAccess::Read, name),
            None => is_free || self.allows(target, FileAccess::Read),
        };
        let is_open = self.is_bypass_confined() && secret.is_none();
        if self.is_unconfined() || is_open || is_allowed {
            return Verdict::Allow;
        }
        if self.is_bypass_confined() {
            return self.out_of_sandbox(FileAccess::Read, target);
        }
        let why = match secret {
            Some(name) => format!("`{}` may hold credentials (`{name}`)", target.named),
            None => format!("`{}` lies outside of the project", target.real.display()),
        };
        Verdict::Ask { why, rule: self.path_rule(FileAccess::Read, target) }
    }

    pub(super) fn write(&self, target: &TargetPath) -> Verdict {
        if let Some(verdict) = self.check_application_files(target, FileAccess::Write) {
            return verdict;
        }
        let ruled = self.restricted_verdict(target, FileAccess::Write);
        if let Some(verdict @ Verdict::Deny { .. }) = ruled {
            return verdict;
        }
        if self.mode == PermissionMode::Plan {
            return Verdict::Deny { why: String::from("in plan mode nothing is changed") };
        }
        if let Some(verdict) = ruled {
            return verdict;
        }
        let named = self.context.rule_paths(target);
        let paths = [self.below(&target.real), self.below(&named[1])];
        let guarded = paths.iter().find_map(|path| protected(path).or_else(|| credential(path)));
        let is_inside = self.context.is_inside(&target.real);
        let is_allowed = match &guarded {
            _ if self.is_recorded_memory(target) => true,
            Some(name) => self.allows_by_name(target, FileAccess::Write, name),
            None => {
                (self.mode == PermissionMode::AcceptEdits && is_inside)
                    || self.allows(target, FileAccess::Write)
            }
        };
        let is_open = self.is_bypass_confined()
            && guarded.is_none()
            && (is_inside
                || self.context.sandbox.writable.iter().any(|folder| target.real.starts_with(folder)));
        if self.is_unconfined() || is_open || is_allowed {
            return Verdict::Allow;
        }
        if self.is_bypass_confined() {
            return self.out_of_sandbox(FileAccess::Write, target);
        }
        let why = match guarded {
            Some(name) => {
                format!("changing `{}` may change what programs run or know (`{name}`)", target.named)
            }
            None if !is_inside => format!("`{}` lies outside of the project", target.real.display()),
            None => format!("no rule allows changing `{}`", target.named),
        };
        Verdict::Ask { why, rule: self.path_rule(FileAccess::Write, target) }
    }

    /// Component that makes a path guarded: application files, files that decide which programs run, and
    /// credentials. `None` if a rule names it.
    pub(super) fn guarded_name(&self, target: &TargetPath) -> Option<String> {
        if self.context.is_own(&target.real) && !self.context.is_of_session(&target.real) {
            return Some(target.real.display().to_string());
        }
        let named = self.context.rule_paths(target);
        let paths = [self.below(&target.real), self.below(&named[1])];
        let name = paths.iter().find_map(|path| protected(path).or_else(|| credential(path)))?;
        let is_named = self.allows_by_name(target, FileAccess::Write, &name)
            || self.allows_by_name(target, FileAccess::Read, &name);
        (!is_named).then_some(name)
    }

    /// Denies an access outside the sandbox of bypass mode and names the rule that would allow it.
    fn out_of_sandbox(&self, access: FileAccess, target: &TargetPath) -> Verdict {
        let rule = self.path_rule(access, target);
        let why = format!(
            "bypass mode runs in the sandbox, and `{}` is out of its reach: the rule `{rule}` would allow it",
            target.named
        );
        Verdict::Deny { why }
    }

    /// Returns whether it is a memory changed by a tool that records changes. Commands do not.
    fn is_recorded_memory(&self, target: &TargetPath) -> bool {
        RECORDING_TOOLS.contains(&self.tool) && self.context.is_memory(&target.real)
    }

    /// Denies access to the application folder except for spilled results and memories.
    fn check_application_files(&self, target: &TargetPath, access: FileAccess) -> Option<Verdict> {
        let path = target.real.as_path();
        let is_log = self.context.is_of_session(path);
        let is_secret = self.context.is_own(path)
            && !is_log
            && !self.context.is_memory(path)
            && credential(self.below(path)).is_some();
        let is_closed = match access {
            FileAccess::Read => is_secret,
            FileAccess::Write => (self.context.is_own(path) || is_log) && !self.is_recorded_memory(target),
        };
        is_closed
            .then(|| Verdict::Deny { why: format!("`{}` belongs to the program itself", path.display()) })
    }

    /// Verdict of deny and ask rules. A bare `Read` rule covers only that tool; a bare `Edit` rule covers
    /// every change.
    pub(super) fn restricted_verdict(&self, target: &TargetPath, access: FileAccess) -> Option<Verdict> {
        self.restricted_verdict_by(target, access, access == FileAccess::Write)
    }

    /// Verdict of deny and ask rules with a pattern.
    pub(super) fn restricted_verdict_by_pattern(
        &self,
        target: &TargetPath,
        access: FileAccess,
    ) -> Option<Verdict> {
        self.restricted_verdict_by(target, access, false)
    }

    fn restricted_verdict_by(
        &self,
        target: &TargetPath,
        access: FileAccess,
        is_bare_meant: bool,
    ) -> Option<Verdict> {
        let faces = self.context.rule_paths(target);
        let is_meant = |placed: &&SourcedRule| {
            let match_restrictively = |pattern: &PathPattern| {
                faces.iter().any(|face| pattern.matches_restrictively(face, self.context))
            };
            self.is_about(&placed.rule, access)
                && placed.rule.path().map_or(is_bare_meant, match_restrictively)
        };
        if let Some(placed) = self.rules.deny.iter().find(is_meant) {
            return Some(deny_by_rule(placed));
        }
        let is_answered = self.rules.session_rules().any(|rule| self.covers(rule, target, access));
        let placed = self.rules.ask.iter().find(is_meant).filter(|_| !is_answered)?;
        Some(ask_by_rule(placed, self.path_rule(access, target)))
    }

    fn is_about(&self, rule: &PermissionRule, access: FileAccess) -> bool {
        match access {
            FileAccess::Read => rule.is_about_reading(self.tool),
            FileAccess::Write => rule.is_about_writing(),
        }
    }

    fn covers(&self, rule: &PermissionRule, target: &TargetPath, access: FileAccess) -> bool {
        let is_meant = |pattern: &PathPattern| pattern.covers(&target.real, self.context);
        self.is_about(rule, access) && rule.path().is_none_or(is_meant)
    }

    fn allows(&self, target: &TargetPath, access: FileAccess) -> bool {
        self.rules.allow_rules().any(|rule| self.covers(rule, target, access))
    }

    /// Returns whether an allow rule names the guarded component; one that merely matches does not count.
    fn allows_by_name(&self, target: &TargetPath, access: FileAccess, name: &str) -> bool {
        let is_named = |rule: &PermissionRule| rule.path().is_some_and(|pattern| pattern.names(name));
        self.rules.allow_rules().any(|rule| is_named(rule) && self.covers(rule, target, access))
    }

    /// Path relative to its root; the name of a project says nothing about its files.
    fn below<'path>(&self, path: &'path Path) -> &'path Path {
        let roots = self.context.roots.iter();
        roots
            .filter_map(|root| path.strip_prefix(root).ok())
            .min_by_key(|rest| rest.as_os_str().len())
            .unwrap_or(path)
    }

    /// Rule that would allow this file.
    pub(super) fn path_rule(&self, access: FileAccess, target: &TargetPath) -> String {
        let tool = if access == FileAccess::Read { "Read" } else { "Edit" };
        let root = self.context.roots.first();
        let below = root.and_then(|root| target.real.strip_prefix(root).ok());
        let path = match below {
            Some(below) if below.as_os_str().is_empty() => String::from("**"),
            Some(below) => globset::escape(&below.display().to_string()),
            None => globset::escape(&target.real.display().to_string()),
        };
        // Rules are trimmed when parsed, and a file name may have spaces at its ends.
        let is_bare = path.trim() == path;
        let spelt: String = path
            .chars()
            .map(|character| match character {
                _ if is_bare || !character.is_whitespace() => String::from(character),
                space => format!("[{space}]"),
            })
            .collect();
        format!("{tool}({spelt})")
    }
}
