//! Seeds of entry ids: one session always gets the same ids, however far its file has grown.

use crate::session_format::SessionFormat;

/// Seed from the identity of a session: its agent, its id, and the first line of its file, which an agent only appends to.
/// A session without an id is identified by all its bytes.
pub(crate) fn session_seed(source: &[u8], format: SessionFormat, foreign_id: Option<&str>) -> u64 {
    let Some(id) = foreign_id else { return fingerprint(source) };
    let first_line = match format {
        // One object that is rewritten as it grows.
        SessionFormat::Gemini | SessionFormat::MiniSweAgent => &[][..],
        _ => source
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty())
            .unwrap_or(&[]),
    };
    let mut identity = format!("{}\0{id}\0", format.program()).into_bytes();
    identity.extend_from_slice(first_line);
    fingerprint(&identity)
}

/// Hash of all bytes of the source, equal on every machine. Four words at a time, each in its own lane.
pub(crate) fn fingerprint(source: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(ODD).rotate_left(29);
    let mut lanes = [1u64, 2, 3, 4];
    let (words, rest) = source.as_chunks::<8>();
    let (groups, single) = words.as_chunks::<4>();
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let hash = lanes.into_iter().fold(source.len() as u64, mix);
    let hash = single.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_stays_while_a_file_grows() {
        let seed = |source: &[u8], id| session_seed(source, SessionFormat::Claude, id);
        assert_eq!(seed(b"one\n", Some("s")), seed(b"\none\ntwo\n", Some("s")));
        assert_ne!(seed(b"one\n", Some("s")), seed(b"one\n", Some("t")));
        assert_ne!(
            seed(b"one\n", Some("s")),
            seed(b"other\n", Some("s")),
            "a subagent has the id of its parent"
        );
        assert_ne!(seed(b"one\n", None), seed(b"one\ntwo\n", None));
    }

    #[test]
    fn fingerprint_depends_on_every_byte() {
        let source = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ!";
        for at in 0..source.len() {
            let mut other = *source;
            other[at] ^= 1;
            assert_ne!(fingerprint(source), fingerprint(&other));
        }
    }
}
