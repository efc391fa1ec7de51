//! Checksums of lines: the last field of a line is the XXH3-64 hash of all bytes before it.
//!
//! Lines without one, which earlier versions and importers write, stay valid; nothing can be said about them. A checksum
//! finds damage, not forgery: it has no key.

use xxhash_rust::xxh3::xxh3_64;

/// How the field begins.
const FIELD: &[u8] = b",\"checksum\":\"";
const DIGITS: usize = 16;
/// Length of the field with the brace that closes the line.
const SEAL_BYTES: usize = FIELD.len() + DIGITS + 2;
/// Bytes of the field that may be wrong for it still to count as a damaged one, rather than as none.
const DAMAGED_BYTES_MAX: usize = 2;

/// What the checksum of a line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seal {
    /// The line has none.
    Absent,
    /// The line is as it was written.
    Intact,
    /// The line, or its checksum, was altered.
    Broken,
}

/// Adds the checksum to a line that is a JSON object without line end. Anything else stays as it is.
pub(crate) fn seal(line: &mut String) {
    if !line.starts_with("{\"") || !line.ends_with('}') {
        return;
    }
    line.pop();
    let hash = xxh3_64(line.as_bytes());
    // Only ASCII is added.
    line.push_str(",\"checksum\":\"");
    line.push_str(&format!("{hash:016x}\"}}"));
}

/// Compares a line, given without its line end, with its checksum.
pub(crate) fn verify(line: &[u8]) -> Seal {
    let Some(start) = line.len().checked_sub(SEAL_BYTES) else { return Seal::Absent };
    let (content, found) = line.split_at(start);
    let (field, rest) = found.split_at(FIELD.len());
    let (digits, end) = rest.split_at(DIGITS);
    let wrong = |found: &[u8], expected: &[u8]| found.iter().zip(expected).filter(|(a, b)| a != b).count();
    let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let damaged =
        wrong(field, FIELD) + wrong(end, b"\"}") + digits.iter().filter(|byte| !is_digit(byte)).count();
    match damaged {
        0 if *digits == *format!("{:016x}", xxh3_64(content)).as_bytes() => Seal::Intact,
        0..=DAMAGED_BYTES_MAX => Seal::Broken,
        _ => Seal::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_sealed_line_is_noticed() {
        let mut line = String::from(r#"{"v":1,"id":"a","content":"some text"}"#);
        assert_eq!(verify(line.as_bytes()), Seal::Absent, "an old line");
        seal(&mut line);
        assert_eq!(verify(line.as_bytes()), Seal::Intact);
        assert!(serde_free_is_object(&line));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert_eq!(verify(&bytes), Seal::Broken, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn what_is_no_object_is_not_sealed() {
        for text in ["", "one", "{}", "[1]"] {
            let mut line = text.to_owned();
            seal(&mut line);
            assert_eq!(line, text);
        }
    }

    fn serde_free_is_object(line: &str) -> bool {
        pal_model::fields(line).is_ok_and(|fields| fields.iter().any(|(name, _)| name == "checksum"))
    }
}
