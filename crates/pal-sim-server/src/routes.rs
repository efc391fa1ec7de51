//! The server's own routes under `/sim`: clock and ledger.

use std::time::Duration;

use bytes::Bytes;
use pal_sim::{HttpReply, HttpRequest, ModelExchange, ReplyChunk, ReplyEnding};
use serde_json::{Value, json};

use crate::sim_clock::ClockSpeed;
use crate::sim_service::SimService;

/// Reply if the request is for one of these routes.
pub(crate) fn route_reply(service: &SimService, request: &HttpRequest<'_>) -> Option<HttpReply> {
    let (status, body) = match (request.method, request.route()) {
        ("GET", "/sim/clock") => (200, clock(service)),
        ("POST", "/sim/clock") => advance(service, request.body),
        ("GET", "/sim/ledger") => (200, ledger(service)),
        _ => return None,
    };
    Some(HttpReply {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        chunks: vec![ReplyChunk { at: Duration::ZERO, bytes: Bytes::from(format!("{body}\n")) }],
        ending: ReplyEnding::Whole,
        exchange: None,
    })
}

fn ledger(service: &SimService) -> Value {
    let simulator = service.simulator();
    let exchanges: Vec<&ModelExchange> = simulator.ledger().exchanges().collect();
    json!({"exchanges": exchanges, "totals": simulator.ledger().totals()})
}

fn clock(service: &SimService) -> Value {
    let speed = match service.clock.speed() {
        ClockSpeed::Real => "real",
        ClockSpeed::Virtual => "virtual",
    };
    json!({"now": service.clock.now().to_string(), "speed": speed})
}

fn advance(service: &SimService, body: &[u8]) -> (u16, Value) {
    let wanted: Option<Value> = serde_json::from_slice(body).ok();
    let seconds = wanted.as_ref().and_then(|wanted| wanted.get("advance_seconds")).and_then(Value::as_f64);
    let Some(by) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
        return (400, json!({"error": "send {\"advance_seconds\": N} with N of 0 or more"}));
    };
    match service.clock.advance(by) {
        Some(_) => (200, clock(service)),
        None => (409, json!({"error": "this clock is real: start the simulator with --speed virtual"})),
    }
}
