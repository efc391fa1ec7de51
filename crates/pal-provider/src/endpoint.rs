//! Provider endpoint: a validated base address and its key.
//!
//! It joins addresses and paths, and refuses addresses that would expose a key: plain http to another
//! machine, unless allowed, and addresses that contain secrets. It does not read the environment.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pal_wire::Dialect;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::api_key::{ApiKey, KeyMask};
use crate::cloud::CloudPlatform;

/// Anthropic's base address.
pub const ANTHROPIC_ADDRESS: &str = "https://api.anthropic.com";

/// Header of a simulator's responses: what they cost is not spent.
pub const SIMULATOR_HEADER: &str = "x-palimpsest-simulator";

/// OpenAI's base address.
pub const OPENAI_ADDRESS: &str = "https://api.openai.com/v1";

/// A provider's address, key and dialect. Its debug form shows no key.
#[derive(Clone, Debug)]
pub struct ProviderEndpoint {
    base: Url,
    key: Option<ApiKey>,
    dialect: Dialect,
    is_simulated: bool,
    /// Set once the server says that it is a simulator.
    announced: Arc<AtomicBool>,
    /// Platform that takes the Messages dialect in its own form.
    platform: Option<Arc<CloudPlatform>>,
}

/// Invalid address or key. Never repeats either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is not a URL.
    #[error("the base address is not a URL ({reason}); write it like https://host or http://127.0.0.1:8080")]
    Address {
        /// Parser message.
        reason: String,
    },
    /// The scheme is neither https nor http.
    #[error("the base address must begin with https:// or http://")]
    Scheme,
    /// The address contains a user name, a password, a query or a fragment.
    #[error(
        "the base address contains a user name, a password, a query or a fragment; \
         give only the address, and the key separately"
    )]
    Extras,
    /// Plain http to another machine without permission.
    #[error(
        "plain http to {host} exposes the key and the conversation to anyone on the network; \
         use https://, or allow plain http for this endpoint (ProviderEndpoint::over_plain_http)"
    )]
    PlainHttp {
        /// Host in the address.
        host: String,
    },
    /// The key is empty or not valid in a header.
    #[error("the key is empty or contains characters other than printable ASCII")]
    Key,
}

impl ProviderEndpoint {
    /// Creates an endpoint over https, or over plain http on this machine.
    ///
    /// A trailing slash is accepted. For Messages, so is a trailing `/v1`; for the OpenAI dialects a path is
    /// the root of the API, as in OpenAI's clients, and an address without a path gets `/v1`.
    pub fn new(
        dialect: Dialect,
        base_url: &str,
        key: Option<ApiKey>,
    ) -> Result<ProviderEndpoint, EndpointError> {
        let endpoint = ProviderEndpoint::over_plain_http(dialect, base_url, key)?;
        if endpoint.base.scheme() == "http" && !endpoint.is_loopback() {
            let host = endpoint.base.host_str().unwrap_or_default().to_owned();
            return Err(EndpointError::PlainHttp { host });
        }
        Ok(endpoint)
    }

    /// Like [`ProviderEndpoint::new`], but allows plain http to other machines, such as a model server in
    /// your own network. Anyone on the path can read the key and the conversation.
    pub fn over_plain_http(
        dialect: Dialect,
        base_url: &str,
        key: Option<ApiKey>,
    ) -> Result<ProviderEndpoint, EndpointError> {
        let mut base = Url::parse(base_url.trim())
            .map_err(|error| EndpointError::Address { reason: error.to_string() })?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(EndpointError::Scheme);
        }
        let has_user = !base.username().is_empty() || base.password().is_some();
        if has_user || base.query().is_some() || base.fragment().is_some() {
            return Err(EndpointError::Extras);
        }
        if key.as_ref().is_some_and(|key| key.header("").is_none()) {
            return Err(EndpointError::Key);
        }
        let root = base.path().trim_end_matches('/').to_owned();
        base.set_path(&api_root(dialect, &root));
        let announced = Arc::default();
        Ok(ProviderEndpoint { base, key, dialect, is_simulated: false, announced, platform: None })
    }

    /// Marks the endpoint as a simulator: usage that it reports costs nothing.
    pub fn simulated(self) -> ProviderEndpoint {
        ProviderEndpoint { is_simulated: true, ..self }
    }

    /// Notes that the server said that it is a simulator ([`SIMULATOR_HEADER`]).
    pub(crate) fn note_simulator(&self) {
        self.announced.store(true, Ordering::Relaxed);
    }

    /// Returns true if the endpoint is a simulator, as it was marked or as its last response said.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated || self.announced.load(Ordering::Relaxed)
    }

    /// Creates an endpoint of a cloud platform, at its own address or at `base_url`, such as that of a gateway.
    pub fn on_platform(
        platform: CloudPlatform,
        base_url: Option<&str>,
    ) -> Result<ProviderEndpoint, EndpointError> {
        let address = base_url.map_or_else(|| platform.address(), str::to_owned);
        let mut endpoint = ProviderEndpoint::new(Dialect::Messages, &address, None)?;
        let root = endpoint.base.path().trim_end_matches("/v1").to_owned();
        endpoint.base.set_path(&root);
        endpoint.platform = Some(Arc::new(platform));
        Ok(endpoint)
    }

    /// Cloud platform of the endpoint, if any.
    pub(crate) fn platform(&self) -> Option<&Arc<CloudPlatform>> {
        self.platform.as_ref()
    }

    /// URL of an encoded path of a cloud platform.
    pub(crate) fn platform_url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Dialect of the endpoint.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Root of the API, to which paths such as `/messages` are appended. Contains no secret.
    pub fn address(&self) -> &str {
        self.base.as_str()
    }

    /// True if the host is this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.local_name().is_some(),
        }
    }

    /// True if the host is this machine or, by its address, in its network.
    pub fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_private = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
            Err(_) => host.ends_with(".local") || host.ends_with(".internal") || !host.contains('.'),
        };
        is_private || self.is_loopback()
    }

    /// `localhost` name in the address, if any.
    pub(crate) fn local_name(&self) -> Option<&str> {
        let host = self.base.host_str()?;
        (host == "localhost" || host.ends_with(".localhost")).then_some(host)
    }

    /// URL of a path such as `/v1/messages`.
    pub(crate) fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url.set_query(query);
        url
    }

    /// Header with the key.
    pub(crate) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        match (self.key.as_ref()?, self.dialect) {
            (key @ ApiKey::Api(_), Dialect::Messages) => {
                Some((HeaderName::from_static("x-api-key"), key.header("")?))
            }
            (key, _) => Some((AUTHORIZATION, key.header("Bearer ")?)),
        }
    }

    /// Mask for the key.
    pub(crate) fn mask(&self) -> KeyMask {
        let platform_key = self.platform.as_ref().and_then(|platform| platform.masked_key());
        KeyMask::new(self.key.as_ref().or(platform_key.as_ref()))
    }
}

/// Path of the API root, from the address's path without trailing slashes.
fn api_root(dialect: Dialect, path: &str) -> String {
    let is_root = match dialect {
        Dialect::Messages => path.ends_with("/v1"),
        Dialect::Responses | Dialect::Chat => !path.is_empty(),
    };
    if is_root { path.to_owned() } else { format!("{path}/v1") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_join_with_paths_for_any_ending() {
        let cases = [
            (Dialect::Messages, "https://h", "/v1/messages", "https://h/v1/messages"),
            (Dialect::Messages, "https://h/", "/v1/messages", "https://h/v1/messages"),
            (Dialect::Messages, "https://h/v1", "/v1/messages", "https://h/v1/messages"),
            (Dialect::Messages, "https://h/v1/", "/v1/messages", "https://h/v1/messages"),
            (Dialect::Messages, "https://h/anthropic", "/v1/messages", "https://h/anthropic/v1/messages"),
            (Dialect::Messages, "https://h/anthropic//", "/v1/models/a", "https://h/anthropic/v1/models/a"),
            (Dialect::Messages, "https://h/notv1", "/v1/messages", "https://h/notv1/v1/messages"),
            (Dialect::Messages, " https://h\n", "/v1/messages?beta=true", "https://h/v1/messages?beta=true"),
            (Dialect::Responses, "https://h/v1", "/v1/responses", "https://h/v1/responses"),
            (Dialect::Responses, "https://h", "/v1/responses", "https://h/v1/responses"),
            (
                Dialect::Chat,
                "http://127.0.0.1:1/v1/",
                "/v1/chat/completions",
                "http://127.0.0.1:1/v1/chat/completions",
            ),
            (Dialect::Chat, "https://h/api/v4", "/v1/chat/completions", "https://h/api/v4/chat/completions"),
            (Dialect::Chat, "https://h/openai", "/v1/models", "https://h/openai/models"),
            (Dialect::Chat, "https://h", "/v1beta", "https://h/v1/v1beta"),
        ];
        for (dialect, base, path, expected) in cases {
            let endpoint = ProviderEndpoint::new(dialect, base, None).unwrap();
            assert_eq!(endpoint.url(path).as_str(), expected, "{base} and {path}");
        }
    }

    #[test]
    fn plain_http_stays_on_this_machine_unless_allowed() {
        for local in [
            "http://127.0.0.1:1",
            "http://127.8.9.1",
            "http://[::1]:1",
            "http://localhost",
            "http://a.localhost",
        ] {
            assert!(ProviderEndpoint::new(Dialect::Chat, local, None).unwrap().is_loopback(), "{local}");
        }
        for other in [
            "http://192.168.1.2:8080",
            "http://localhost.example.org",
            "http://notlocalhost",
            "http://0.0.0.0",
        ] {
            let error = ProviderEndpoint::new(Dialect::Chat, other, None).unwrap_err();
            assert!(matches!(error, EndpointError::PlainHttp { .. }), "{other}: {error}");
            assert!(error.to_string().contains("over_plain_http"), "{error}");
            assert!(ProviderEndpoint::over_plain_http(Dialect::Chat, other, None).is_ok());
        }
    }

    #[test]
    fn invalid_addresses_and_keys_are_refused_and_not_repeated() {
        let cases = [
            ("canary", "key"),
            ("ftp://canary", "key"),
            ("https://canary:canary@h", "key"),
            ("https://canary@h", "key"),
            ("https://h?key=canary", "key"),
            ("https://h#canary", "key"),
            ("https://h", "can\nary"),
            ("https://h", ""),
        ];
        for (base, key) in cases {
            let error = ProviderEndpoint::new(Dialect::Messages, base, Some(ApiKey::api(key))).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }

    #[test]
    fn key_is_sent_in_its_dialects_header_only() {
        let cases = [
            (Dialect::Messages, ApiKey::api("sk-canary"), "x-api-key", "sk-canary"),
            (Dialect::Messages, ApiKey::bearer("sk-canary"), "authorization", "Bearer sk-canary"),
            (Dialect::Responses, ApiKey::api("sk-canary"), "authorization", "Bearer sk-canary"),
            (Dialect::Chat, ApiKey::bearer("sk-canary"), "authorization", "Bearer sk-canary"),
        ];
        for (dialect, key, name, value) in cases {
            let endpoint = ProviderEndpoint::new(dialect, "https://h", Some(key)).unwrap();
            let header = endpoint.authorization().unwrap();
            assert_eq!((header.0.as_str(), header.1.to_str().unwrap()), (name, value));
            assert!(!format!("{endpoint:?} {header:?} {:?}", endpoint.mask()).contains("canary"));
        }
    }
}
