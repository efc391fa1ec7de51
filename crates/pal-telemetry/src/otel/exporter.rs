//! Export thread. Recording never waits for it: spans go through a bounded queue, metrics into a table.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Url};
use tokio::runtime::{Builder, Runtime};
use tracing::debug;
use uuid::Uuid;

use super::meter::MetricMeter;
use super::recorder::nanoseconds;
use super::target::{TelemetryTarget, TelemetryTargetError, is_here};
use super::wire::{
    Metrics, Resource, ResourceMetrics, ResourceSpans, Scope, ScopeMetrics, ScopeSpans, Span, Traces, text,
};

/// Maximum queued spans. Further ones are dropped.
const SPANS_MAX: usize = 2_048;

/// Export interval.
const EVERY: Duration = Duration::from_secs(5);

/// Timeout of the collector while a session runs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum delay of the program's exit.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

/// State shared by recorder and export thread.
#[derive(Debug, Default)]
struct ExportState {
    meter: Mutex<MetricMeter>,
    trouble: Mutex<CollectorTrouble>,
}

/// Problem with the collector, reported once.
#[derive(Debug, Default)]
enum CollectorTrouble {
    #[default]
    None,
    Untold(String),
    Told,
}

/// The recorder's side.
#[derive(Debug)]
pub(super) struct SpanExporter {
    shared: Arc<ExportState>,
    spans: SyncSender<Span>,
    done: Receiver<()>,
}

impl SpanExporter {
    pub(super) fn start(target: TelemetryTarget) -> Result<SpanExporter, TelemetryTargetError> {
        let shared = Arc::new(ExportState::default());
        let (spans, receiver) = sync_channel(SPANS_MAX);
        let (ended, done) = channel();
        let worker = ExportWorker {
            traces: target.url("traces")?,
            metrics: target.url("metrics")?,
            headers: target.header_map()?,
            resource: resource(&target),
            scope: Scope { name: String::from("palimpsest"), version: target.version },
            start: nanoseconds(SystemTime::now()),
            shared: Arc::clone(&shared),
            waiting: Vec::new(),
        };
        let run = move || {
            worker.run(&receiver);
            // The receiver may be gone.
            let _ = ended.send(());
        };
        thread::Builder::new()
            .name(String::from("telemetry"))
            .spawn(run)
            .map_err(|_| TelemetryTargetError::Thread)?;
        Ok(SpanExporter { shared, spans, done })
    }

    /// The figures.
    pub(super) fn meter(&self) -> MutexGuard<'_, MetricMeter> {
        self.shared.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a span on, if there is room for it.
    pub(super) fn send(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            debug!("a span was left out: too many wait for the collector");
        }
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            CollectorTrouble::Untold(_) => match std::mem::replace(&mut *trouble, CollectorTrouble::Told) {
                CollectorTrouble::Untold(what) => Some(what),
                CollectorTrouble::None | CollectorTrouble::Told => None,
            },
            CollectorTrouble::None | CollectorTrouble::Told => None,
        }
    }

    /// Sends the queued rest within a time limit.
    pub(super) fn finish(self) -> Option<String> {
        let SpanExporter { shared, spans, done } = self;
        // The end of the queue is what the thread ends by.
        drop(spans);
        match done.recv_timeout(PATIENCE_AT_END) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => shared.report_trouble("it did not answer in time"),
            Err(RecvTimeoutError::Disconnected) => shared.report_trouble("the export broke down"),
        }
        let (spans, _) = sync_channel(1);
        SpanExporter { shared, spans, done }.trouble()
    }
}

impl ExportState {
    fn report_trouble(&self, why: &str) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*trouble, CollectorTrouble::None) {
            *trouble = CollectorTrouble::Untold(format!(
                "figures do not reach the collector (telemetry.endpoint): {why}"
            ));
        }
    }
}

/// The side that sends.
struct ExportWorker {
    traces: Url,
    metrics: Url,
    headers: HeaderMap,
    resource: Resource,
    scope: Scope,
    /// When the program began to count.
    start: u64,
    shared: Arc<ExportState>,
    /// Spans that were not sent yet.
    waiting: Vec<Span>,
}

/// HTTP client, made on first use: making it takes time that the start would miss.
struct ExportConnection {
    runtime: Runtime,
    client: Client,
}

impl ExportWorker {
    fn run(mut self, spans: &Receiver<Span>) {
        let mut line = None;
        let mut next = Instant::now() + EVERY;
        loop {
            match spans.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(span) => {
                    // A collector that is away for long does not get everything when it is back.
                    if self.waiting.len() < SPANS_MAX {
                        self.waiting.push(span);
                    }
                    if Instant::now() < next {
                        continue;
                    }
                    self.export(&mut line, PATIENCE);
                }
                Err(RecvTimeoutError::Timeout) => self.export(&mut line, PATIENCE),
                Err(RecvTimeoutError::Disconnected) => {
                    self.export(&mut line, PATIENCE_AT_END);
                    return;
                }
            }
            next = Instant::now() + EVERY;
        }
    }

    /// Sends everything that is new; what does not arrive is kept for the next time.
    fn export(&mut self, line: &mut Option<ExportConnection>, patience: Duration) {
        let until = Instant::now() + patience;
        let changed = self.shared.meter.lock().unwrap_or_else(PoisonError::into_inner).take_changed();
        if !changed && self.waiting.is_empty() {
            return;
        }
        let exported = self.export_new(line, changed, until);
        if let Err(why) = exported {
            if changed {
                self.shared.meter.lock().unwrap_or_else(PoisonError::into_inner).put_back_changed();
            }
            debug!("the export failed");
            self.shared.report_trouble(&why);
        }
    }

    fn export_new(
        &mut self,
        line: &mut Option<ExportConnection>,
        changed: bool,
        until: Instant,
    ) -> Result<(), String> {
        let line = match line {
            Some(line) => line,
            None => line.insert(self.line()?),
        };
        if !self.waiting.is_empty() {
            let body = self.spans_body();
            line.post(&self.traces, &self.headers, body, until)?;
            self.waiting.clear();
        }
        if changed {
            line.post(&self.metrics, &self.headers, self.metrics_body(), until)?;
        }
        Ok(())
    }

    fn line(&self) -> Result<ExportConnection, String> {
        // An error says that some other part of the program has chosen a provider before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).referer(false);
        if is_here(&self.traces) {
            // A proxy must not see what stays on this machine.
            builder = builder.no_proxy();
        }
        if self.traces.scheme() == "http" {
            // No certificate will be looked at, so a machine without any will do.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|_| String::from("the HTTP client could not be set up"))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(ExportConnection { client, runtime: runtime.map_err(|error| error.to_string())? })
    }

    fn spans_body(&self) -> Vec<u8> {
        let scope_spans = vec![ScopeSpans { scope: Some(self.scope.clone()), spans: self.waiting.clone() }];
        let resource = Some(self.resource.clone());
        Traces { resource_spans: vec![ResourceSpans { resource, scope_spans }] }.encode_to_vec()
    }

    fn metrics_body(&self) -> Vec<u8> {
        let now = nanoseconds(SystemTime::now());
        let metrics =
            self.shared.meter.lock().unwrap_or_else(PoisonError::into_inner).metrics(self.start, now);
        let scope_metrics = vec![ScopeMetrics { scope: Some(self.scope.clone()), metrics }];
        let resource = Some(self.resource.clone());
        Metrics { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }.encode_to_vec()
    }
}

impl ExportConnection {
    fn post(&self, url: &Url, headers: &HeaderMap, body: Vec<u8>, until: Instant) -> Result<(), String> {
        let left = until.saturating_duration_since(Instant::now());
        let request = self
            .client
            .post(url.clone())
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .timeout(left)
            .body(body);
        // The clock of its limit belongs to the runtime, so it begins inside.
        let sent = self.runtime.block_on(async { request.send().await });
        match sent {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("it answers with {}", answer.status())),
            Err(error) if error.is_timeout() => Err(String::from("it did not answer in time")),
            Err(error) if error.is_connect() => Err(String::from("nothing listens there")),
            Err(_) => Err(String::from("the connection broke")),
        }
    }
}

/// Resource attributes of the exporter.
fn resource(target: &TelemetryTarget) -> Resource {
    Resource {
        attributes: vec![
            text("service.name", target.service_name.as_str()),
            text("service.version", target.version.as_str()),
            text("service.instance.id", Uuid::new_v4().to_string()),
            text("telemetry.sdk.name", "palimpsest"),
            text("telemetry.sdk.language", "rust"),
        ],
    }
}
