//! Looking at files and changing them.

use std::path::Path;

use super::{Judge, asked, denied};
use crate::rule::PathPattern;
use crate::sensitive::{credential, protected};
use crate::{Mode, Placed, Rule, Target, Verdict};

/// The tools whose changes of memories are put on record.
const KEEPING: [&str; 2] = ["Edit", "Write"];

/// What is done with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
}

impl Judge<'_> {
    pub(super) fn read(&self, target: &Target) -> Verdict {
        if let Some(verdict) = self.own(target, Touch::Read).or_else(|| self.ruled(target, Touch::Read)) {
            return verdict;
        }
        let path = self.below(&target.real);
        let named = self.ground.faces(target);
        let real = target.real.as_path();
        // A memory about credentials holds none.
        let is_memory = self.ground.is_memory(real);
        let secret = credential(path).or_else(|| credential(self.below(&named[1]))).filter(|_| !is_memory);
        let is_free = self.ground.is_inside(real) || self.ground.is_of_session(real) || is_memory;
        let is_allowed = match &secret {
            Some(name) => self.allows_by_name(target, Touch::Read, name),
            None => is_free || self.allows(target, Touch::Read),
        };
        let is_open = self.is_bypass_confined() && secret.is_none();
        if self.is_unconfined() || is_open || is_allowed {
            return Verdict::Allow;
        }
        if self.is_bypass_confined() {
            return self.out_of_sandbox(Touch::Read, target);
        }
        let why = match secret {
            Some(name) => format!("`{}` may hold credentials (`{name}`)", target.named),
            None => format!("`{}` lies outside of the project", target.real.display()),
        };
        Verdict::Ask { why, rule: self.path_rule(Touch::Read, target) }
    }

    pub(super) fn write(&self, target: &Target) -> Verdict {
        if let Some(verdict) = self.own(target, Touch::Write) {
            return verdict;
        }
        let ruled = self.ruled(target, Touch::Write);
        if let Some(verdict @ Verdict::Deny { .. }) = ruled {
            return verdict;
        }
        if self.mode == Mode::Plan {
            return Verdict::Deny { why: String::from("in plan mode nothing is changed") };
        }
        if let Some(verdict) = ruled {
            return verdict;
        }
        let named = self.ground.faces(target);
        let paths = [self.below(&target.real), self.below(&named[1])];
        let guarded = paths.iter().find_map(|path| protected(path).or_else(|| credential(path)));
        let is_inside = self.ground.is_inside(&target.real);
        let is_allowed = match &guarded {
            _ if self.is_kept(target) => true,
            Some(name) => self.allows_by_name(target, Touch::Write, name),
            None => (self.mode == Mode::AcceptEdits && is_inside) || self.allows(target, Touch::Write),
        };
        let is_open = self.is_bypass_confined()
            && guarded.is_none()
            && (is_inside
                || self.ground.sandbox.writable.iter().any(|folder| target.real.starts_with(folder)));
        if self.is_unconfined() || is_open || is_allowed {
            return Verdict::Allow;
        }
        if self.is_bypass_confined() {
            return self.out_of_sandbox(Touch::Write, target);
        }
        let why = match guarded {
            Some(name) => {
                format!("changing `{}` may change what programs run or know (`{name}`)", target.named)
            }
            None if !is_inside => format!("`{}` lies outside of the project", target.real.display()),
            None => format!("no rule allows changing `{}`", target.named),
        };
        Verdict::Ask { why, rule: self.path_rule(Touch::Write, target) }
    }

    /// The part of a path that makes it a guarded one: the program's own files, what decides which programs run, and
    /// credentials. A rule that names it lifts the guard.
    pub(super) fn guarded_name(&self, target: &Target) -> Option<String> {
        if self.ground.is_own(&target.real) && !self.ground.is_of_session(&target.real) {
            return Some(target.real.display().to_string());
        }
        let named = self.ground.faces(target);
        let paths = [self.below(&target.real), self.below(&named[1])];
        let name = paths.iter().find_map(|path| protected(path).or_else(|| credential(path)))?;
        let is_named = self.allows_by_name(target, Touch::Write, &name)
            || self.allows_by_name(target, Touch::Read, &name);
        (!is_named).then_some(name)
    }

    /// Bypass mode asks nobody: what its sandbox does not hold is refused, with the rule that would allow it.
    fn out_of_sandbox(&self, touch: Touch, target: &Target) -> Verdict {
        let rule = self.path_rule(touch, target);
        let why = format!(
            "bypass mode runs in the sandbox, and `{}` is out of its reach: the rule `{rule}` would allow it",
            target.named
        );
        Verdict::Deny { why }
    }

    /// Whether it is a memory that is changed by a tool that puts every change on record. A command does not.
    fn is_kept(&self, target: &Target) -> bool {
        KEEPING.contains(&self.tool) && self.ground.is_memory(&target.real)
    }

    /// The program's own folder is closed, but for what the session put aside and for memories.
    fn own(&self, target: &Target, touch: Touch) -> Option<Verdict> {
        let path = target.real.as_path();
        let is_log = self.ground.is_of_session(path);
        let is_secret = self.ground.is_own(path)
            && !is_log
            && !self.ground.is_memory(path)
            && credential(self.below(path)).is_some();
        let is_closed = match touch {
            Touch::Read => is_secret,
            Touch::Write => (self.ground.is_own(path) || is_log) && !self.is_kept(target),
        };
        is_closed
            .then(|| Verdict::Deny { why: format!("`{}` belongs to the program itself", path.display()) })
    }

    /// What rules say that deny or ask. One that denies all of `Read` is about that tool; one that denies all of `Edit` is
    /// about every change.
    pub(super) fn ruled(&self, target: &Target, touch: Touch) -> Option<Verdict> {
        self.ruled_by(target, touch, touch == Touch::Write)
    }

    /// What rules say that deny or ask by a pattern.
    pub(super) fn ruled_by_pattern(&self, target: &Target, touch: Touch) -> Option<Verdict> {
        self.ruled_by(target, touch, false)
    }

    fn ruled_by(&self, target: &Target, touch: Touch, is_bare_meant: bool) -> Option<Verdict> {
        let faces = self.ground.faces(target);
        let is_meant = |placed: &&Placed| {
            let suspects =
                |pattern: &PathPattern| faces.iter().any(|face| pattern.suspects(face, self.ground));
            self.is_about(&placed.rule, touch) && placed.rule.path().map_or(is_bare_meant, suspects)
        };
        if let Some(placed) = self.rules.deny.iter().find(is_meant) {
            return Some(denied(placed));
        }
        let is_answered = self.rules.answered().any(|rule| self.covers(rule, target, touch));
        let placed = self.rules.ask.iter().find(is_meant).filter(|_| !is_answered)?;
        Some(asked(placed, self.path_rule(touch, target)))
    }

    fn is_about(&self, rule: &Rule, touch: Touch) -> bool {
        match touch {
            Touch::Read => rule.is_about_reading(self.tool),
            Touch::Write => rule.is_about_writing(),
        }
    }

    fn covers(&self, rule: &Rule, target: &Target, touch: Touch) -> bool {
        let is_meant = |pattern: &PathPattern| pattern.covers(&target.real, self.ground);
        self.is_about(rule, touch) && rule.path().is_none_or(is_meant)
    }

    fn allows(&self, target: &Target, touch: Touch) -> bool {
        self.rules.allowing().any(|rule| self.covers(rule, target, touch))
    }

    /// What is guarded is allowed by a rule that names it, not by one that happens to be about it, too.
    fn allows_by_name(&self, target: &Target, touch: Touch, name: &str) -> bool {
        let is_named = |rule: &Rule| rule.path().is_some_and(|pattern| pattern.names(name));
        self.rules.allowing().any(|rule| is_named(rule) && self.covers(rule, target, touch))
    }

    /// A path from the root that it lies in; what a project is called says nothing about its files.
    fn below<'path>(&self, path: &'path Path) -> &'path Path {
        let roots = self.ground.roots.iter();
        roots
            .filter_map(|root| path.strip_prefix(root).ok())
            .min_by_key(|rest| rest.as_os_str().len())
            .unwrap_or(path)
    }

    /// The rule that would allow this file.
    pub(super) fn path_rule(&self, touch: Touch, target: &Target) -> String {
        let tool = if touch == Touch::Read { "Read" } else { "Edit" };
        let root = self.ground.roots.first();
        let below = root.and_then(|root| target.real.strip_prefix(root).ok());
        let path = match below {
            Some(below) if below.as_os_str().is_empty() => String::from("**"),
            Some(below) => globset::escape(&below.display().to_string()),
            None => globset::escape(&target.real.display().to_string()),
        };
        // A rule is read without spaces at its ends, and a file may have them.
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
