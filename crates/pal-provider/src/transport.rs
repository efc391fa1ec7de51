//! One attempt: a request goes out, the head of an answer comes in, or a failure that says why not.
//!
//! It owns the HTTP client with its connections and the reading of refusals. It neither retries nor follows
//! redirects, since a redirect would carry key and conversation to a place nobody chose, and it logs nothing.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pal_model::Parts;
use pal_wire::{Failure, FailureKind, RateLimit, classify};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request, Response, StatusCode, redirect};
use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::policy::Timeouts;
use crate::rope::{Rope, SendProgress, SendState};
use crate::secret::Mask;

/// Most bytes that are read of a refusal; what it says stands at its beginning.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Longest time that a refusal may take to spell itself out. Its status is known by then.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// How long the end of a body may keep back the end of its answer.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// How often it is looked how far a request has gone out.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How the driver names itself.
const USER_AGENT: &str = concat!("palimpsest/", env!("CARGO_PKG_VERSION"));

/// The HTTP client could not be set up, for instance because this machine has no certificates.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client could not be set up: {reason}")]
pub struct ClientError {
    /// Why.
    reason: String,
}

/// What goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    /// The path below the base address.
    pub(crate) path: &'a str,
    /// Headers besides those of every request.
    pub(crate) headers: &'a [(&'static str, String)],
    /// The body of a `POST`; a `GET` has none.
    pub(crate) body: Option<&'a Parts>,
    /// Whether the answer shall come as a stream.
    pub(crate) stream: bool,
}

/// The way to one endpoint.
#[derive(Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    endpoint: Endpoint,
    timeouts: Timeouts,
    mask: Mask,
    /// What the last answer that spoke of limits said.
    rate_limit: Mutex<Option<RateLimit>>,
}

impl Transport {
    /// Sets up the HTTP client. Connects to nothing yet.
    pub(crate) fn new(endpoint: Endpoint, timeouts: Timeouts) -> Result<Transport, ClientError> {
        // An error says that some other part of the program has chosen a provider before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(timeouts.connect)
            // A connection that died without a word would otherwise swallow the next attempt, too.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(10));
        if endpoint.is_loopback() {
            // What stays on this machine must not be shown to a proxy.
            builder = builder.no_proxy();
            if !endpoint.address().starts_with("https") {
                // No certificate will be looked at, so a machine without any will do.
                builder = builder.tls_certs_only([]);
            }
        }
        if let Some(name) = endpoint.local_name() {
            // The name means this machine, whatever a name server says.
            let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
            builder = builder.resolve_to_addrs(name, &addresses.map(|address| SocketAddr::new(address, 0)));
        }
        let http = builder.build().map_err(|error| ClientError { reason: causes(&error.without_url()) })?;
        Ok(Transport { http, mask: endpoint.mask(), endpoint, timeouts, rate_limit: Mutex::default() })
    }

    /// Where requests go.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What hides the key.
    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// How much of the provider's limits is left, as the last answer that spoke of them said.
    pub(crate) fn rate_limit(&self) -> Option<RateLimit> {
        self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request and waits for the head of a good answer. Anything else is a failure.
    pub(crate) async fn open(&self, outgoing: Outgoing<'_>) -> Result<Incoming, Failure> {
        let opened = self.open_unmasked(outgoing).await;
        opened.map_err(|failure| self.mask.failure(failure))
    }

    async fn open_unmasked(&self, outgoing: Outgoing<'_>) -> Result<Incoming, Failure> {
        let begun = Instant::now();
        let progress = Arc::new(SendProgress::default());
        let Some(request) = self.request(outgoing, &progress) else {
            return Err(Failure::new(FailureKind::Invalid, "a header of the call cannot be sent over HTTP"));
        };
        let head = HeadLimits { has_body: outgoing.body.is_some(), stream: outgoing.stream, begun };
        let response = self.head(request, &progress, head).await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(limit) = RateLimit::read(header) {
            *self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
        }
        let timeouts = self.timeouts;
        let until = begun + timeouts.answer;
        let request_id = request_id(response.headers());
        let incoming =
            Incoming { request_id, response, timeouts, until, content: Instant::now(), has_content: false };
        match incoming.response.status() {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => Err(incoming
                .failure(FailureKind::Malformed, "the provider answered without any content".to_owned())),
            status if status.is_success() => Ok(incoming),
            _ => Err(self.refusal(incoming).await),
        }
    }

    /// Sends a request and waits for the head of its answer, each phase within its own limit.
    async fn head(
        &self,
        request: Request,
        progress: &SendProgress,
        head: HeadLimits,
    ) -> Result<Response, Failure> {
        let mut executing = std::pin::pin!(self.http.execute(request));
        loop {
            let sent = progress.state();
            let (until, waiting) = self.next_limit(sent, head);
            // As long as something goes out, each piece of it begins another wait.
            let look = if sent.is_done { until } else { until.min(Instant::now() + LOOK_EVERY) };
            match timeout_at(look, &mut executing).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => {
                    let causes = causes(&error.without_url());
                    let message = format!("no answer from {}: {causes}", self.endpoint.address());
                    return Err(Failure::new(FailureKind::Connection, message));
                }
                Err(_) if self.next_limit(progress.state(), head).0 > Instant::now() => {}
                Err(_) => return Err(Failure::new(FailureKind::Silent, waiting)),
            }
        }
    }

    /// The moment at which the phase that an attempt is in is over, and what is said then.
    fn next_limit(&self, sent: SendState, head: HeadLimits) -> (Instant, String) {
        let Timeouts { connect, send, first_byte, first_event, .. } = self.timeouts;
        let address = self.endpoint.address();
        if head.has_body && !sent.is_done {
            let (since, limit) = match sent.last {
                Some(last) => (last, send),
                // Until a connection stands, nothing goes out.
                None => (head.begun, connect + send),
            };
            let seconds = limit.as_secs_f64();
            return (since + limit, format!("{address} took nothing of the request for {seconds} s"));
        }
        // What is not streamed has no head before the model is done.
        let limit = if head.stream { first_byte } else { first_byte.max(first_event) };
        let since = sent.last.unwrap_or(head.begun);
        (since + limit, format!("no answer from {address} within {} s", limit.as_secs_f64()))
    }

    /// The request with everything that every request has; nothing if a header cannot be sent.
    fn request(&self, outgoing: Outgoing<'_>, progress: &Arc<SendProgress>) -> Option<Request> {
        let method = if outgoing.body.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::new(method, self.endpoint.url(outgoing.path));
        let headers = request.headers_mut();
        let accept = if outgoing.stream { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        for (name, value) in outgoing.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = HeaderValue::from_str(value).ok()?;
            headers.append(name, value);
        }
        if let Some((name, value)) = self.endpoint.authorization() {
            headers.insert(name, value);
        }
        if let Some(parts) = outgoing.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(Body::wrap(Rope::new(parts.clone()).watched_by(Arc::clone(progress))));
        }
        Some(request)
    }

    /// What a refusal says: as much of it as comes in time, and as is worth reading.
    async fn refusal(&self, mut incoming: Incoming) -> Failure {
        let until = Instant::now() + REFUSAL_TIME.min(self.timeouts.idle);
        let mut body = Vec::new();
        while let Ok(Ok(Some(bytes))) = timeout_at(until, incoming.response.chunk()).await {
            let room = REFUSAL_BYTES - body.len();
            body.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            if body.len() == REFUSAL_BYTES {
                break;
            }
        }
        // Hidden before it is read, since a message may be cut in the middle of a key.
        let body = self.mask.bytes(body);
        let status = incoming.response.status();
        let headers = incoming.response.headers();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let mut failure = classify(status.as_u16(), header, &body);
        if status.is_redirection() {
            failure.message =
                format!("the provider redirects ({status}), which is not followed; check the base address");
        }
        failure
    }
}

/// What the limits on the way to the head of an answer depend on.
#[derive(Clone, Copy, Debug)]
struct HeadLimits {
    has_body: bool,
    stream: bool,
    begun: Instant,
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub(crate) struct Incoming {
    response: Response,
    request_id: Option<String>,
    timeouts: Timeouts,
    /// When all of the answer has to be there.
    until: Instant,
    /// When the last content came; before the first, when the head came.
    content: Instant,
    has_content: bool,
}

impl Incoming {
    /// The next bytes, or nothing at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<bytes::Bytes>, Failure> {
        let Timeouts { idle, first_event, content_gap, answer, .. } = self.timeouts;
        let gap = if self.has_content { content_gap } else { first_event };
        // A server that never pauses must not keep a limit from being noticed.
        let until = (Instant::now() + idle).min(self.content + gap).min(self.until);
        let read = match until > Instant::now() {
            true => timeout_at(until, self.response.chunk()).await.ok(),
            false => None,
        };
        match read {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(self.broken(error)),
            None if until == self.until => {
                let message = format!("the answer was not whole after {} s", answer.as_secs_f64());
                Err(self.failure(FailureKind::Deadline, message))
            }
            None if until == self.content + gap => {
                let message =
                    format!("nothing but signs of life came from the provider for {} s", gap.as_secs_f64());
                Err(self.failure(FailureKind::Silent, message))
            }
            None => {
                let message = format!("the provider fell silent for {} s", idle.as_secs_f64());
                Err(self.failure(FailureKind::Silent, message))
            }
        }
    }

    /// Notes that something of the answer itself has come.
    pub(crate) fn note_content(&mut self) {
        self.content = Instant::now();
        self.has_content = true;
    }

    /// Reads to the end of a body that has said everything, if that comes at once: only then can its connection carry
    /// the next request, which saves that one a handshake.
    pub(crate) async fn drain(&mut self) {
        let until = Instant::now() + DRAIN_TIME;
        while let Ok(Ok(Some(_))) = timeout_at(until, self.response.chunk()).await {}
    }

    /// Whether the head says that a stream of events follows.
    pub(crate) fn is_stream(&self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    /// What the head says the body is; empty where it does not.
    pub(crate) fn content_type(&self) -> &str {
        let value = self.response.headers().get(CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// A failure of this answer.
    pub(crate) fn failure(&self, kind: FailureKind, message: String) -> Failure {
        let mut failure = Failure::new(kind, message);
        self.label(&mut failure);
        failure
    }

    /// Adds the provider's id of the request to a failure that has none.
    pub(crate) fn label(&self, failure: &mut Failure) {
        if failure.request_id.is_none() {
            failure.request_id.clone_from(&self.request_id);
        }
    }

    /// Why a body could not be read on.
    fn broken(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        // What the connection says is wrapped by the HTTP library; what the decompressor says is not.
        let nearest = chain(&error).next().and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_garbled = nearest.is_some_and(|cause| cause.kind() != ErrorKind::UnexpectedEof);
        let (kind, what) = match is_garbled {
            true => (FailureKind::Malformed, "the answer is garbled"),
            false => (FailureKind::Cut, "the connection broke before the answer was whole"),
        };
        self.failure(kind, format!("{what}: {}", causes(&error)))
    }
}

/// The provider's id of a request.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("request-id").or_else(|| headers.get("x-request-id"))?;
    value.to_str().ok().map(str::to_owned)
}

/// What an error says was behind it, without the library's own words, and without addresses, which may hold secrets.
fn causes(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in chain(error) {
        let cause = cause.to_string();
        if !cause.contains("://") && !told.iter().any(|earlier| earlier.contains(&cause)) {
            told.push(cause);
        }
    }
    if told.is_empty() { "the HTTP client says no more".to_owned() } else { told.join(": ") }
}

/// What is behind an error, from near to far.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}
