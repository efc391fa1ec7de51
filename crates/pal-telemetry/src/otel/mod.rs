//! OpenTelemetry export: events become spans and metrics, which a background thread sends to a collector.

mod entry_text;
mod exporter;
mod meter;
mod metric_counts;
mod names;
mod recorder;
mod target;
mod wire;

use pal_events::AgentEvent;

use exporter::SpanExporter;
use recorder::SpanRecorder;

pub use target::{TelemetryTarget, TelemetryTargetError};

/// A running export.
#[derive(Debug)]
pub struct Telemetry {
    recorder: SpanRecorder,
    exporter: SpanExporter,
}

impl Telemetry {
    /// Begins an export. Nothing is sent yet, and no connection is made.
    pub fn start(target: TelemetryTarget) -> Result<Telemetry, TelemetryTargetError> {
        let recorder = SpanRecorder::new(target.with_content);
        let exporter = SpanExporter::start(target)?;
        Ok(Telemetry { recorder, exporter })
    }

    /// Records an event. Never blocks: if the collector is too slow, data is dropped.
    pub fn event(&mut self, event: &AgentEvent) {
        let exporter = &self.exporter;
        let mut meter = exporter.meter();
        self.recorder.event(event, &mut meter, &mut |span| exporter.send(span));
    }

    /// Why nothing reaches the collector, once, as soon as that is known.
    pub fn trouble(&mut self) -> Option<String> {
        self.exporter.trouble()
    }

    /// Sends the queued rest within two seconds. Returns the error unless [`Telemetry::trouble`] reported it before.
    pub fn finish(mut self) -> Option<String> {
        let exporter = &self.exporter;
        self.recorder.finish(&mut |span| exporter.send(span));
        self.exporter.finish()
    }
}
