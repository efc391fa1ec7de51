//! API keys, and masking of keys in messages.
//!
//! A key is held in zeroised memory, is never displayed, and is sent in one header only. Provider and library
//! messages pass [`KeyMask`] before they become a failure.

use std::fmt;
use std::sync::Arc;

use pal_wire::ProviderFailure;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// Replacement for a key.
const MASK: &str = "***";

/// Number of leading key characters that trigger masking, since texts may be cut inside a key.
const TELLING_CHARS: usize = 8;

/// Minimum key length to mask; shorter keys are placeholders ("x", "-") and masking them would garble texts.
const SECRET_CHARS_MIN: usize = 4;

/// A key and the header it is sent in.
#[derive(Clone)]
pub enum ApiKey {
    /// The provider's own header (`x-api-key`); a bearer token in dialects without one.
    Api(SecretString),
    /// `authorization: Bearer …`.
    Bearer(SecretString),
}

impl ApiKey {
    /// Provider key. Surrounding white space is removed.
    pub fn api(key: &str) -> ApiKey {
        ApiKey::Api(SecretString::from(key.trim()))
    }

    /// Bearer token. Surrounding white space is removed.
    pub fn bearer(token: &str) -> ApiKey {
        ApiKey::Bearer(SecretString::from(token.trim()))
    }

    /// Bare key.
    pub(crate) fn secret(&self) -> &SecretString {
        match self {
            ApiKey::Api(secret) | ApiKey::Bearer(secret) => secret,
        }
    }

    /// Header value with the key after a prefix; `None` if the key is empty or not printable ASCII.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let key = self.secret().expose_secret();
        let is_printable = !key.is_empty() && key.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        let mut value = HeaderValue::from_str(&format!("{prefix}{key}")).ok().filter(|_| is_printable)?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ApiKey::Api(_) => "Api(***)",
            ApiKey::Bearer(_) => "Bearer(***)",
        })
    }
}

/// Masks one key in texts.
#[derive(Clone, Default)]
pub(crate) struct KeyMask {
    secret: Option<Arc<SecretString>>,
}

impl KeyMask {
    /// Masks a key, or nothing if there is none.
    pub(crate) fn new(key: Option<&ApiKey>) -> KeyMask {
        let secret =
            key.map(ApiKey::secret).filter(|secret| secret.expose_secret().len() >= SECRET_CHARS_MIN);
        KeyMask { secret: secret.map(|secret| Arc::new(secret.clone())) }
    }

    /// Masks the key in bytes, or its beginning where they were cut.
    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(secret) = &self.secret else { return bytes };
        let secret = secret.expose_secret().as_bytes();
        let (telling, _) = secret.split_at(secret.len().min(TELLING_CHARS));
        let Some(first) = find(&bytes, telling) else { return bytes };
        let mut masked = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        let mut at = Some(first);
        while let Some(start) = at {
            let (before, from) = rest.split_at(start);
            let same = from.iter().zip(secret).take_while(|(left, right)| left == right).count();
            masked.extend_from_slice(before);
            masked.extend_from_slice(MASK.as_bytes());
            rest = from.split_at(same).1;
            at = find(rest, telling);
        }
        masked.extend_from_slice(rest);
        masked
    }

    /// Masks the key in a text.
    pub(crate) fn text(&self, text: String) -> String {
        // Keys are ASCII, so removing one leaves valid UTF-8.
        String::from_utf8(self.bytes(text.into_bytes())).unwrap_or_else(|_| MASK.to_owned())
    }

    /// Masks the key in all texts of a failure.
    pub(crate) fn failure(&self, failure: ProviderFailure) -> ProviderFailure {
        ProviderFailure {
            message: self.text(failure.message),
            code: failure.code.map(|code| self.text(code)),
            request_id: failure.request_id.map(|id| self.text(id)),
            ..failure
        }
    }
}

impl fmt::Debug for KeyMask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyMask(***)")
    }
}

/// First position of a needle.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_truncated_keys_are_masked() {
        let mask = KeyMask::new(Some(&ApiKey::api("sk-canary-0123456789")));
        let cases = [
            ("nothing to hide", "nothing to hide"),
            ("key sk-canary-0123456789 is wrong", "key *** is wrong"),
            ("sk-canary-0123456789sk-canary-0123456789", "******"),
            ("cut here: sk-canary-01", "cut here: ***"),
            ("é sk-canary-0123456789é", "é ***é"),
            ("another sk-can", "another sk-can"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask.text(text.to_owned()), expected);
        }
    }

    #[test]
    fn short_placeholder_keys_are_not_masked() {
        assert_eq!(KeyMask::new(Some(&ApiKey::api("x"))).text("axe".to_owned()), "axe");
        assert_eq!(KeyMask::new(None).text("axe".to_owned()), "axe");
    }

    #[test]
    fn header_refuses_unprintable_keys() {
        for (key, is_fit) in
            [("sk-1", true), (" sk-1\n", true), ("", false), ("a\nb", false), ("schlüssel", false)]
        {
            assert_eq!(ApiKey::api(key).header("").is_some(), is_fit, "{key:?}");
        }
        let header = ApiKey::bearer("token").header("Bearer ").unwrap();
        assert!(header.is_sensitive());
    }
}
