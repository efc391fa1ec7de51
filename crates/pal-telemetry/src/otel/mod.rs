//! Spans and figures for a collector: events become both, a thread of its own sends them.

mod counting;
mod exporter;
mod meter;
mod names;
mod recorder;
mod saying;
mod target;
mod wire;

use pal_agent::Event;

use exporter::Exporter;
use recorder::Recorder;

pub use target::{Target, TargetError};

/// An export that is under way.
#[derive(Debug)]
pub struct Telemetry {
    recorder: Recorder,
    exporter: Exporter,
}

impl Telemetry {
    /// Begins an export. Nothing is sent yet, and nobody is spoken to.
    pub fn start(target: Target) -> Result<Telemetry, TargetError> {
        let recorder = Recorder::new(target.with_content);
        let exporter = Exporter::start(target)?;
        Ok(Telemetry { recorder, exporter })
    }

    /// Takes in something that happened. Never waits: what the collector has no time for is left out.
    pub fn event(&mut self, event: &Event) {
        let exporter = &self.exporter;
        let mut meter = exporter.meter();
        self.recorder.event(event, &mut meter, &mut |span| exporter.send(span));
    }

    /// Why nothing reaches the collector, once, as soon as that is known.
    pub fn trouble(&mut self) -> Option<String> {
        self.exporter.trouble()
    }

    /// Sends what is left, for two seconds at most; why that did not work, unless [`Telemetry::trouble`] told it before.
    pub fn finish(mut self) -> Option<String> {
        let exporter = &self.exporter;
        self.recorder.finish(&mut |span| exporter.send(span));
        self.exporter.finish()
    }
}
