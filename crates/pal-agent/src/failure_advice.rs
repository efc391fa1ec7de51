//! Advice on provider failures.

use pal_wire::FailureKind;

/// Next step for the user after a failure of the provider. The session is saved in every case.
pub(crate) fn next_step(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TooLong(_) | FailureKind::TooLarge => {
            "go on with a model that has a larger window (--model), or compact the session first (pal compact)"
        }
        FailureKind::Authentication | FailureKind::Permission => {
            "check the key (of `pal login`, or ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or OPENAI_API_KEY; `pal doctor` says \
             which one is used), then go on with --continue"
        }
        FailureKind::Billing => {
            "look at the account's balance and limits with the provider, then go on with --continue"
        }
        FailureKind::NotFound => "check the name of the model (--model) and the address",
        FailureKind::Connection => {
            "check that the server runs and that the address is right, then go on with --continue"
        }
        FailureKind::Invalid => "pal render and pal check show what is sent",
        FailureKind::RateLimited | FailureKind::Overloaded => "wait a little, then go on with --continue",
        FailureKind::AnswerTooLarge => {
            "check the server at the base address, or raise max_response_mb, then go on with --continue"
        }
        FailureKind::Deadline => {
            "ask for smaller pieces or raise response_timeout_s, then go on with --continue"
        }
        FailureKind::Conflict
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Cut
        | FailureKind::Silent
        | FailureKind::Malformed => "nothing is lost: go on with --continue",
    }
}
