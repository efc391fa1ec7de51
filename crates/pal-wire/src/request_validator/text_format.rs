//! Formats of strings: identifiers, names, base64.

use super::json::NodeText;

/// Required format of a string.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextFormat {
    /// The id of a client's tool call.
    Id,
    /// The id of a provider's own tool call.
    ServerId,
    /// The name of a tool.
    Name,
    /// Binary data.
    Base64,
}

impl TextFormat {
    pub(crate) fn fits(self, text: NodeText<'_>) -> bool {
        let decoded = text.decoded();
        let word = decoded.as_bytes();
        match self {
            TextFormat::Id => !word.is_empty() && word.iter().all(is_word_or_dash),
            TextFormat::ServerId => word.strip_prefix(b"srvtoolu_").is_some_and(|rest| {
                !rest.is_empty() && rest.iter().all(|b| *b != b'-' && is_word_or_dash(b))
            }),
            TextFormat::Name => (1..=128).contains(&word.len()) && word.iter().all(is_word_or_dash),
            TextFormat::Base64 => is_base64(word),
        }
    }

    /// Returns the provider's error message for a mismatch.
    pub(crate) fn complaint(self) -> &'static str {
        match self {
            TextFormat::Id => "String should match pattern '^[a-zA-Z0-9_-]+$'",
            TextFormat::ServerId => "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
            TextFormat::Name => "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            TextFormat::Base64 => "Invalid base64 data",
        }
    }
}

fn is_word_or_dash(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_base64(data: &[u8]) -> bool {
    let digits = data.strip_suffix(b"==").or_else(|| data.strip_suffix(b"=")).unwrap_or(data);
    // A fold has no early exit, so the loop can be vectorised.
    let wrong = digits.iter().fold(0, |wrong, &byte| wrong | u8::from(!is_base64_digit(byte)));
    !digits.is_empty() && data.len().is_multiple_of(4) && wrong == 0
}

fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/')
}
