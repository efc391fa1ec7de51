//! Faults that replace the reply: error statuses in the provider's format, and dropped connections.

use std::time::Duration;

use bytes::Bytes;
use pal_wire::{ApiError, ApiErrorKind, Dialect};
use serde_json::json;

use super::fault_grammar::{FaultKind, RetryHint};
use crate::{HttpReply, ReplyChunk, ReplyEnding};

/// Reply of a fault that replaces the answer; `None` for all other faults.
pub(crate) fn replacement_reply(kind: &FaultKind, number: u64, dialect: Dialect) -> Option<HttpReply> {
    match kind {
        FaultKind::Status { status, wait, should_retry } => {
            let mut reply = match status {
                502 | 503 => page(*status),
                _ => error(&by_status(*status), number, dialect),
            };
            add_retry_headers(&mut reply, *wait, *should_retry);
            Some(reply)
        }
        FaultKind::SpendLimit => {
            let limit = ApiError::new(ApiErrorKind::RateLimit, "This workspace has reached its spend limit.");
            Some(error(&limit.with_code("enforced_spend_limit_reached"), number, dialect))
        }
        FaultKind::TooLong { have, limit, started } => {
            let refusal = too_long(*have, *limit, dialect);
            Some(if *started { started_refusal(&refusal, dialect) } else { error(&refusal, number, dialect) })
        }
        FaultKind::Reset => Some(HttpReply {
            status: 0,
            headers: Vec::new(),
            chunks: Vec::new(),
            ending: ReplyEnding::Cut,
            exchange: None,
        }),
        _ => None,
    }
}

/// Error reply in the dialect's format.
pub(crate) fn error(error: &ApiError, number: u64, dialect: Dialect) -> HttpReply {
    let request_id = format!("req_sim_fault_{number:06}");
    let (id, body) = match dialect {
        Dialect::Messages => ("request-id", error.to_json(&request_id)),
        Dialect::Responses | Dialect::Chat => ("x-request-id", openai_error(error)),
    };
    with_body(error.status, "application/json", body, vec![(id, request_id)])
}

fn openai_error(error: &ApiError) -> String {
    let code = error.error_code.or(match error.kind {
        ApiErrorKind::Authentication => Some("invalid_api_key"),
        ApiErrorKind::NotFound => Some("model_not_found"),
        ApiErrorKind::RateLimit => Some("rate_limit_exceeded"),
        _ => None,
    });
    let kind = match error.kind {
        ApiErrorKind::Api | ApiErrorKind::Timeout | ApiErrorKind::Overloaded => "server_error",
        kind => kind.as_str(),
    };
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": code}}).to_string()
}

fn too_long(have: u64, limit: u64, dialect: Dialect) -> ApiError {
    match dialect {
        Dialect::Messages => {
            let message = format!("prompt is too long: {have} tokens > {limit} maximum");
            ApiError::new(ApiErrorKind::InvalidRequest, message)
        }
        Dialect::Responses => {
            let message = "Your input exceeds the context window of this model. Shorten it and try again.";
            ApiError::new(ApiErrorKind::InvalidRequest, message).with_code("context_length_exceeded")
        }
        Dialect::Chat => {
            let message = format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {have} tokens."
            );
            ApiError::new(ApiErrorKind::InvalidRequest, message).with_code("context_length_exceeded")
        }
    }
}

/// A stream that starts an answer and then refuses the request, as servers do that send the status before they count.
fn started_refusal(refusal: &ApiError, dialect: Dialect) -> HttpReply {
    let (message, code) = (&refusal.message, refusal.error_code);
    let kind = refusal.kind.as_str();
    let named = |event: &str, data: serde_json::Value| format!("event: {event}\ndata: {data}\n\n");
    let response = |status: &str, error: serde_json::Value| {
        json!({"id": "resp_sim_refused", "object": "response", "model": "simulated", "status": status,
            "output": [], "usage": null, "error": error})
    };
    let body = match dialect {
        Dialect::Messages => {
            let usage = json!({"input_tokens": 0, "output_tokens": 0});
            let start = json!({"type": "message_start", "message": {"id": "msg_sim_refused", "type": "message",
                "role": "assistant", "model": "simulated", "content": [], "stop_reason": null,
                "stop_sequence": null, "usage": usage}});
            let error = json!({"type": "error", "error": {"type": kind, "message": message}});
            named("message_start", start) + &named("error", error)
        }
        Dialect::Responses => {
            let created = response("in_progress", serde_json::Value::Null);
            let failed = response("failed", json!({"code": code, "message": message}));
            let created = json!({"type": "response.created", "sequence_number": 0, "response": created});
            let failed = json!({"type": "response.failed", "sequence_number": 1, "response": failed});
            named("response.created", created) + &named("response.failed", failed)
        }
        Dialect::Chat => {
            let delta =
                json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]);
            let chunk = json!({"id": "chatcmpl-sim-refused", "object": "chat.completion.chunk", "created": 0,
                "model": "simulated", "choices": delta});
            let error =
                json!({"error": {"message": message, "type": kind, "param": "messages", "code": code}});
            format!("data: {chunk}\n\ndata: {error}\n\n")
        }
    };
    with_body(200, "text/event-stream", body, Vec::new())
}

fn by_status(status: u16) -> ApiError {
    let (kind, message) = match status {
        401 => (ApiErrorKind::Authentication, "invalid x-api-key"),
        402 => (ApiErrorKind::Billing, "The account cannot pay for this request."),
        403 => (ApiErrorKind::Permission, "This key may not use the model."),
        404 => (ApiErrorKind::NotFound, "There is nothing under this name."),
        409 => (ApiErrorKind::Conflict, "The resource is being changed by another request."),
        413 => (ApiErrorKind::RequestTooLarge, "Request exceeds the maximum size"),
        429 => (ApiErrorKind::RateLimit, "Too many requests in a short time."),
        504 => (ApiErrorKind::Timeout, "The request took too long."),
        529 => (ApiErrorKind::Overloaded, "Overloaded"),
        500.. => (ApiErrorKind::Api, "Internal server error"),
        _ => (ApiErrorKind::InvalidRequest, "The request was refused by a fault of the simulator."),
    };
    ApiError { status, ..ApiError::new(kind, message) }
}

/// HTML error page of an intermediate proxy.
fn page(status: u16) -> HttpReply {
    let title = if status == 502 { "502 Bad Gateway" } else { "503 Service Temporarily Unavailable" };
    let body = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"
    );
    with_body(status, "text/html", body, Vec::new())
}

fn with_body(status: u16, kind: &str, body: String, more: Vec<(&'static str, String)>) -> HttpReply {
    let mut headers = vec![("content-type", kind.to_owned())];
    headers.extend(more);
    let chunks = vec![ReplyChunk { at: Duration::ZERO, bytes: Bytes::from(body) }];
    HttpReply { status, headers, chunks, ending: ReplyEnding::Whole, exchange: None }
}

/// Adds retry headers. Rate limits and overload name one second by default.
fn add_retry_headers(reply: &mut HttpReply, wait: RetryHint, should_retry: Option<bool>) {
    let wait = match wait {
        RetryHint::For(wait) => Some(wait),
        RetryHint::StatusDefault if matches!(reply.status, 429 | 529) => Some(Duration::from_secs(1)),
        RetryHint::StatusDefault | RetryHint::Omitted => None,
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
