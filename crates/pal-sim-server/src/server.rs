//! Connection handling: read a request, call the simulator, send its reply.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pal_sim::{HttpReply, HttpRequest, LedgerTotals, ReplyEnding, SimulatedProvider};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::exchange_recorder::ExchangeRecorder;
use crate::routes;
use crate::sim_clock::{ClockSpeed, SimClock};
use crate::sim_service::{ServerNotice, SimService};
use crate::timed_body::TimedBody;

/// Maximum number of concurrent connections; others wait.
const CONNECTIONS_MAX: usize = 256;
/// Idle timeout, so that idle connections do not hold slots.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Maximum body size in bytes, slightly above the provider's so that the simulator itself refuses it.
const BODY_BYTES_MAX: usize = 34 << 20;

/// Options of [`serve`].
pub struct SimServerOptions {
    /// Clock mode.
    pub speed: ClockSpeed,
    /// Directory for a record of every exchange.
    pub record: Option<PathBuf>,
    /// Says in every response that the server is a simulator; false to stand in for a provider, as in tests.
    pub announces: bool,
    /// Called for every exchange and for recording errors.
    pub notice: Box<dyn Fn(ServerNotice<'_>) + Send + Sync>,
}

/// Serves until `shutdown`, then closes every connection. Returns the totals of all requests.
pub async fn serve(
    listener: TcpListener,
    simulator: SimulatedProvider,
    options: SimServerOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<LedgerTotals> {
    let record = options.record.as_deref().map(ExchangeRecorder::open).transpose()?;
    let service = Arc::new(SimService {
        simulator: Mutex::new(simulator),
        clock: Arc::new(SimClock::new(options.speed)),
        record,
        numbers: AtomicU64::new(1),
        announces: options.announces,
        notice: options.notice,
    });
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot.map_err(io::Error::other)?,
            () = &mut shutdown => return Ok(service.simulator().ledger().totals()),
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // The client disconnected before it was served, or the system is briefly out of file handles.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            () = &mut shutdown => return Ok(service.simulator().ledger().totals()),
        };
        let service = Arc::clone(&service);
        connections.spawn(async move {
            connection(stream, service).await;
            drop(slot);
        });
        // Collects ended tasks, so that the set does not grow with every connection.
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, service: Arc<SimService>) {
    // A small event must not wait for the next one.
    let _ = stream.set_nodelay(true);
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .serve_connection(TokioIo::new(stream), service_fn(|request| answer(Arc::clone(&service), request)));
    // A client disconnect or a deliberately broken reply is not a server error.
    let _ = serving.await;
}

async fn answer(service: Arc<SimService>, request: Request<Incoming>) -> io::Result<Response<TimedBody>> {
    let asked_at = service.clock.now();
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let body = read_body(body).await?;
    let request = HttpRequest { method: head.method.as_str(), path: &path, headers: &headers, body: &body };
    if let Some(reply) = routes::route_reply(&service, &request) {
        return respond(reply, &service, asked_at);
    }
    let reply = service.simulator().handle(asked_at, &request);
    if let Some(record) = &service.record
        && let Err(error) = record.record(service.numbers.fetch_add(1, Ordering::Relaxed), &request, &reply)
    {
        (service.notice)(ServerNotice::NotRecorded(&error));
    }
    (service.notice)(match &reply.exchange {
        Some(exchange) => ServerNotice::Exchange(exchange),
        None => ServerNotice::Other { path: &path, reply: &reply },
    });
    respond(reply, &service, asked_at)
}

/// Reads the body up to the limit and discards the rest: a client that is still writing does not read the
/// error.
async fn read_body(mut body: Incoming) -> io::Result<Bytes> {
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
            let room = BODY_BYTES_MAX - kept.len();
            kept.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    Ok(Bytes::from(kept))
}

fn respond(
    reply: HttpReply,
    service: &SimService,
    asked_at: pal_model::Timestamp,
) -> io::Result<Response<TimedBody>> {
    let is_stream = reply.is_stream();
    let status = StatusCode::from_u16(reply.status).map_err(io::Error::other)?;
    let mut response = Response::builder().status(status);
    if service.announces {
        // A client must be able to tell simulated money from real money.
        response = response.header("x-palimpsest-simulator", "1");
    }
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let is_whole = reply.ending == ReplyEnding::Whole;
    let mut body = TimedBody::new(reply.chunks, reply.ending, Arc::clone(&service.clock), asked_at);
    if is_whole && !is_stream {
        body = body.with_length();
    }
    response.body(body).map_err(io::Error::other)
}
