//! Two moments of a view compared: which of the blocks that stood in its messages then is the first that does not now.

use crate::rope::Rope;
use crate::view::View;

/// The messages of a view at one moment. Taking them costs two pointers and the blocks of the open turn.
#[derive(Clone, Debug)]
pub struct Moment {
    rope: Rope,
}

/// The first block of an earlier moment that stands otherwise, or no longer, in a later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstChanged {
    /// Its message, counted from 0.
    pub message: u64,
    /// Which block of that message, counted from 0.
    pub block: u64,
    /// Whether nothing stands in its place.
    pub is_gone: bool,
    /// By how many characters what stands there became longer, or shorter.
    pub characters: i64,
}

impl View {
    /// The messages as they are now.
    pub fn moment(&self) -> Moment {
        Moment { rope: self.derived().rope_now(self.lens()) }
    }
}

impl Moment {
    /// What of this moment is not in a later one; none if the later one goes on from it.
    pub fn first_changed(&self, later: &Moment) -> Option<FirstChanged> {
        let mut later = later.rope.pieces();
        let (mut message, mut block) = (0, 0);
        for (at, before) in self.rope.pieces().enumerate() {
            match (at, before.opens) {
                (0, _) => {}
                (_, Some(_)) => (message, block) = (message + 1, 0),
                (_, None) => block += 1,
            }
            let after = later.next();
            if after.is_none_or(|after| after.chain != before.chain) {
                let length = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                let characters = after.map_or(0, |after| length(&after.text)) - length(&before.text);
                return Some(FirstChanged { message, block, is_gone: after.is_none(), characters });
            }
        }
        None
    }
}
