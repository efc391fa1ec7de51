//! Export target: endpoint, headers and resource attributes.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Where collectors listen on one's own machine.
const ADDRESS: &str = "http://localhost:4318";

/// Where an export goes, and as what.
#[derive(Clone)]
pub struct TelemetryTarget {
    /// The collector's address, below which `/v1/traces` and `/v1/metrics` are; one on this machine unless given.
    pub endpoint: Option<String>,
    /// Headers for the collector: `name=value` with commas between, values percent-encoded.
    pub headers: Option<String>,
    /// The name of the service.
    pub service_name: String,
    /// The version of the program.
    pub version: String,
    /// Includes message content in spans.
    pub with_content: bool,
    /// Allows unencrypted HTTP to other machines.
    pub allows_plain_http: bool,
}

/// Why a target cannot be exported to. Repeats neither addresses, which may hold secrets, nor headers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TelemetryTargetError {
    /// The address is none.
    #[error("`telemetry.endpoint` is no address of a collector; it looks like http://localhost:4318")]
    Address,
    /// Plain http to another machine.
    #[error("`telemetry.endpoint` is another machine and not https; use https, or set allow_plain_http")]
    PlainHttp,
    /// The headers are none.
    #[error("the headers for the collector are not of the form name=value,name=value")]
    Headers,
    /// The system has no thread left.
    #[error("the export has no thread to run in")]
    Thread,
}

impl TelemetryTarget {
    /// The address of a signal, such as `traces`.
    pub(super) fn url(&self, signal: &str) -> Result<Url, TelemetryTargetError> {
        let mut url = Url::parse(self.endpoint.as_deref().unwrap_or(ADDRESS).trim())
            .map_err(|_| TelemetryTargetError::Address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TelemetryTargetError::Address);
        }
        if url.scheme() == "http" && !is_here(&url) && !self.allows_plain_http {
            return Err(TelemetryTargetError::PlainHttp);
        }
        url.set_path(&format!("{}/v1/{signal}", url.path().trim_end_matches('/')));
        Ok(url)
    }

    /// The headers for the collector.
    pub(super) fn header_map(&self) -> Result<HeaderMap, TelemetryTargetError> {
        let mut map = HeaderMap::new();
        let pairs = self.headers.as_deref().unwrap_or_default().split(',');
        for pair in pairs.map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(TelemetryTargetError::Headers)?;
            let name =
                HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| TelemetryTargetError::Headers)?;
            let value =
                HeaderValue::from_bytes(&decoded(value.trim())).map_err(|_| TelemetryTargetError::Headers)?;
            map.insert(name, value);
        }
        Ok(map)
    }
}

/// True if an address is on this machine.
pub(super) fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Decodes percent-encoded bytes; invalid codes stay as they are.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[2..] } else { others };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(endpoint: &str, headers: &str) -> TelemetryTarget {
        TelemetryTarget {
            endpoint: Some(endpoint.to_owned()),
            headers: Some(headers.to_owned()),
            service_name: String::new(),
            version: String::new(),
            with_content: false,
            allows_plain_http: false,
        }
    }

    #[test]
    fn other_machines_are_spoken_to_with_encryption_unless_allowed() {
        let url = |endpoint: &str| target(endpoint, "").url("traces").map(|url| url.to_string());
        assert_eq!(url("http://localhost:4318").unwrap(), "http://localhost:4318/v1/traces");
        assert_eq!(url("https://example.org/otlp/").unwrap(), "https://example.org/otlp/v1/traces");
        assert_eq!(url("http://[::1]:1").unwrap(), "http://[::1]:1/v1/traces");
        assert_eq!(url("http://example.org"), Err(TelemetryTargetError::PlainHttp));
        assert_eq!(url("http://localhost.example.org"), Err(TelemetryTargetError::PlainHttp));
        assert_eq!(url("collector:4318"), Err(TelemetryTargetError::Address));
        let allowed = TelemetryTarget { allows_plain_http: true, ..target("http://example.org", "") };
        assert!(allowed.url("metrics").is_ok());
    }

    #[test]
    fn headers_are_read_as_the_variable_spells_them() {
        let map = target("", "authorization=Basic%20YQ==, x-team = a ,").header_map().unwrap();
        assert!(map["authorization"] == "Basic YQ==" && map["x-team"] == "a", "{map:?}");
        assert_eq!(target("", "no pair").header_map(), Err(TelemetryTargetError::Headers));
    }
}
