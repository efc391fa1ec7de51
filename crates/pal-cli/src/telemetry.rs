//! The program's own log, and the export of session metrics.

use pal_events::AgentEvent;
use pal_telemetry::{LogError, start_log};

use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::Settings;

/// Starts the log that the settings name.
pub(crate) fn begin_log(settings: &Settings) -> Result<(), Failure> {
    let Some(filter) = &settings.logging.filter else { return Ok(()) };
    let begun = start_log(filter, settings.logging.file.as_deref());
    begun.map_err(|error| match error {
        LogError::Filter { .. } => Failure::with_hint(error.to_string(), "correct `log`, or unset PAL_LOG"),
        LogError::File { .. } => Failure::with_hint(error.to_string(), "correct `log_file`"),
        LogError::Twice => Failure::new(error.to_string()),
    })
}

/// Export of a session's spans and metrics, if the settings enable it. It never fails the session; a problem is reported once.
pub(crate) struct TelemetryExport {
    #[cfg(feature = "otel")]
    telemetry: Option<pal_telemetry::Telemetry>,
    trouble: Option<String>,
}

#[cfg(feature = "otel")]
impl TelemetryExport {
    /// Connects to the collector.
    pub(crate) fn begin(settings: &Settings) -> TelemetryExport {
        use pal_telemetry::{Telemetry, TelemetryTarget};
        use secrecy::ExposeSecret;

        if !is_wanted(settings) {
            return TelemetryExport { telemetry: None, trouble: None };
        }
        let headers = settings.secrets.telemetry_headers.as_ref();
        let started = Telemetry::start(TelemetryTarget {
            endpoint: settings.telemetry.endpoint.clone(),
            headers: headers.map(|headers| headers.expose_secret().to_owned()),
            service_name: settings.telemetry.service_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            with_content: settings.telemetry.with_content,
            allows_plain_http: settings.endpoints.allows_plain_http,
        });
        match started {
            Ok(telemetry) => TelemetryExport { telemetry: Some(telemetry), trouble: None },
            Err(error) => TelemetryExport {
                telemetry: None,
                trouble: Some(format!("telemetry is not exported: {error}")),
            },
        }
    }

    /// Records an event.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.event(event);
        }
    }

    /// Takes the problem to report, once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        self.trouble.take().or_else(|| self.telemetry.as_mut()?.trouble())
    }

    /// Flushes the export and reports problems.
    pub(crate) fn finish(mut self, notices: &Notices) {
        let untold = self.trouble();
        let last = self.telemetry.take().and_then(|telemetry| telemetry.finish());
        for line in untold.into_iter().chain(last) {
            notices.add(line);
        }
    }
}

#[cfg(not(feature = "otel"))]
impl TelemetryExport {
    /// Reports that the program was built without telemetry.
    pub(crate) fn begin(settings: &Settings) -> TelemetryExport {
        let missing =
            || String::from("telemetry is not exported: this pal was built without the feature `otel`");
        TelemetryExport { trouble: is_wanted(settings).then(missing) }
    }

    /// Records an event.
    pub(crate) fn event(&mut self, _event: &AgentEvent) {}

    /// Takes the problem to report, once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Reports problems.
    pub(crate) fn finish(mut self, notices: &Notices) {
        if let Some(line) = self.trouble() {
            notices.add(line);
        }
    }
}

fn is_wanted(settings: &Settings) -> bool {
    settings.telemetry.is_on && !settings.switches.is_off(pal_settings::KillSwitch::Telemetry)
}
