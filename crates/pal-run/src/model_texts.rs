//! Texts that the run itself sends to the model.

/// An answer reached its limit.
pub(crate) const GO_ON: &str = "Your answer reached the limit of one message. Go on exactly where it stopped: no apology, no \
    repetition, no summary of what was said. Divide what is left into smaller pieces where you can.";

/// The connection broke in the middle of an answer.
pub(crate) const BROKEN: &str = "The connection broke in the middle of your answer; what arrived of it stands above. Tool calls in \
    it were not carried out. Go on exactly where it stopped.";

/// A call in an answer that broke off.
pub(crate) const CALL_BROKEN: &str = "[Not carried out: the connection broke before your answer was whole.]";

/// A call in an answer that reached its limit.
pub(crate) const CALL_CUT: &str =
    "[Not carried out: your answer reached the limit of one message before it was whole.]";

/// The user interrupted a call.
pub(crate) const CALL_INTERRUPTED: &str = "[Interrupted by the user before it returned a result.]";

/// A call after one that stopped the run.
pub(crate) const CALL_STOPPED: &str = "[Not carried out: the run was stopped.]";

/// The user interrupted the run.
pub(crate) const INTERRUPTED: &str =
    "The user interrupted you here. Wait for what they say; do not take up the work again by yourself.";
