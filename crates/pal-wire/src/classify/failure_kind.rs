//! Mapping of error codes, types and statuses to failure kinds.

use super::context_overflow::overflow;
use super::error_body::ErrorBody;
use crate::FailureKind;
use pal_model::ContextOverflow;

/// Classifies an error. `status` is none for an error inside a response with a success status.
pub(super) fn classify_error(status: Option<u16>, error: &ErrorBody<'_>) -> FailureKind {
    let is_success = status.is_some_and(|status| status < 300);
    let status = status.filter(|_| !is_success).or(error.status);
    let named = by_code(error).or_else(|| error.kind.as_deref().and_then(by_type));
    if may_be_overflow(status, named)
        && let Some(found) = overflow(error)
    {
        return found;
    }
    if may_be_rejection(status, named) && is_unsupported_media(error) {
        return FailureKind::Invalid;
    }
    match (named, status) {
        (Some(KindHint::Certain(kind)), _) | (Some(KindHint::Likely(kind)), None) => kind,
        (Some(KindHint::Likely(kind)), Some(status)) => by_status(status).unwrap_or(kind),
        (None, Some(status)) => by_status(status).unwrap_or(FailureKind::Malformed),
        (None, None) if is_success => FailureKind::Malformed,
        (None, None) => FailureKind::Server,
    }
}

/// Failure kind named by a code or type.
#[derive(Clone, Copy)]
enum KindHint {
    /// The name is unambiguous.
    Certain(FailureKind),
    /// Providers use the name for several kinds; the status takes precedence.
    Likely(FailureKind),
}

/// Returns true if the message may report a prompt that is too long, because nothing else is certain.
fn may_be_overflow(status: Option<u16>, named: Option<KindHint>) -> bool {
    use FailureKind::{Invalid, Server, TooLarge, TooLong};
    let by_name = match named {
        Some(KindHint::Certain(kind)) => matches!(kind, Invalid | TooLarge | TooLong(_)),
        Some(KindHint::Likely(_)) | None => true,
    };
    let by_status = status.and_then(by_status);
    by_name && by_status.is_none_or(|kind| matches!(kind, Invalid | TooLarge | Server))
}

/// Phrases of servers that report unsupported media as their own failure (llama.cpp, vLLM), which a retry would repeat.
const UNSUPPORTED_MEDIA: [&str; 5] = [
    "image input is not supported",
    "audio input is not supported",
    "video input is not supported",
    "is not a multimodal model",
    "does not support image",
];

fn may_be_rejection(status: Option<u16>, named: Option<KindHint>) -> bool {
    let is_server = |kind| matches!(kind, FailureKind::Server);
    match named {
        Some(KindHint::Certain(kind) | KindHint::Likely(kind)) => is_server(kind),
        None => status.and_then(by_status).is_some_and(is_server),
    }
}

fn is_unsupported_media(error: &ErrorBody<'_>) -> bool {
    let message = error.message.as_deref().or(error.plain).unwrap_or_default().to_ascii_lowercase();
    UNSUPPORTED_MEDIA.iter().any(|phrase| message.contains(phrase))
}

fn by_code(error: &ErrorBody<'_>) -> Option<KindHint> {
    use FailureKind::{
        Authentication, Billing, NotFound, Overloaded, Permission, RateLimited, Server, TooLarge, TooLong,
    };
    let kind = match error.code.as_deref()? {
        "context_length_exceeded" | "exceed_context_size_error" => TooLong(ContextOverflow::UNKNOWN),
        "enforced_spend_limit_reached"
        | "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active" => Billing,
        "ramp_limit_exceeded" | "rate_limit_exceeded" => RateLimited,
        "compaction_unavailable" | "server_is_overloaded" | "slow_down" => Overloaded,
        "request_body_too_large_after_decoding" => TooLarge,
        "organization_not_enrolled_in_beta" | "organization_on_hold" => Permission,
        "thread_not_found" | "model_not_found" => NotFound,
        "invalid_api_key" => Authentication,
        "server_error" => Server,
        _ => return None,
    };
    Some(KindHint::Certain(kind))
}

fn by_type(name: &str) -> Option<KindHint> {
    use FailureKind::{
        Authentication, Billing, Conflict, Invalid, NotFound, Overloaded, Permission, RateLimited, Server,
        Timeout, TooLarge, TooLong,
    };
    // AWS writes `ValidationException`, sometimes after a namespace and before a URL.
    let name = name.rsplit('#').next().unwrap_or(name);
    let kind = match name.split(':').next().unwrap_or(name) {
        "invalid_request_error" | "BadRequestError" | "INVALID_ARGUMENT" | "ValidationException" => {
            return Some(KindHint::Likely(Invalid));
        }
        "api_error" | "server_error" | "internal_server_error" | "InternalServerError" => {
            return Some(KindHint::Likely(Server));
        }
        "authentication_error" | "UNAUTHENTICATED" => Authentication,
        "billing_error" | "insufficient_quota" => Billing,
        "permission_error" | "PERMISSION_DENIED" | "AccessDeniedException" => Permission,
        "not_found_error" | "NotFoundError" | "NOT_FOUND" | "ResourceNotFoundException" => NotFound,
        "conflict_error" | "ConflictException" => Conflict,
        "request_too_large" => TooLarge,
        "exceed_context_size_error" => TooLong(ContextOverflow::UNKNOWN),
        "rate_limit_error" | "ThrottlingException" | "RESOURCE_EXHAUSTED" => RateLimited,
        "INTERNAL" | "InternalServerException" | "ModelStreamErrorException" => Server,
        "timeout_error" | "DEADLINE_EXCEEDED" | "ModelTimeoutException" => Timeout,
        "overloaded_error" | "unavailable_error" | "UNAVAILABLE" | "ServiceUnavailableException" => {
            Overloaded
        }
        _ => return None,
    };
    Some(KindHint::Certain(kind))
}

/// Maps an HTTP status; none if it is not an error.
fn by_status(status: u16) -> Option<FailureKind> {
    use FailureKind::{
        Authentication, Billing, Conflict, Invalid, NotFound, Overloaded, Permission, RateLimited, Server,
        Timeout, TooLarge,
    };
    Some(match status {
        401 => Authentication,
        402 => Billing,
        403 => Permission,
        404 => NotFound,
        // 522 to 524 are Cloudflare's: it could not reach the provider in time.
        408 | 504 | 522..=524 => Timeout,
        409 => Conflict,
        413 => TooLarge,
        429 => RateLimited,
        503 | 529 => Overloaded,
        // Redirects are not followed: the API key must not go to another host.
        300..=499 => Invalid,
        500.. => Server,
        _ => return None,
    })
}
