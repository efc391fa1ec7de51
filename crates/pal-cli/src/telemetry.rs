//! What the program tells of its own work: the log that was asked for, and the export of a session's figures.

use pal_agent::Event;
use pal_telemetry::{LogError, start_log};

use crate::aside;
use crate::failure::Failure;
use crate::settings::Settings;

/// Begins the log, if one is set.
pub(crate) fn begin_log(settings: &Settings) -> Result<(), Failure> {
    let Some(filter) = &settings.logging.filter else { return Ok(()) };
    let begun = start_log(filter, settings.logging.file.as_deref());
    begun.map_err(|error| match error {
        LogError::Filter { .. } => Failure::with_hint(error.to_string(), "correct `log`, or unset PAL_LOG"),
        LogError::File { .. } => Failure::with_hint(error.to_string(), "correct `log_file`"),
        LogError::Twice => Failure::new(error.to_string()),
    })
}

/// The export of a session, if one is wanted and can be had. It never fails the session: what is wrong is told once.
pub(crate) struct Export {
    #[cfg(feature = "otel")]
    telemetry: Option<pal_telemetry::Telemetry>,
    trouble: Option<String>,
}

#[cfg(feature = "otel")]
impl Export {
    /// Begins it.
    pub(crate) fn begin(settings: &Settings) -> Export {
        use pal_telemetry::{Target, Telemetry};
        use secrecy::ExposeSecret;

        if !is_wanted(settings) {
            return Export { telemetry: None, trouble: None };
        }
        let headers = settings.secrets.telemetry_headers.as_ref();
        let started = Telemetry::start(Target {
            endpoint: settings.telemetry.endpoint.clone(),
            headers: headers.map(|headers| headers.expose_secret().to_owned()),
            service_name: settings.telemetry.service_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            with_content: settings.telemetry.with_content,
            allows_plain_http: settings.endpoints.allows_plain_http,
        });
        match started {
            Ok(telemetry) => Export { telemetry: Some(telemetry), trouble: None },
            Err(error) => {
                Export { telemetry: None, trouble: Some(format!("no figures are exported: {error}")) }
            }
        }
    }

    /// Takes in what happened.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.event(event);
        }
    }

    /// What there is to tell the user, once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        self.trouble.take().or_else(|| self.telemetry.as_mut()?.trouble())
    }

    /// Sends what is left, and tells what is untold.
    pub(crate) fn finish(mut self) {
        let untold = self.trouble();
        let last = self.telemetry.take().and_then(|telemetry| telemetry.finish());
        for line in untold.into_iter().chain(last) {
            aside::tell(line);
        }
    }
}

#[cfg(not(feature = "otel"))]
impl Export {
    /// There is none in this program.
    pub(crate) fn begin(settings: &Settings) -> Export {
        let missing =
            || String::from("no figures are exported: this pal was built without the feature `otel`");
        Export { trouble: is_wanted(settings).then(missing) }
    }

    /// Takes in what happened.
    pub(crate) fn event(&mut self, _event: &Event) {}

    /// What there is to tell the user, once.
    pub(crate) fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Tells what is untold.
    pub(crate) fn finish(mut self) {
        if let Some(line) = self.trouble() {
            aside::tell(line);
        }
    }
}

fn is_wanted(settings: &Settings) -> bool {
    settings.telemetry.is_on && !settings.switches.is_off(pal_settings::Switch::Telemetry)
}
