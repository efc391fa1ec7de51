//! Faults that answer instead of the simulator: statuses in the provider's shape, and connections that never answer.

use std::time::Duration;

use bytes::Bytes;
use pal_wire::{ApiError, Dialect, ErrorKind};
use serde_json::json;

use super::spec::{Kind, Wait};
use crate::{Chunk, Ending, Reply};

/// The reply of a fault that answers by itself.
pub(crate) fn reply(kind: &Kind, number: u64, dialect: Dialect) -> Option<Reply> {
    match kind {
        Kind::Status { status, wait, should_retry } => {
            let mut reply = match status {
                502 | 503 => page(*status),
                _ => error(&by_status(*status), number, dialect),
            };
            hints(&mut reply, *wait, *should_retry);
            Some(reply)
        }
        Kind::SpendLimit => {
            let limit = ApiError::new(ErrorKind::RateLimit, "This workspace has reached its spend limit.");
            Some(error(&limit.with_code("enforced_spend_limit_reached"), number, dialect))
        }
        Kind::TooLong { have, limit } => Some(too_long(*have, *limit, number, dialect)),
        Kind::Reset => Some(Reply {
            status: 0,
            headers: Vec::new(),
            chunks: Vec::new(),
            ending: Ending::Cut,
            exchange: None,
        }),
        _ => None,
    }
}

/// An error in the shape of a dialect.
pub(crate) fn error(error: &ApiError, number: u64, dialect: Dialect) -> Reply {
    let request_id = format!("req_sim_fault_{number:06}");
    let (id, body) = match dialect {
        Dialect::Messages => ("request-id", error.to_json(&request_id)),
        Dialect::Responses | Dialect::Chat => ("x-request-id", openai_error(error)),
    };
    with_body(error.status, "application/json", body, vec![(id, request_id)])
}

fn openai_error(error: &ApiError) -> String {
    let code = error.error_code.or(match error.kind {
        ErrorKind::Authentication => Some("invalid_api_key"),
        ErrorKind::NotFound => Some("model_not_found"),
        ErrorKind::RateLimit => Some("rate_limit_exceeded"),
        _ => None,
    });
    let kind = match error.kind {
        ErrorKind::Api | ErrorKind::Timeout | ErrorKind::Overloaded => "server_error",
        kind => kind.as_str(),
    };
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": code}}).to_string()
}

fn too_long(have: u64, limit: u64, number: u64, dialect: Dialect) -> Reply {
    match dialect {
        Dialect::Messages => {
            let message = format!("prompt is too long: {have} tokens > {limit} maximum");
            error(&ApiError::new(ErrorKind::InvalidRequest, message), number, dialect)
        }
        Dialect::Responses => {
            let message = "Your input exceeds the context window of this model. Shorten it and try again.";
            let too_long = ApiError::new(ErrorKind::InvalidRequest, message);
            error(&too_long.with_code("context_length_exceeded"), number, dialect)
        }
        Dialect::Chat => {
            let message = format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {have} tokens."
            );
            let too_long = ApiError::new(ErrorKind::InvalidRequest, message);
            error(&too_long.with_code("context_length_exceeded"), number, dialect)
        }
    }
}

fn by_status(status: u16) -> ApiError {
    let (kind, message) = match status {
        401 => (ErrorKind::Authentication, "invalid x-api-key"),
        402 => (ErrorKind::Billing, "The account cannot pay for this request."),
        403 => (ErrorKind::Permission, "This key may not use the model."),
        404 => (ErrorKind::NotFound, "There is nothing under this name."),
        409 => (ErrorKind::Conflict, "The resource is being changed by another request."),
        413 => (ErrorKind::RequestTooLarge, "Request exceeds the maximum size"),
        429 => (ErrorKind::RateLimit, "Too many requests in a short time."),
        504 => (ErrorKind::Timeout, "The request took too long."),
        529 => (ErrorKind::Overloaded, "Overloaded"),
        500.. => (ErrorKind::Api, "Internal server error"),
        _ => (ErrorKind::InvalidRequest, "The request was refused by a fault of the simulator."),
    };
    ApiError { status, ..ApiError::new(kind, message) }
}

/// What a proxy in between answers: a page, not an error of the provider.
fn page(status: u16) -> Reply {
    let title = if status == 502 { "502 Bad Gateway" } else { "503 Service Temporarily Unavailable" };
    let body = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"
    );
    with_body(status, "text/html", body, Vec::new())
}

fn with_body(status: u16, kind: &str, body: String, more: Vec<(&'static str, String)>) -> Reply {
    let mut headers = vec![("content-type", kind.to_owned())];
    headers.extend(more);
    let chunks = vec![Chunk { at: Duration::ZERO, bytes: Bytes::from(body) }];
    Reply { status, headers, chunks, ending: Ending::Whole, exchange: None }
}

/// How long to wait and whether to come back at all. Limits and overload name a second unless told otherwise.
fn hints(reply: &mut Reply, wait: Wait, should_retry: Option<bool>) {
    let wait = match wait {
        Wait::For(wait) => Some(wait),
        Wait::Usual if matches!(reply.status, 429 | 529) => Some(Duration::from_secs(1)),
        Wait::Usual | Wait::Unsaid => None,
    };
    if let Some(wait) = wait {
        if wait.subsec_nanos() > 0 {
            reply.headers.push(("retry-after-ms", wait.as_millis().to_string()));
        }
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        reply.headers.push(("retry-after", seconds.to_string()));
    }
    if let Some(should_retry) = should_retry {
        reply.headers.push(("x-should-retry", should_retry.to_string()));
    }
}
