//! Token counts of images and documents, from the header of their data.

/// Tokens of an image of unknown size.
const UNKNOWN_IMAGE: u32 = 1_600;
/// Longest edge in pixels; larger images are scaled down before counting.
const LONGEST_EDGE: u64 = 1_568;
/// Assumed bytes and tokens (text and image) of a PDF page.
const PAGE_BYTES: usize = 50_000;
const PAGE_TOKENS: usize = 3_000;
/// Base64 digits decoded to find the size: JPEG files may have a long preamble.
const HEADER_DIGITS: usize = 128 * 1024;

/// Tokens of a base64 image: one per 750 pixels after scaling down.
pub(crate) fn image_tokens(base64: &str) -> u32 {
    let digits = base64.as_bytes();
    let header = decode(&digits[..digits.len().min(HEADER_DIGITS)]);
    let Some((width, height)) = size(&header).filter(|&(width, height)| width > 0 && height > 0) else {
        return UNKNOWN_IMAGE;
    };
    let (width, height) = (u64::from(width), u64::from(height));
    let longest = width.max(height);
    let (width, height) = match longest > LONGEST_EDGE {
        true => ((width * LONGEST_EDGE / longest).max(1), (height * LONGEST_EDGE / longest).max(1)),
        false => (width, height),
    };
    u32::try_from((width * height).div_ceil(750)).unwrap_or(UNKNOWN_IMAGE).max(1)
}

/// Tokens of an image given by URL.
pub(crate) fn distant_image_tokens() -> u32 {
    UNKNOWN_IMAGE
}

/// Tokens of a document with this number of base64 digits.
pub(crate) fn document_tokens(digits: usize) -> u32 {
    let pages = (digits / 4 * 3).div_ceil(PAGE_BYTES).max(1);
    u32::try_from(pages.saturating_mul(PAGE_TOKENS)).unwrap_or(u32::MAX)
}

/// Decodes base64 up to the first invalid character.
pub(crate) fn decode(digits: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    let (mut bits, mut n_bits) = (0u32, 0);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push((bits >> n_bits) as u8);
        }
    }
    bytes
}

/// Encodes bytes as base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Width and height from a PNG, GIF, WebP or JPEG header.
fn size(header: &[u8]) -> Option<(u32, u32)> {
    if header.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(header.get(16..20)?), big(header.get(20..24)?)));
    }
    if header.starts_with(b"GIF8") {
        return Some((little(header.get(6..8)?), little(header.get(8..10)?)));
    }
    if header.starts_with(b"RIFF") && header.get(8..12)? == b"WEBP" {
        return webp(header);
    }
    if header.starts_with(b"\xff\xd8") { jpeg(header) } else { None }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn webp(header: &[u8]) -> Option<(u32, u32)> {
    match header.get(12..16)? {
        b"VP8X" => Some((little(header.get(24..27)?) + 1, little(header.get(27..30)?) + 1)),
        b"VP8L" => {
            let bits = little(header.get(21..25)?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((little(header.get(26..28)?) & 0x3fff, little(header.get(28..30)?) & 0x3fff)),
        _ => None,
    }
}

/// Walks the segments to the frame header.
fn jpeg(header: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *header.get(at + 1)?;
        if *header.get(at)? != 0xff {
            return None;
        }
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some((big(header.get(at + 7..at + 9)?), big(header.get(at + 5..at + 7)?)));
        }
        let length = big(header.get(at + 2..at + 4)?) as usize;
        at += 2 + length.max(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], width: u64, height: u64) {
        let expected = (width * height).div_ceil(750).max(1);
        assert_eq!(u64::from(image_tokens(&encode(bytes))), expected, "{bytes:02x?}");
    }

    #[test]
    fn sizes_are_read_from_headers() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\0", 512, 256);
        check(b"GIF89a\x40\x01\xf0\0", 320, 240);
        check(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0", 640, 480);
        check(b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03", 640, 480);
    }

    #[test]
    fn large_images_are_scaled_and_unreadable_ones_use_the_default() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x10\0\0\0\x08\0", 1568, 784);
        for odd in
            [&b"not an image"[..], b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0"]
        {
            assert_eq!(image_tokens(&encode(odd)), UNKNOWN_IMAGE, "{odd:02x?}");
        }
    }

    #[test]
    fn base64_round_trips() {
        for length in 0..10u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(91)).collect();
            assert_eq!(decode(encode(&bytes).as_bytes()), bytes);
        }
    }
}
