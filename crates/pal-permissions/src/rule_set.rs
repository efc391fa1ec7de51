//! Rules of a session with their sources.

use std::fmt;

use crate::{PermissionContext, PermissionRule, TargetPath};

/// Rule with its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcedRule {
    /// Parsed rule.
    pub rule: PermissionRule,
    /// Source in words that fit after "of the": `user settings`, `command line`.
    pub origin: String,
}

impl fmt::Display for SourcedRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` ({})", self.rule, self.origin)
    }
}

/// Rules of a session. Deny beats ask, ask beats allow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleSet {
    /// Rules that allow.
    pub allow: Vec<SourcedRule>,
    /// Rules that always ask.
    pub ask: Vec<SourcedRule>,
    /// Rules that deny in every mode.
    pub deny: Vec<SourcedRule>,
    session: Vec<PermissionRule>,
    prompt: Vec<PermissionRule>,
}

impl RuleSet {
    /// Adds an allow rule until [`RuleSet::end_prompt`]: a command of the user brings it along.
    pub fn allow_for_prompt(&mut self, rule: PermissionRule) {
        self.prompt.push(rule);
    }

    /// Removes the rules of [`RuleSet::allow_for_prompt`].
    pub fn end_prompt(&mut self) {
        self.prompt.clear();
    }

    /// Adds a rule until the session ends, after the user confirmed it. It beats ask rules but not deny
    /// rules.
    pub fn allow_for_session(&mut self, rule: PermissionRule) {
        if !self.session.contains(&rule) {
            self.session.push(rule);
        }
    }

    /// Rules added by [`RuleSet::allow_for_session`].
    pub fn for_session(&self) -> impl Iterator<Item = &PermissionRule> {
        self.session.iter()
    }

    /// Returns the rule that denies reading a file. For recursive tools, which skip such files.
    pub fn denies_reading(
        &self,
        target: &TargetPath,
        context: &PermissionContext<'_>,
    ) -> Option<&SourcedRule> {
        let faces = context.rule_paths(target);
        self.deny.iter().find(|placed| {
            let is_meant = |pattern: &crate::permission_rule::PathPattern| {
                faces.iter().any(|face| pattern.matches_restrictively(face, context))
            };
            placed.rule.is_about_reading("Read") && placed.rule.path().is_some_and(is_meant)
        })
    }

    /// Allow rules, those of this session first.
    pub(crate) fn allow_rules(&self) -> impl Iterator<Item = &PermissionRule> {
        self.session.iter().chain(&self.prompt).chain(self.allow.iter().map(|placed| &placed.rule))
    }

    /// Session rules, which beat ask rules.
    pub(crate) fn session_rules(&self) -> impl Iterator<Item = &PermissionRule> {
        self.session.iter()
    }
}
