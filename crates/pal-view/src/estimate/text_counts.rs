//! Structural counts of a UTF-8 text in one pass.
//!
//! The pass allocates nothing and reads each byte once. A longer text is cut into four lanes that advance
//! together, because one lane alone waits for its own table lookups. Cuts lie behind bytes that leave the
//! state machine in a known state, so lanes never change a count.

use super::byte_classes::{
    CLASS_OF, CLASS_SLOTS, FEATURE_NAMES, FEATURE_OF, FEATURES, NEXT, STATE_SLOTS, ScanState,
};

const LANES: usize = 4;
/// Under this many bytes one lane is as fast as four.
const LANES_FROM_BYTES: usize = 512;

type StateVisits = [u32; STATE_SLOTS];

/// A part of the text and the state before it.
type TextLane<'a> = (&'a [u8], ScanState);

/// Number of occurrences of each structural feature in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextCounts([u32; FEATURES]);

impl TextCounts {
    /// Number of features.
    pub const LEN: usize = FEATURES;
    /// Names of the counts, in order.
    pub const NAMES: [&'static str; FEATURES] = FEATURE_NAMES;

    /// Counts the features of a text.
    pub fn from_text(text: &str) -> TextCounts {
        let mut visits = [[0; STATE_SLOTS]; LANES];
        match lanes(text.as_bytes()) {
            Some(lanes) => count_lanes(lanes, &mut visits),
            None => count_lane(text.as_bytes(), ScanState::START as u8, &mut visits[0]),
        }
        TextCounts::from_visits(&visits)
    }

    /// Counts in one lane, for tests.
    #[cfg(test)]
    pub(super) fn in_one_lane(text: &str) -> TextCounts {
        let mut visits = [[0; STATE_SLOTS]; LANES];
        count_lane(text.as_bytes(), ScanState::START as u8, &mut visits[0]);
        TextCounts::from_visits(&visits)
    }

    fn from_visits(visits: &[StateVisits; LANES]) -> TextCounts {
        let mut counts = [0; FEATURES];
        for (state, feature) in FEATURE_OF.iter().enumerate() {
            if let Some(count) = counts.get_mut(usize::from(*feature)) {
                *count += visits.iter().map(|lane| lane[state]).sum::<u32>();
            }
        }
        TextCounts(counts)
    }

    /// The counts in the order of [`TextCounts::NAMES`].
    pub fn as_array(&self) -> &[u32; FEATURES] {
        &self.0
    }

    /// Weighted sum of all counts.
    pub(super) fn weighted(&self, weights: &[f32; FEATURES]) -> f64 {
        let products = self.0.iter().zip(weights);
        products.map(|(count, weight)| f64::from(*count) * f64::from(*weight)).sum()
    }
}

/// Cuts a text near its quarters; `None` if it is short or has no suitable cut.
fn lanes(bytes: &[u8]) -> Option<[TextLane<'_>; LANES]> {
    if bytes.len() < LANES_FROM_BYTES {
        return None;
    }
    let mut rest = bytes;
    let mut state = ScanState::START;
    let mut lanes = [(bytes, state); LANES];
    for (position, lane) in lanes.iter_mut().enumerate().take(LANES - 1) {
        let at_least = rest.len() / (LANES - position);
        let cut = at_least + memchr::memchr3(b'\n', b',', b'"', &rest[at_least..])?;
        let behind = if rest[cut] == b'\n' { ScanState::START } else { ScanState::PunctuationRun };
        *lane = (&rest[..=cut], state);
        (rest, state) = (&rest[cut + 1..], behind);
    }
    lanes[LANES - 1] = (rest, state);
    Some(lanes)
}

fn count_lanes(lanes: [TextLane<'_>; LANES], visits: &mut [StateVisits; LANES]) {
    let [a, b, c, d] = lanes.map(|(bytes, _)| bytes);
    let mut state = lanes.map(|(_, state)| state as u8);
    let [visits_a, visits_b, visits_c, visits_d] = &mut *visits;
    for (((byte_a, byte_b), byte_c), byte_d) in a.iter().zip(b).zip(c).zip(d) {
        state[0] = advance(state[0], *byte_a, visits_a);
        state[1] = advance(state[1], *byte_b, visits_b);
        state[2] = advance(state[2], *byte_c, visits_c);
        state[3] = advance(state[3], *byte_d, visits_d);
    }
    let together = a.len().min(b.len()).min(c.len()).min(d.len());
    for ((lane, state), visits) in [a, b, c, d].into_iter().zip(state).zip(visits) {
        count_lane(&lane[together..], state, visits);
    }
}

fn count_lane(bytes: &[u8], mut state: u8, visits: &mut StateVisits) {
    for byte in bytes {
        state = advance(state, *byte, visits);
    }
}

#[inline(always)]
fn advance(state: u8, byte: u8, visits: &mut StateVisits) -> u8 {
    let class = usize::from(CLASS_OF[usize::from(byte)]) % CLASS_SLOTS;
    let state = NEXT[usize::from(state) % STATE_SLOTS][class];
    visits[usize::from(state) % STATE_SLOTS] += 1;
    state
}
