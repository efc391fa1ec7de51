//! Where calls go: an address that was checked once, and the key that goes with it.
//!
//! It owns the joining of addresses and paths, and refuses addresses that would give a key away: plain http to
//! another machine, unless that was allowed, and addresses that carry secrets themselves. It reads no environment;
//! a shell does and passes values.

use std::net::IpAddr;

use pal_wire::Dialect;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::secret::{Key, Mask};

/// Where Anthropic's Messages are served.
pub const ANTHROPIC_ADDRESS: &str = "https://api.anthropic.com";

/// Where OpenAI's dialects are served.
pub const OPENAI_ADDRESS: &str = "https://api.openai.com/v1";

/// One provider: its address, its key, what it speaks. Its debug form shows no key.
#[derive(Clone, Debug)]
pub struct Endpoint {
    base: Url,
    key: Option<Key>,
    dialect: Dialect,
}

/// Why an address or a key cannot be used. Never repeats either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is not one.
    #[error("the base address is no URL ({reason}); it looks like https://host or http://127.0.0.1:8080")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// The address is neither https nor http.
    #[error("the base address begins with neither https:// nor http://")]
    Scheme,
    /// The address carries a user name, a password, a query or a fragment.
    #[error(
        "the base address carries a user name, a password, a query or a fragment; \
         give the bare address, and the key by itself"
    )]
    Extras,
    /// Plain http to another machine.
    #[error(
        "plain http to {host} would show the key and everything said to whoever is on the way; \
         use https://, or allow plain http for this endpoint explicitly (Endpoint::over_plain_http)"
    )]
    PlainHttp {
        /// The machine.
        host: String,
    },
    /// The key is empty or cannot be a header.
    #[error("the key is empty or holds characters other than printable ASCII")]
    Key,
}

impl Endpoint {
    /// An endpoint over https, or over plain http on this machine.
    ///
    /// The address may end with a slash. For Messages it may end with `/v1`, too; for the OpenAI dialects a path is
    /// taken to be the root of the API, as OpenAI's own clients take it, and an address without one gets `/v1`.
    pub fn new(dialect: Dialect, base_url: &str, key: Option<Key>) -> Result<Endpoint, EndpointError> {
        let endpoint = Endpoint::over_plain_http(dialect, base_url, key)?;
        if endpoint.base.scheme() == "http" && !endpoint.is_loopback() {
            let host = endpoint.base.host_str().unwrap_or_default().to_owned();
            return Err(EndpointError::PlainHttp { host });
        }
        Ok(endpoint)
    }

    /// As [`Endpoint::new`], but plain http to other machines is allowed, such as to a model server in one's own
    /// network. Whoever is on the way can read the key and everything said.
    pub fn over_plain_http(
        dialect: Dialect,
        base_url: &str,
        key: Option<Key>,
    ) -> Result<Endpoint, EndpointError> {
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
        Ok(Endpoint { base, key, dialect })
    }

    /// What it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The root of the API, to which `/messages`, `/responses` and so on are added. Holds no secret.
    pub fn address(&self) -> &str {
        self.base.as_str()
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.local_name().is_some(),
        }
    }

    /// Whether it is on this machine or, by its address, in the machine's own network.
    pub fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_private = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
            Err(_) => host.ends_with(".local") || host.ends_with(".internal") || !host.contains('.'),
        };
        is_private || self.is_loopback()
    }

    /// The name of this machine that stands in the address, if one does.
    pub(crate) fn local_name(&self) -> Option<&str> {
        let host = self.base.host_str()?;
        (host == "localhost" || host.ends_with(".localhost")).then_some(host)
    }

    /// The address of a path such as `/v1/messages`.
    pub(crate) fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url.set_query(query);
        url
    }

    /// The header that carries the key.
    pub(crate) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        match (self.key.as_ref()?, self.dialect) {
            (key @ Key::Api(_), Dialect::Messages) => {
                Some((HeaderName::from_static("x-api-key"), key.header("")?))
            }
            (key, _) => Some((AUTHORIZATION, key.header("Bearer ")?)),
        }
    }

    /// What hides the key.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(self.key.as_ref())
    }
}

/// The path of the API's root, given the path of an address without slashes at its end.
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
    fn addresses_join_with_paths_however_they_end() {
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
            let endpoint = Endpoint::new(dialect, base, None).unwrap();
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
            assert!(Endpoint::new(Dialect::Chat, local, None).unwrap().is_loopback(), "{local}");
        }
        for other in [
            "http://192.168.1.2:8080",
            "http://localhost.example.org",
            "http://notlocalhost",
            "http://0.0.0.0",
        ] {
            let error = Endpoint::new(Dialect::Chat, other, None).unwrap_err();
            assert!(matches!(error, EndpointError::PlainHttp { .. }), "{other}: {error}");
            assert!(error.to_string().contains("over_plain_http"), "{error}");
            assert!(Endpoint::over_plain_http(Dialect::Chat, other, None).is_ok());
        }
    }

    #[test]
    fn addresses_and_keys_that_cannot_be_used_are_refused_and_not_repeated() {
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
            let error = Endpoint::new(Dialect::Messages, base, Some(Key::api(key))).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }

    #[test]
    fn the_key_travels_in_the_header_of_its_dialect_and_shows_nowhere() {
        let cases = [
            (Dialect::Messages, Key::api("sk-canary"), "x-api-key", "sk-canary"),
            (Dialect::Messages, Key::bearer("sk-canary"), "authorization", "Bearer sk-canary"),
            (Dialect::Responses, Key::api("sk-canary"), "authorization", "Bearer sk-canary"),
            (Dialect::Chat, Key::bearer("sk-canary"), "authorization", "Bearer sk-canary"),
        ];
        for (dialect, key, name, value) in cases {
            let endpoint = Endpoint::new(dialect, "https://h", Some(key)).unwrap();
            let header = endpoint.authorization().unwrap();
            assert_eq!((header.0.as_str(), header.1.to_str().unwrap()), (name, value));
            assert!(!format!("{endpoint:?} {header:?} {:?}", endpoint.mask()).contains("canary"));
        }
    }
}
