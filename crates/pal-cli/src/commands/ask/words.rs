//! What people are told about answers that did not come to their own end.

use pal_wire::FailureKind;

use crate::table::harmless;

/// What a reader must know of an answer that did not come to its own end.
pub(super) fn early_end(stop_reason: &str) -> Option<String> {
    Some(match stop_reason {
        "end_turn" | "tool_use" | "stop_sequence" => return None,
        "max_tokens" => "the answer was cut at --max-tokens".to_owned(),
        "refusal" => "the model refused to answer".to_owned(),
        "model_context_window_exceeded" => "the answer was cut at the end of the model's window".to_owned(),
        other => format!("the answer stopped early: {}", harmless(other)),
    })
}

/// What to do about a failure.
pub(super) fn way_on(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TooLong { .. } | FailureKind::TooLarge => {
            "ask a model with a larger window (--model), or a shorter session"
        }
        FailureKind::Authentication | FailureKind::Permission => {
            "check the key: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or OPENAI_API_KEY"
        }
        FailureKind::Billing => "look at the account's balance and limits with the provider",
        FailureKind::NotFound => "check the name of the model (--model) and the address",
        FailureKind::Connection => "check that the server runs and that the address is right",
        FailureKind::Invalid => "pal render and pal check show what is sent",
        FailureKind::RateLimited | FailureKind::Overloaded => "wait a little, then ask again",
        FailureKind::AnswerTooLarge => "check the server at the base address, or raise max_answer_mb",
        FailureKind::Deadline => "ask for smaller pieces, or raise answer_limit_s",
        FailureKind::Conflict
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Cut
        | FailureKind::Silent
        | FailureKind::Malformed => "ask again; nothing was kept",
    }
}
