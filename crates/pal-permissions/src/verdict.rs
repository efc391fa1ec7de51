//! What permissions say to a call.

/// What permissions say to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It may go ahead.
    Allow,
    /// A person has to be asked.
    Ask {
        /// Why nothing allows it already, in one sentence.
        why: String,
        /// The rule that would allow it, as it is written in settings.
        rule: String,
    },
    /// It may not, whoever is asked.
    Deny {
        /// Why, in one sentence; names the rule or the mode.
        why: String,
    },
}
