//! Provider ids from a seed and a counter: equal conversations get equal ids.

use crate::seeded_rng::SeededRng;

/// Generates ids.
#[derive(Clone, Debug)]
pub(crate) struct IdGenerator {
    seed: u64,
    made: u64,
}

impl IdGenerator {
    pub(crate) fn new(seed: u64) -> IdGenerator {
        IdGenerator { seed, made: 0 }
    }

    /// Unique nonzero number.
    pub(crate) fn number(&mut self) -> u64 {
        self.made += 1;
        SeededRng::from_numbers(&[self.seed, self.made]).next().max(1)
    }

    /// Id such as `msg_01Ab…`.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        self.made += 1;
        let mut chance = SeededRng::from_numbers(&[self.seed, self.made]);
        let mut id = format!("{prefix}_01");
        id.extend((0..22).map(|_| char::from(DIGITS[chance.below(DIGITS.len())])));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_follow_from_the_seed() {
        let make = |seed| {
            let mut ids = IdGenerator::new(seed);
            (0..100).map(|_| ids.id("msg")).collect::<Vec<_>>()
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        let mut sorted = make(1);
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 100);
        assert!(sorted.iter().all(|id| id.len() == 28 && id.starts_with("msg_01")));
    }
}
