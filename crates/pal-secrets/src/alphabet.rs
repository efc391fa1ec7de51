//! Sets of ASCII characters that tokens are made of.

/// A set of ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alphabet {
    /// `0-9`.
    Digit,
    /// `0-9a-f`.
    LowerHex,
    /// `0-9a-fA-F`.
    Hex,
    /// `a-z0-9`.
    LowerAlnum,
    /// `A-Z0-9`.
    UpperAlnum,
    /// `A-Z2-7`.
    Base32,
    /// `A-Za-z0-9`.
    Alnum,
    /// `A-Za-z0-9_`.
    Word,
    /// `A-Za-z0-9_-`.
    UrlSafe,
    /// `A-Za-z0-9_=-`.
    UrlSafePadded,
    /// `A-Za-z0-9_.=-`.
    Dotted,
    /// `A-Za-z0-9+/=`.
    Base64,
    /// `A-Za-z0-9+/`.
    Base64Unpadded,
    /// `A-Za-z0-9_~.-`.
    Unreserved,
    /// `A-Za-z0-9+/_=-`: base 64 of either sort.
    AnyBase64,
    /// `A-Za-z0-9%+/_-`: what an encoded cookie or query holds.
    PercentEncoded,
    /// `A-Za-z0-9./`, of password hashes.
    Crypt,
}

impl Alphabet {
    /// Returns whether a byte belongs to the set.
    pub(crate) fn has(self, byte: u8) -> bool {
        let is_alnum = byte.is_ascii_alphanumeric();
        match self {
            Alphabet::Digit => byte.is_ascii_digit(),
            Alphabet::LowerHex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Alphabet::Hex => byte.is_ascii_hexdigit(),
            Alphabet::LowerAlnum => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
            Alphabet::UpperAlnum => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            Alphabet::Base32 => byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte),
            Alphabet::Alnum => is_alnum,
            Alphabet::Word => is_alnum || byte == b'_',
            Alphabet::UrlSafe => is_alnum || matches!(byte, b'_' | b'-'),
            Alphabet::UrlSafePadded => is_alnum || matches!(byte, b'_' | b'-' | b'='),
            Alphabet::Dotted => is_alnum || matches!(byte, b'_' | b'-' | b'=' | b'.'),
            Alphabet::Base64 => is_alnum || matches!(byte, b'+' | b'/' | b'='),
            Alphabet::Base64Unpadded => is_alnum || matches!(byte, b'+' | b'/'),
            Alphabet::Unreserved => is_alnum || matches!(byte, b'_' | b'-' | b'~' | b'.'),
            Alphabet::AnyBase64 => is_alnum || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-'),
            Alphabet::PercentEncoded => is_alnum || matches!(byte, b'%' | b'+' | b'/' | b'_' | b'-'),
            Alphabet::Crypt => is_alnum || matches!(byte, b'.' | b'/'),
        }
    }
}
