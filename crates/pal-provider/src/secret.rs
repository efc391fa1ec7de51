//! Keys, and how they stay out of everything that is read by people.
//!
//! A key is held in memory that forgets it, shows itself to nobody, and leaves through one header. Whatever a
//! provider or a library says passes [`Mask`] before it becomes a failure.

use std::fmt;
use std::sync::Arc;

use pal_wire::Failure;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a key.
const MASK: &str = "***";

/// As many characters of a key are enough to hide what follows, since texts may be cut in the middle of a key.
const TELLING_CHARS: usize = 8;

/// A shorter key is a placeholder for servers that want none ("x", "-"); hiding it would only garble texts.
const SECRET_CHARS_MIN: usize = 4;

/// A key and the header that it travels in.
#[derive(Clone)]
pub enum Key {
    /// The provider's own header (`x-api-key`); where a dialect knows none, a bearer token.
    Api(SecretString),
    /// `authorization: Bearer …`.
    Bearer(SecretString),
}

impl Key {
    /// A key of the provider. White space around it, such as the end of a line, is not part of it.
    pub fn api(key: &str) -> Key {
        Key::Api(SecretString::from(key.trim()))
    }

    /// A bearer token. White space around it is not part of it.
    pub fn bearer(token: &str) -> Key {
        Key::Bearer(SecretString::from(token.trim()))
    }

    /// The bare key.
    pub(crate) fn secret(&self) -> &SecretString {
        match self {
            Key::Api(secret) | Key::Bearer(secret) => secret,
        }
    }

    /// The value of a header that carries the key after a prefix; nothing if the key is empty or has characters
    /// that a header cannot carry.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let key = self.secret().expose_secret();
        let is_printable = !key.is_empty() && key.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        let mut value = HeaderValue::from_str(&format!("{prefix}{key}")).ok().filter(|_| is_printable)?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Key::Api(_) => "Api(***)",
            Key::Bearer(_) => "Bearer(***)",
        })
    }
}

/// Hides one key in texts.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    secret: Option<Arc<SecretString>>,
}

impl Mask {
    /// Hides a key, or nothing where there is none.
    pub(crate) fn new(key: Option<&Key>) -> Mask {
        let secret = key.map(Key::secret).filter(|secret| secret.expose_secret().len() >= SECRET_CHARS_MIN);
        Mask { secret: secret.map(|secret| Arc::new(secret.clone())) }
    }

    /// The bytes without the key, or without the beginning of it where they were cut.
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

    /// The text without the key.
    pub(crate) fn text(&self, text: String) -> String {
        // A key is ASCII, or it would not have become a header; so cutting it out leaves whole characters.
        String::from_utf8(self.bytes(text.into_bytes())).unwrap_or_else(|_| MASK.to_owned())
    }

    /// The failure without the key, whoever put it there.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        Failure {
            message: self.text(failure.message),
            code: failure.code.map(|code| self.text(code)),
            request_id: failure.request_id.map(|id| self.text(id)),
            ..failure
        }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mask(***)")
    }
}

/// Where a needle stands first.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_whole_and_cut() {
        let mask = Mask::new(Some(&Key::api("sk-canary-0123456789")));
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
    fn placeholders_do_not_garble_texts() {
        assert_eq!(Mask::new(Some(&Key::api("x"))).text("axe".to_owned()), "axe");
        assert_eq!(Mask::new(None).text("axe".to_owned()), "axe");
    }

    #[test]
    fn a_header_refuses_what_it_cannot_carry() {
        for (key, is_fit) in
            [("sk-1", true), (" sk-1\n", true), ("", false), ("a\nb", false), ("schlüssel", false)]
        {
            assert_eq!(Key::api(key).header("").is_some(), is_fit, "{key:?}");
        }
        let header = Key::bearer("token").header("Bearer ").unwrap();
        assert!(header.is_sensitive());
    }
}
