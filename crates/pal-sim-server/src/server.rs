//! Connections: read a request, ask the simulator, play its answer.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pal_sim::{Ending, Exchange, HttpRequest, LedgerTotals, Reply, Simulator};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clock::{Clock, Speed};
use crate::doors;
use crate::play::Playing;
use crate::record::Record;

/// Connections beyond this wait.
const CONNECTIONS_MAX: usize = 256;
/// A connection on which no request comes for this long is closed, so that idle ones do not hold the slots.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// A body may be a little larger than the provider allows, so that the simulator itself refuses it.
const BODY_BYTES_MAX: usize = 34 << 20;

/// How a simulator is served.
pub struct Options {
    /// How time passes.
    pub speed: Speed,
    /// The folder that keeps every exchange, if one shall.
    pub record: Option<PathBuf>,
    /// Is told of every exchange, and of what went wrong with the record.
    pub notice: Box<dyn Fn(Notice<'_>) + Send + Sync>,
}

/// Something that a person at the server's terminal may want to see.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// A model answered.
    Exchange(&'a Exchange),
    /// Something else was asked, or the request was refused.
    Other {
        /// What was asked for.
        path: &'a str,
        /// The answer.
        reply: &'a Reply,
    },
    /// An exchange could not be kept.
    NotRecorded(&'a io::Error),
}

/// Serves until `shutdown`; then every connection is closed. Returns what all requests took together.
pub async fn serve(
    listener: TcpListener,
    simulator: Simulator,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<LedgerTotals> {
    let record = options.record.as_deref().map(Record::open).transpose()?;
    let service = Arc::new(Service {
        simulator: Mutex::new(simulator),
        clock: Arc::new(Clock::new(options.speed)),
        record,
        numbers: AtomicU64::new(1),
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
                // The client left before it was served, or the machine is short of handles for a moment.
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
        // Ended tasks are collected, so that the set does not grow with every connection there ever was.
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, service: Arc<Service>) {
    // An event of a few bytes must not wait for the next one.
    let _ = stream.set_nodelay(true);
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .serve_connection(TokioIo::new(stream), service_fn(|request| answer(Arc::clone(&service), request)));
    // A client that hangs up, or an answer that breaks off on purpose, is no error of the server's.
    let _ = serving.await;
}

/// What all connections share.
pub(crate) struct Service {
    simulator: Mutex<Simulator>,
    pub(crate) clock: Arc<Clock>,
    record: Option<Record>,
    /// The number of the next request in the record.
    numbers: AtomicU64,
    notice: Box<dyn Fn(Notice<'_>) + Send + Sync>,
}

impl Service {
    pub(crate) fn simulator(&self) -> MutexGuard<'_, Simulator> {
        // The simulator is whole after a panic: every request is handled by one call.
        self.simulator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(service: Arc<Service>, request: Request<Incoming>) -> io::Result<Response<Playing>> {
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
    if let Some(reply) = doors::answer(&service, &request) {
        return respond(reply, &service, asked_at);
    }
    let reply = service.simulator().handle(asked_at, &request);
    if let Some(record) = &service.record
        && let Err(error) = record.keep(service.numbers.fetch_add(1, Ordering::Relaxed), &request, &reply)
    {
        (service.notice)(Notice::NotRecorded(&error));
    }
    (service.notice)(match &reply.exchange {
        Some(exchange) => Notice::Exchange(exchange),
        None => Notice::Other { path: &path, reply: &reply },
    });
    respond(reply, &service, asked_at)
}

/// The body, up to a little more than the simulator takes. The rest is read and dropped: a client that still writes does
/// not read why it is refused.
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

fn respond(reply: Reply, service: &Service, asked_at: pal_model::Timestamp) -> io::Result<Response<Playing>> {
    let is_stream = reply.is_stream();
    let status = StatusCode::from_u16(reply.status).map_err(io::Error::other)?;
    let mut response = Response::builder().status(status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let is_whole = reply.ending == Ending::Whole;
    let mut body = Playing::new(reply.chunks, reply.ending, Arc::clone(&service.clock), asked_at);
    if is_whole && !is_stream {
        body = body.with_length();
    }
    response.body(body).map_err(io::Error::other)
}
