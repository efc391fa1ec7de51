//! All rules of a session, each with where it comes from.

use std::fmt;

use crate::{Ground, Rule, Target};

/// A rule and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The rule.
    pub rule: Rule,
    /// Where it comes from, in words that fit behind "of the": `user settings`, `command line`.
    pub origin: String,
}

impl fmt::Display for Placed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` ({})", self.rule, self.origin)
    }
}

/// All rules of a session. A rule that denies beats one that asks, which beats one that allows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// What may go ahead.
    pub allow: Vec<Placed>,
    /// What is always asked for.
    pub ask: Vec<Placed>,
    /// What may not be done, whoever is asked.
    pub deny: Vec<Placed>,
    session: Vec<Rule>,
}

impl Rules {
    /// Allows something until the session ends, because a person who was asked said so: it beats rules that ask, not
    /// those that deny.
    pub fn allow_for_session(&mut self, rule: Rule) {
        if !self.session.contains(&rule) {
            self.session.push(rule);
        }
    }

    /// What was allowed so.
    pub fn for_session(&self) -> impl Iterator<Item = &Rule> {
        self.session.iter()
    }

    /// The rule that denies looking at a file, if there is one. For tools that go through folders: what they may not look
    /// at is left out.
    pub fn denies_reading(&self, target: &Target, ground: &Ground<'_>) -> Option<&Placed> {
        let faces = ground.faces(target);
        self.deny.iter().find(|placed| {
            let is_meant =
                |pattern: &crate::rule::PathPattern| faces.iter().any(|face| pattern.suspects(face, ground));
            placed.rule.is_about_reading("Read") && placed.rule.path().is_some_and(is_meant)
        })
    }

    /// Rules that allow: what was said in this session comes with them.
    pub(crate) fn allowing(&self) -> impl Iterator<Item = &Rule> {
        self.session.iter().chain(self.allow.iter().map(|placed| &placed.rule))
    }

    /// Rules that allow even what others ask for.
    pub(crate) fn answered(&self) -> impl Iterator<Item = &Rule> {
        self.session.iter()
    }
}
