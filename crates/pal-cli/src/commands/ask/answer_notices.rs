//! Notices about answers that ended early or failed.

use pal_report::sanitize;
use pal_wire::FailureKind;

/// Describes an early end of an answer; none if it ended by itself.
pub(super) fn early_end(stop_reason: &str) -> Option<String> {
    Some(match stop_reason {
        "end_turn" | "tool_use" | "stop_sequence" => return None,
        "max_tokens" => "the answer was cut at --max-tokens".to_owned(),
        "refusal" => "the model refused to answer".to_owned(),
        "model_context_window_exceeded" => {
            "the answer was cut at the end of the model's context window".to_owned()
        }
        other => format!("the answer stopped early: {}", sanitize(other)),
    })
}

/// Returns the next step after a failure.
pub(super) fn next_step(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TooLong(_) | FailureKind::TooLarge => {
            "ask a model with a larger window (--model), or a shorter session"
        }
        FailureKind::Authentication | FailureKind::Permission => {
            "check the key: of `pal login`, or ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or OPENAI_API_KEY"
        }
        FailureKind::Billing => "check your account's balance and limits with the provider",
        FailureKind::NotFound => "check the name of the model (--model) and the address",
        FailureKind::Connection => "check that the server runs and that the address is correct",
        FailureKind::Invalid => "`pal render` and `pal check` show the request",
        FailureKind::RateLimited | FailureKind::Overloaded => "wait a moment, then ask again",
        FailureKind::AnswerTooLarge => "check the server at the base URL, or raise max_response_mb",
        FailureKind::Deadline => "ask for a shorter answer, or raise response_timeout_s",
        FailureKind::Conflict
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Cut
        | FailureKind::Silent
        | FailureKind::Malformed => "ask again; nothing was stored",
    }
}
