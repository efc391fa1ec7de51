//! One pass over UTF-8 text that yields the structural counts.
//!
//! The pass allocates nothing and looks at each byte once. A text with enough lines is cut behind line feeds into
//! four lanes that advance together, because one lane alone waits for its own table lookups.

use super::machine::{CLASS_OF, CLASS_SLOTS, FEATURE_NAMES, FEATURE_OF, FEATURES, NEXT, STATE_SLOTS, State};

const LANES: usize = 4;
/// Under this many bytes one lane is as fast as four.
const LANES_FROM_BYTES: usize = 512;

type Visits = [u32; STATE_SLOTS];

/// How often each structural feature occurs in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts([u32; FEATURES]);

impl Counts {
    /// Number of features.
    pub const LEN: usize = FEATURES;
    /// What each count stands for, in order.
    pub const NAMES: [&'static str; FEATURES] = FEATURE_NAMES;

    /// Counts the features of a text.
    pub fn of(text: &str) -> Counts {
        let bytes = text.as_bytes();
        let mut visits = [[0; STATE_SLOTS]; LANES];
        match lanes(bytes) {
            Some(lanes) => count_lanes(lanes, &mut visits),
            None => {
                count_lane(bytes, State::START as u8, &mut visits[0]);
            }
        }
        let mut counts = [0; FEATURES];
        for (state, feature) in FEATURE_OF.iter().enumerate() {
            if let Some(count) = counts.get_mut(usize::from(*feature)) {
                *count += visits.iter().map(|lane| lane[state]).sum::<u32>();
            }
        }
        Counts(counts)
    }

    /// The counts in the order of [`Counts::NAMES`].
    pub fn as_array(&self) -> &[u32; FEATURES] {
        &self.0
    }

    /// The sum of all counts, each times its weight.
    pub(super) fn weighted(&self, weights: &[f32; FEATURES]) -> f64 {
        let products = self.0.iter().zip(weights);
        products.map(|(count, weight)| f64::from(*count) * f64::from(*weight)).sum()
    }
}

/// Cuts a text behind line feeds near its quarters; none when it is short or has no such places.
fn lanes(bytes: &[u8]) -> Option<[&[u8]; LANES]> {
    if bytes.len() < LANES_FROM_BYTES {
        return None;
    }
    let mut rest = bytes;
    let mut lanes = [bytes; LANES];
    for (position, lane) in lanes.iter_mut().enumerate().take(LANES - 1) {
        let at_least = rest.len() / (LANES - position);
        let cut = at_least + memchr::memchr(b'\n', &rest[at_least..])? + 1;
        (*lane, rest) = rest.split_at(cut);
    }
    lanes[LANES - 1] = rest;
    Some(lanes)
}

fn count_lanes(lanes: [&[u8]; LANES], visits: &mut [Visits; LANES]) {
    let [a, b, c, d] = lanes;
    let [visits_a, visits_b, visits_c, visits_d] = visits;
    let mut state = [State::START as u8; LANES];
    for (((byte_a, byte_b), byte_c), byte_d) in a.iter().zip(b).zip(c).zip(d) {
        state[0] = advance(state[0], *byte_a, visits_a);
        state[1] = advance(state[1], *byte_b, visits_b);
        state[2] = advance(state[2], *byte_c, visits_c);
        state[3] = advance(state[3], *byte_d, visits_d);
    }
    let together = lanes.iter().map(|lane| lane.len()).min().unwrap_or(0);
    for ((lane, state), visits) in lanes.into_iter().zip(state).zip(visits) {
        count_lane(&lane[together..], state, visits);
    }
}

fn count_lane(bytes: &[u8], mut state: u8, visits: &mut Visits) {
    for byte in bytes {
        state = advance(state, *byte, visits);
    }
}

#[inline(always)]
fn advance(state: u8, byte: u8, visits: &mut Visits) -> u8 {
    let class = usize::from(CLASS_OF[usize::from(byte)]) % CLASS_SLOTS;
    let state = NEXT[usize::from(state) % STATE_SLOTS][class];
    visits[usize::from(state) % STATE_SLOTS] += 1;
    state
}
