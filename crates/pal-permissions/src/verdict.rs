//! Verdict of a permission check.

/// Verdict of a permission check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The user must confirm.
    Ask {
        /// Reason why it is not allowed already, in one sentence.
        why: String,
        /// Rule that would allow it, as written in settings.
        rule: String,
    },
    /// The call may not run.
    Deny {
        /// Reason in one sentence; names the rule or the mode.
        why: String,
    },
}
