//! Ids of earlier messages: a window of ids, and a floor for forgotten ones.
//!
//! Ids sort by creation time. Only the smallest are forgotten, and the largest forgotten one is the floor: an
//! unknown id at or below it may have come before, so it is refused. Nothing is delivered twice, however late
//! it is sent again, and memory stays bounded.

use std::collections::BTreeSet;

use crate::envelope::MessageId;

/// Ids remembered in addition to waiting messages.
pub(crate) const REMEMBERED: usize = 1024;

/// Known ids, except for the smallest.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct KnownIds {
    ids: BTreeSet<MessageId>,
    floor: Option<MessageId>,
}

/// Status of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdStatus {
    /// Certainly new.
    Never,
    /// Certainly known.
    Before,
    /// Older than the window.
    Forgotten,
}

impl KnownIds {
    /// Restores stored ids.
    pub(crate) fn new(ids: impl IntoIterator<Item = MessageId>, floor: Option<MessageId>) -> KnownIds {
        KnownIds { ids: ids.into_iter().collect(), floor }
    }

    /// Looks up an id.
    pub(crate) fn status(&self, id: MessageId) -> IdStatus {
        match () {
            () if self.ids.contains(&id) => IdStatus::Before,
            () if self.floor.is_some_and(|floor| id <= floor) => IdStatus::Forgotten,
            () => IdStatus::Never,
        }
    }

    /// Adds an id.
    pub(crate) fn note(&mut self, id: MessageId) {
        self.ids.insert(id);
    }

    /// Forgets all but the `kept` largest.
    pub(crate) fn trim(&mut self, kept: usize) {
        while self.ids.len() > kept {
            self.floor = self.floor.max(self.ids.pop_first());
        }
    }

    /// Remembered ids, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.ids.iter().copied()
    }

    /// Largest forgotten id.
    pub(crate) fn floor(&self) -> Option<MessageId> {
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::EntryId;

    #[test]
    fn forgotten_ids_are_refused() {
        let id = |number: u128| MessageId::from(EntryId::from_bits(number));
        let mut known = KnownIds::default();
        for number in [10, 30, 20, 40] {
            assert_eq!(known.status(id(number)), IdStatus::Never);
            known.note(id(number));
            assert_eq!(known.status(id(number)), IdStatus::Before);
        }
        known.trim(2);
        let seen: Vec<IdStatus> =
            [10, 15, 20, 25, 30, 40, 50].map(|number| known.status(id(number))).to_vec();
        use IdStatus::{Before, Forgotten, Never};
        assert_eq!(seen, [Forgotten, Forgotten, Forgotten, Never, Before, Before, Never]);
        assert_eq!(KnownIds::new(known.ids(), known.floor()), known);
    }
}
