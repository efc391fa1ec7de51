//! The messages of a conversation: runs of blocks under one role, with the places where the cache shall remember.

use pal_model::{Caching, Role};

use crate::Piece;

/// Where a request asks OpenAI's cache to remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breakpoints {
    /// Nowhere: the provider decides, or the model does not take breakpoints.
    Never,
    /// At the marked blocks.
    Given,
    /// At the marked blocks, and before them wherever a request of this conversation ended: that provider looks for
    /// what it remembers at the breakpoints of the request alone, so earlier ones have to stay.
    Turns,
}

impl From<Caching> for Breakpoints {
    fn from(caching: Caching) -> Breakpoints {
        match caching {
            Caching::Marks | Caching::Automatic => Breakpoints::Never,
            Caching::Breakpoints => Breakpoints::Turns,
        }
    }
}

/// Asks the cache to remember everything up to a content part; stands before the part's last character.
pub(crate) const BREAKPOINT: &str = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;

/// A run of blocks under one role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// Whose it is.
    pub(crate) role: Role,
    /// Its blocks.
    pub(crate) pieces: &'a [Piece],
    /// Whether its last block carries a mark because a request ended there.
    pub(crate) ends_request: bool,
    /// Whether breakpoints are spelled at all.
    pub(crate) has_breakpoints: bool,
}

impl Message<'_> {
    /// Whether the cache shall remember everything up to a block.
    pub(crate) fn is_marked(&self, at: usize) -> bool {
        self.has_breakpoints
            && self
                .pieces
                .get(at)
                .is_some_and(|piece| piece.is_marked || (self.ends_request && at + 1 == self.pieces.len()))
    }
}

/// The messages that blocks make up.
pub(crate) fn messages(pieces: &[Piece], breakpoints: Breakpoints) -> impl Iterator<Item = Message<'_>> {
    let last_mark = match breakpoints {
        Breakpoints::Turns => pieces.iter().rposition(|piece| piece.is_marked).unwrap_or(0),
        Breakpoints::Never | Breakpoints::Given => 0,
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = pieces.get(start..).filter(|rest| !rest.is_empty())?;
        let more = rest.iter().skip(1).take_while(|piece| piece.opens.is_none()).count();
        let (own, behind) = rest.split_at(1 + more);
        start += own.len();
        let role = own.first().and_then(|piece| piece.opens).unwrap_or(Role::User);
        let is_answered = behind.first().is_some_and(|next| next.opens == Some(Role::Assistant));
        Some(Message {
            role,
            pieces: own,
            ends_request: role != Role::Assistant && is_answered && start <= last_mark,
            has_breakpoints: breakpoints != Breakpoints::Never,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::Text;

    /// Blocks as letters: `u`, `a` and `s` open a message, `.` continues it, and `!` marks the one before.
    fn check(breakpoints: Breakpoints, conversation: &str, expected: &str) {
        let mut pieces: Vec<Piece> = Vec::new();
        for letter in conversation.chars() {
            let opens = match letter {
                'u' => Some(Role::User),
                'a' => Some(Role::Assistant),
                's' => Some(Role::System),
                '!' => {
                    pieces.last_mut().unwrap().is_marked = true;
                    continue;
                }
                _ => None,
            };
            pieces.push(Piece { opens, block: Text::from("{}"), is_marked: false });
        }
        let mut shown = String::new();
        for message in messages(&pieces, breakpoints) {
            for at in 0..message.pieces.len() {
                let letter = if at == 0 { &message.role.name()[..1] } else { "." };
                shown.push_str(letter);
                if message.is_marked(at) {
                    shown.push('!');
                }
            }
        }
        assert_eq!(shown, expected, "{conversation}");
    }

    #[test]
    fn earlier_breakpoints_stay_where_requests_ended() {
        check(Breakpoints::Turns, "u.a.u.a.u.!", "u.!a.u.!a.u.!");
        check(Breakpoints::Turns, "u.sa.u!", "u.s!a.u!");
        // Behind the last mark is what varies, and without any mark nothing is to be remembered.
        check(Breakpoints::Turns, "ua.u!.a.u.", "u!a.u!.a.u.");
        check(Breakpoints::Turns, "ua.u", "ua.u");
        check(Breakpoints::Given, "u.a.u.a.u.!", "u.a.u.a.u.!");
        check(Breakpoints::Never, "ua.u!", "ua.u");
        check(Breakpoints::Given, ".a!", "ua!");
        check(Breakpoints::Given, "", "");
    }
}
