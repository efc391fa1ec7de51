//! Line checksums: the last field of a line is the XXH3-64 hash of all bytes before it.
//!
//! Lines without a checksum, as earlier versions and importers write them, stay valid but cannot be verified.
//! A checksum detects damage, not forgery: it has no key.

use xxhash_rust::xxh3::xxh3_64;

/// Start of the checksum field.
const FIELD: &[u8] = b",\"checksum\":\"";
const DIGITS: usize = 16;
/// Length of the field with the closing brace of the line.
const SEAL_BYTES: usize = FIELD.len() + DIGITS + 2;
/// Wrong bytes up to which the field counts as a damaged checksum instead of as none.
const DAMAGED_BYTES_MAX: usize = 2;

/// Result of verifying a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChecksumState {
    /// The line has no checksum.
    Absent,
    /// The line matches its checksum.
    Intact,
    /// The line or its checksum was altered.
    Broken,
}

/// Adds the checksum to a line that is a JSON object without line end. Leaves anything else as it is.
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

/// Verifies a line, given without its line end.
pub(crate) fn verify(line: &[u8]) -> ChecksumState {
    let Some(start) = line.len().checked_sub(SEAL_BYTES) else { return ChecksumState::Absent };
    let (content, found) = line.split_at(start);
    let (field, rest) = found.split_at(FIELD.len());
    let (digits, end) = rest.split_at(DIGITS);
    let wrong = |found: &[u8], expected: &[u8]| found.iter().zip(expected).filter(|(a, b)| a != b).count();
    let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let damaged =
        wrong(field, FIELD) + wrong(end, b"\"}") + digits.iter().filter(|byte| !is_digit(byte)).count();
    match damaged {
        0 if *digits == *format!("{:016x}", xxh3_64(content)).as_bytes() => ChecksumState::Intact,
        0..=DAMAGED_BYTES_MAX => ChecksumState::Broken,
        _ => ChecksumState::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_breaks_the_checksum() {
        let mut line = String::from(r#"{"v":1,"id":"a","content":"some text"}"#);
        assert_eq!(verify(line.as_bytes()), ChecksumState::Absent, "an old line");
        seal(&mut line);
        assert_eq!(verify(line.as_bytes()), ChecksumState::Intact);
        assert!(serde_free_is_object(&line));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert_eq!(verify(&bytes), ChecksumState::Broken, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn only_objects_get_a_checksum() {
        for text in ["", "one", "{}", "[1]"] {
            let mut line = text.to_owned();
            seal(&mut line);
            assert_eq!(line, text);
        }
    }

    fn serde_free_is_object(line: &str) -> bool {
        pal_model::object_fields(line).is_ok_and(|fields| fields.iter().any(|(name, _)| name == "checksum"))
    }
}
