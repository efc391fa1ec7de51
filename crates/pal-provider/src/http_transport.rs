//! One attempt: sends a request and returns the reply's head, or a failure.
//!
//! It owns the HTTP client with its connections and reads error replies. It neither retries nor follows
//! redirects, which would send key and conversation to an unknown host, and it logs nothing.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use pal_model::ChunkedText;
use pal_wire::{FailureKind, ProviderFailure, RateLimit, classify_failure};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout_at};

use crate::api_key::KeyMask;
use crate::client_policy::AttemptTimeouts;
use crate::cloud::{CloudPlatform, EventFrameDecoder, GoogleCredentials};
use crate::endpoint::{ProviderEndpoint, SIMULATOR_HEADER};
use crate::parts_body::{PartsBody, SendProgress, SendState};

/// Maximum bytes read of an error reply.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Maximum time to read the body of an error reply, whose status is already known.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// Maximum time to wait for the end of a body whose answer is complete.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Poll interval for the progress of sending.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Content type of binary event frames.
const EVENT_FRAMES: &str = "application/vnd.amazon.eventstream";

/// User agent of all requests.
const USER_AGENT: &str = concat!("palimpsest/", env!("CARGO_PKG_VERSION"));

/// The HTTP client could not be set up, for example because the system has no certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client: {reason}")]
pub struct ClientError {
    /// Cause.
    reason: String,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpRequestParts<'a> {
    /// Path below the base address.
    pub(crate) path: &'a str,
    /// Headers besides the common ones.
    pub(crate) headers: &'a [(&'static str, String)],
    /// Body of a `POST`; `None` sends a `GET`.
    pub(crate) body: Option<&'a ChunkedText>,
    /// True to request a stream.
    pub(crate) stream: bool,
}

/// HTTP client of one endpoint.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    http: reqwest::Client,
    endpoint: ProviderEndpoint,
    timeouts: AttemptTimeouts,
    mask: KeyMask,
    /// Last reported rate limit.
    rate_limit: Mutex<Option<RateLimit>>,
}

impl HttpTransport {
    /// Sets up the HTTP client. Does not connect yet.
    pub(crate) fn new(
        endpoint: ProviderEndpoint,
        timeouts: AttemptTimeouts,
    ) -> Result<HttpTransport, ClientError> {
        // An error means that another part of the program installed a provider before, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(timeouts.connect)
            // Detects dead connections, which would otherwise swallow the next attempt too.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(10));
        if endpoint.is_loopback() {
            // Local traffic must not go through a proxy.
            builder = builder.no_proxy();
            if !endpoint.address().starts_with("https") {
                // No certificate is checked, so a system without any works.
                builder = builder.tls_certs_only([]);
            }
        }
        if let Some(name) = endpoint.local_name() {
            // `localhost` names mean this machine, independent of DNS.
            let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
            builder = builder.resolve_to_addrs(name, &addresses.map(|address| SocketAddr::new(address, 0)));
        }
        let http =
            builder.build().map_err(|error| ClientError { reason: describe_causes(&error.without_url()) })?;
        Ok(HttpTransport { http, mask: endpoint.mask(), endpoint, timeouts, rate_limit: Mutex::default() })
    }

    pub(crate) fn endpoint(&self) -> &ProviderEndpoint {
        &self.endpoint
    }

    pub(crate) fn mask(&self) -> &KeyMask {
        &self.mask
    }

    /// Last reported rate limit.
    pub(crate) fn rate_limit(&self) -> Option<RateLimit> {
        self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request and waits for the head of a successful reply. Anything else is a failure.
    pub(crate) async fn open(
        &self,
        outgoing: HttpRequestParts<'_>,
    ) -> Result<IncomingAnswer, ProviderFailure> {
        let opened = self.open_unmasked(outgoing).await;
        opened.map_err(|failure| self.mask.failure(failure))
    }

    async fn open_unmasked(&self, outgoing: HttpRequestParts<'_>) -> Result<IncomingAnswer, ProviderFailure> {
        let begun = Instant::now();
        let progress = Arc::new(SendProgress::default());
        let request = match self.endpoint.platform() {
            Some(platform) => Some(self.platform_request(platform, outgoing, &progress).await?),
            None => self.request(outgoing, &progress),
        };
        let Some(request) = request else {
            return Err(ProviderFailure::new(
                FailureKind::Invalid,
                "a header of the call is not valid in HTTP",
            ));
        };
        let head = HeadLimits { has_body: outgoing.body.is_some(), stream: outgoing.stream, begun };
        let response = self.head(request, &progress, head).await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(limit) = RateLimit::from_headers(header) {
            *self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
        }
        if header(SIMULATOR_HEADER).is_some() {
            self.endpoint.note_simulator();
        }
        let timeouts = self.timeouts;
        let until = begun + timeouts.answer;
        let request_id = request_id(response.headers());
        let is_framed = content_type_of(response.headers()).starts_with(EVENT_FRAMES);
        let incoming = IncomingAnswer {
            frames: is_framed.then(EventFrameDecoder::default),
            request_id,
            response,
            timeouts,
            until,
            content: Instant::now(),
            has_content: false,
        };
        match incoming.response.status() {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => {
                Err(incoming.failure(FailureKind::Malformed, "the provider sent an empty answer".to_owned()))
            }
            status if status.is_success() => Ok(incoming),
            _ => Err(self.refusal(incoming).await),
        }
    }

    /// Sends a request and waits for the head of a successful reply. Anything else is a failure.
    async fn head(
        &self,
        request: Request,
        progress: &SendProgress,
        head: HeadLimits,
    ) -> Result<Response, ProviderFailure> {
        let mut executing = std::pin::pin!(self.http.execute(request));
        loop {
            let sent = progress.state();
            let (until, waiting) = self.next_limit(sent, head);
            // While the request is being sent, each accepted piece restarts the wait.
            let poll_until = if sent.is_done { until } else { until.min(Instant::now() + POLL_INTERVAL) };
            match timeout_at(poll_until, &mut executing).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => {
                    let causes = describe_causes(&error.without_url());
                    let message = format!("no answer from {}: {causes}", self.endpoint.address());
                    return Err(ProviderFailure::new(FailureKind::Connection, message));
                }
                Err(_) if self.next_limit(progress.state(), head).0 > Instant::now() => {}
                Err(_) => return Err(ProviderFailure::new(FailureKind::Silent, waiting)),
            }
        }
    }

    /// Deadline of the current phase, and the message if it passes.
    fn next_limit(&self, sent: SendState, head: HeadLimits) -> (Instant, String) {
        let AttemptTimeouts { connect, send, first_byte, first_event, .. } = self.timeouts;
        let address = self.endpoint.address();
        if head.has_body && !sent.is_done {
            let (since, limit) = match sent.last {
                Some(last) => (last, send),
                // Nothing is sent before the connection is established.
                None => (head.begun, connect + send),
            };
            let seconds = limit.as_secs_f64();
            return (since + limit, format!("{address} accepted no data for {seconds} s"));
        }
        // A reply that is not streamed has no head before the model is done.
        let limit = if head.stream { first_byte } else { first_byte.max(first_event) };
        let since = sent.last.unwrap_or(head.begun);
        (since + limit, format!("no answer from {address} within {} s", limit.as_secs_f64()))
    }

    /// Builds the request with the common headers; `None` if a header is invalid.
    fn request(&self, outgoing: HttpRequestParts<'_>, progress: &Arc<SendProgress>) -> Option<Request> {
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
            *request.body_mut() =
                Some(Body::wrap(PartsBody::new(parts.clone()).with_progress(Arc::clone(progress))));
        }
        Some(request)
    }

    /// Builds the request in the form of a cloud platform, signed or with an access token.
    async fn platform_request(
        &self,
        platform: &CloudPlatform,
        outgoing: HttpRequestParts<'_>,
        progress: &Arc<SendProgress>,
    ) -> Result<Request, ProviderFailure> {
        let refuse = |what: &str| ProviderFailure::new(FailureKind::Invalid, what.to_owned());
        let body = outgoing.body.ok_or_else(|| refuse("this platform does not offer it"))?;
        let betas = outgoing.headers.iter().find(|(name, _)| *name == "anthropic-beta");
        let betas: Vec<&str> =
            betas.map_or(Vec::new(), |(_, value)| value.split(',').map(str::trim).collect());
        let translated = platform
            .translate(outgoing.path, &body.to_joined_string(), &betas, outgoing.stream)
            .map_err(|refused| *refused)?;
        let url = self.endpoint.platform_url(&translated.path);
        let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut authorization = platform.signature(&url, &translated, &time);
        if let CloudPlatform::Vertex { credentials, .. } = platform {
            let token = self.access_token(credentials).await?;
            authorization.push(("authorization", format!("Bearer {}", token.expose_secret())));
        }
        let mut request = Request::new(Method::POST, url);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(translated.accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in authorization {
            let mut value =
                HeaderValue::from_str(&value).map_err(|_| refuse("the credentials are not valid in HTTP"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let parts = PartsBody::new(ChunkedText::from(translated.body)).with_progress(Arc::clone(progress));
        *request.body_mut() = Some(Body::wrap(parts));
        Ok(request)
    }

    /// Returns an access token, fetched if none is valid.
    async fn access_token(&self, credentials: &GoogleCredentials) -> Result<SecretString, ProviderFailure> {
        let now = SystemTime::now();
        if let Some(token) = credentials.current(now) {
            return Ok(token);
        }
        let failure = |what: String| {
            ProviderFailure::new(
                FailureKind::Authentication,
                format!("no access token for Google Cloud: {what}"),
            )
        };
        let asked = credentials.request(now).ok_or_else(|| failure(String::from("the key cannot sign")))?;
        let fetch = async {
            let reply = self
                .http
                .post(asked.address.as_str())
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(asked.form)
                .send()
                .await?;
            let status = reply.status();
            Ok::<_, reqwest::Error>((status, reply.text().await?))
        };
        let limit = Instant::now() + self.timeouts.connect + self.timeouts.send;
        let (status, reply) = match timeout_at(limit, fetch).await {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(error)) => {
                let message =
                    format!("no access token for Google Cloud: {}", describe_causes(&error.without_url()));
                return Err(ProviderFailure::new(FailureKind::Connection, message));
            }
            Err(_) => {
                return Err(ProviderFailure::new(
                    FailureKind::Silent,
                    "no access token for Google Cloud in time",
                ));
            }
        };
        credentials.take_reply(&reply, now).ok_or_else(|| failure(format!("status {status}")))
    }

    /// Reads an error reply, up to the limits on size and time.
    async fn refusal(&self, mut incoming: IncomingAnswer) -> ProviderFailure {
        let until = Instant::now() + REFUSAL_TIME.min(self.timeouts.idle);
        let mut body = Vec::new();
        while let Ok(Ok(Some(bytes))) = timeout_at(until, incoming.response.chunk()).await {
            let room = REFUSAL_BYTES - body.len();
            body.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            if body.len() == REFUSAL_BYTES {
                break;
            }
        }
        // Masked before parsing, since a message may be cut inside a key.
        let body = self.mask.bytes(body);
        let status = incoming.response.status();
        let headers = incoming.response.headers();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let mut failure = classify_failure(status.as_u16(), header, &body);
        if status.is_redirection() {
            failure.message = format!(
                "the provider redirects ({status}); redirects are not followed, so check the base address"
            );
        }
        failure
    }
}

fn content_type_of(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Inputs of the time limits before the reply's head.
#[derive(Clone, Copy, Debug)]
struct HeadLimits {
    has_body: bool,
    stream: bool,
    begun: Instant,
}

/// A reply whose head has arrived.
#[derive(Debug)]
pub(crate) struct IncomingAnswer {
    response: Response,
    /// Decoder of binary frames, if the answer comes in them.
    frames: Option<EventFrameDecoder>,
    request_id: Option<String>,
    timeouts: AttemptTimeouts,
    /// Deadline of the whole answer.
    until: Instant,
    /// Time of the last content; before the first, time of the head.
    content: Instant,
    has_content: bool,
}

impl IncomingAnswer {
    /// Next bytes; `None` at the end. Binary frames are decoded to server-sent events.
    pub(crate) async fn next(&mut self) -> Result<Option<bytes::Bytes>, ProviderFailure> {
        loop {
            let read = self.next_raw().await?;
            let (Some(bytes), Some(frames)) = (&read, &mut self.frames) else { return Ok(read) };
            match frames.push(bytes) {
                Ok(events) if events.is_empty() => {}
                Ok(events) => return Ok(Some(events.into())),
                Err(why) => return Err(self.failure(FailureKind::Malformed, why)),
            }
        }
    }

    async fn next_raw(&mut self) -> Result<Option<bytes::Bytes>, ProviderFailure> {
        let AttemptTimeouts { idle, first_event, content_gap, answer, .. } = self.timeouts;
        let gap = if self.has_content { content_gap } else { first_event };
        // A server that never pauses must not hide an expired limit.
        let until = (Instant::now() + idle).min(self.content + gap).min(self.until);
        let read = match until > Instant::now() {
            true => timeout_at(until, self.response.chunk()).await.ok(),
            false => None,
        };
        match read {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(self.read_failure(error)),
            None if until == self.until => {
                let message = format!("the answer was incomplete after {} s", answer.as_secs_f64());
                Err(self.failure(FailureKind::Deadline, message))
            }
            None if until == self.content + gap => {
                let message = format!("the provider sent only keep-alives for {} s", gap.as_secs_f64());
                Err(self.failure(FailureKind::Silent, message))
            }
            None => {
                let message = format!("the provider sent nothing for {} s", idle.as_secs_f64());
                Err(self.failure(FailureKind::Silent, message))
            }
        }
    }

    /// Notes that content has arrived.
    pub(crate) fn note_content(&mut self) {
        self.content = Instant::now();
        self.has_content = true;
    }

    /// Reads to the end of a complete body if it comes at once, so that the connection can be reused.
    pub(crate) async fn drain(&mut self) {
        let until = Instant::now() + DRAIN_TIME;
        while let Ok(Ok(Some(_))) = timeout_at(until, self.response.chunk()).await {}
    }

    /// True if the head announces an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.frames.is_some() || self.content_type().starts_with("text/event-stream")
    }

    /// Content type; empty if the head has none.
    pub(crate) fn content_type(&self) -> &str {
        content_type_of(self.response.headers())
    }

    /// Failure with this reply's request id.
    pub(crate) fn failure(&self, kind: FailureKind, message: String) -> ProviderFailure {
        let mut failure = ProviderFailure::new(kind, message);
        self.label(&mut failure);
        failure
    }

    /// Adds the request id to a failure without one.
    pub(crate) fn label(&self, failure: &mut ProviderFailure) {
        if failure.request_id.is_none() {
            failure.request_id.clone_from(&self.request_id);
        }
    }

    /// Failure of reading the body.
    fn read_failure(&self, error: reqwest::Error) -> ProviderFailure {
        let error = error.without_url();
        // Connection errors are wrapped by the HTTP library; decompression errors are not.
        let nearest = error_sources(&error).next().and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_garbled = nearest.is_some_and(|cause| cause.kind() != ErrorKind::UnexpectedEof);
        let (kind, what) = match is_garbled {
            true => (FailureKind::Malformed, "the answer is corrupt"),
            false => (FailureKind::Cut, "the connection broke before the answer was complete"),
        };
        self.failure(kind, format!("{what}: {}", describe_causes(&error)))
    }
}

/// Provider's request id.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("request-id").or_else(|| headers.get("x-request-id"))?;
    value.to_str().ok().map(str::to_owned)
}

/// Causes of an error, without the library's own message and without addresses, which may contain secrets.
fn describe_causes(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in error_sources(error) {
        let cause = cause.to_string();
        if !cause.contains("://") && !told.iter().any(|earlier| earlier.contains(&cause)) {
            told.push(cause);
        }
    }
    if told.is_empty() { "the HTTP client gives no details".to_owned() } else { told.join(": ") }
}

/// Sources of an error, nearest first.
fn error_sources(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}
