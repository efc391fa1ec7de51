//! Deterministic random numbers: the same seed gives the same numbers on every machine.

/// SplitMix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct SeededRng(u64);

impl SeededRng {
    /// Generator seeded by several numbers, such as a seed and a request number.
    pub(crate) fn from_numbers(numbers: &[u64]) -> SeededRng {
        let mut chance = SeededRng(0x9e37_79b9_7f4a_7c15);
        for number in numbers {
            chance.0 ^= number;
            chance.0 = chance.next();
        }
        chance
    }

    /// Next random number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Random number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Random number in 0..1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_seed_and_stay_in_bounds() {
        let draw = |seed| {
            let mut chance = SeededRng::from_numbers(&[seed, 1]);
            (0..1000).map(|_| chance.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        for wanted in 0..10 {
            let times = draw(7).iter().filter(|drawn| **drawn == wanted).count();
            assert!((60..140).contains(&times), "{wanted} came {times} times");
        }
        let mut chance = SeededRng::from_numbers(&[1]);
        assert_eq!(chance.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.fraction())));
    }
}
