//! Which messages came before: a window of ids, and a floor for those that were forgotten.
//!
//! Ids sort by the time that they were made at. Only the smallest are forgotten, and the largest of those is the
//! floor: an id at or under it that is not remembered may have come before or not, so it is refused rather than
//! guessed at. So nothing comes twice, however late it is sent again, and the memory stays bounded.

use std::collections::BTreeSet;

use crate::message::MessageId;

/// How many ids are remembered beyond those that are still waiting.
pub(crate) const REMEMBERED: usize = 1024;

/// The ids that came, but for the smallest.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    ids: BTreeSet<MessageId>,
    floor: Option<MessageId>,
}

/// What is known about an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// It never came.
    Never,
    /// It came before.
    Before,
    /// It is older than what is remembered.
    Forgotten,
}

impl Known {
    /// From what was written down.
    pub(crate) fn new(ids: impl IntoIterator<Item = MessageId>, floor: Option<MessageId>) -> Known {
        Known { ids: ids.into_iter().collect(), floor }
    }

    /// Whether this id came.
    pub(crate) fn look(&self, id: MessageId) -> Seen {
        match () {
            () if self.ids.contains(&id) => Seen::Before,
            () if self.floor.is_some_and(|floor| id <= floor) => Seen::Forgotten,
            () => Seen::Never,
        }
    }

    /// It came.
    pub(crate) fn note(&mut self, id: MessageId) {
        self.ids.insert(id);
    }

    /// Forgets all but the largest.
    pub(crate) fn trim(&mut self, kept: usize) {
        while self.ids.len() > kept {
            self.floor = self.floor.max(self.ids.pop_first());
        }
    }

    /// The ids that are remembered.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.ids.iter().copied()
    }

    /// The largest that was forgotten.
    pub(crate) fn floor(&self) -> Option<MessageId> {
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::EntryId;

    #[test]
    fn what_is_forgotten_is_refused_and_never_new() {
        let id = |number: u128| MessageId::from(EntryId::from_bits(number));
        let mut known = Known::default();
        for number in [10, 30, 20, 40] {
            assert_eq!(known.look(id(number)), Seen::Never);
            known.note(id(number));
            assert_eq!(known.look(id(number)), Seen::Before);
        }
        known.trim(2);
        let seen: Vec<Seen> = [10, 15, 20, 25, 30, 40, 50].map(|number| known.look(id(number))).to_vec();
        use Seen::{Before, Forgotten, Never};
        assert_eq!(seen, [Forgotten, Forgotten, Forgotten, Never, Before, Before, Never]);
        assert_eq!(Known::new(known.ids(), known.floor()), known);
    }
}
