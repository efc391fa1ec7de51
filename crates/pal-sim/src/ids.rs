//! Ids as the provider makes them, from a seed and a counter: the same conversation gets the same ids.

use crate::chance::Chance;

/// Makes ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    seed: u64,
    made: u64,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Ids {
        Ids { seed, made: 0 }
    }

    /// A number that no other call gives.
    pub(crate) fn number(&mut self) -> u64 {
        self.made += 1;
        Chance::of(&[self.seed, self.made]).next().max(1)
    }

    /// An id such as `msg_01Ab…`.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        self.made += 1;
        let mut chance = Chance::of(&[self.seed, self.made]);
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
            let mut ids = Ids::new(seed);
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
