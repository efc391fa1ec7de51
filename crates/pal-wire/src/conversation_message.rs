//! Messages of a conversation: runs of blocks with one role, and their cache breakpoints.

use pal_model::{CacheMode, Role};

use crate::ConversationBlock;

/// Placement of OpenAI's prompt-cache breakpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakpointMode {
    /// No breakpoints: the provider decides, or the model does not support them.
    Never,
    /// At the blocks with a breakpoint.
    Explicit,
    /// At the blocks with a breakpoint and, before them, at the end of each earlier request. The provider looks up cached
    /// prefixes only at the breakpoints of the request, so earlier ones must stay.
    TurnEnds,
}

impl From<CacheMode> for BreakpointMode {
    fn from(caching: CacheMode) -> BreakpointMode {
        match caching {
            CacheMode::Explicit | CacheMode::Automatic => BreakpointMode::Never,
            CacheMode::Hybrid => BreakpointMode::TurnEnds,
        }
    }
}

/// Breakpoint member of a content part, written before its closing brace.
pub(crate) const BREAKPOINT: &str = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;

/// A run of blocks with one role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConversationMessage<'a> {
    pub(crate) role: Role,
    pub(crate) pieces: &'a [ConversationBlock],
    /// True if an earlier request ended with this message, so that its last block has a breakpoint.
    pub(crate) ends_request: bool,
    /// True if breakpoints are encoded at all.
    pub(crate) has_breakpoints: bool,
}

impl ConversationMessage<'_> {
    /// Returns true if the block at index `at` has a breakpoint.
    pub(crate) fn has_breakpoint(&self, at: usize) -> bool {
        self.has_breakpoints
            && self.pieces.get(at).is_some_and(|piece| {
                piece.has_breakpoint || (self.ends_request && at + 1 == self.pieces.len())
            })
    }
}

/// Groups blocks into messages.
pub(crate) fn group_messages(
    pieces: &[ConversationBlock],
    breakpoints: BreakpointMode,
) -> impl Iterator<Item = ConversationMessage<'_>> {
    let last_mark = match breakpoints {
        BreakpointMode::TurnEnds => pieces.iter().rposition(|piece| piece.has_breakpoint).unwrap_or(0),
        BreakpointMode::Never | BreakpointMode::Explicit => 0,
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = pieces.get(start..).filter(|rest| !rest.is_empty())?;
        let more = rest.iter().skip(1).take_while(|piece| piece.starts_message.is_none()).count();
        let (own, behind) = rest.split_at(1 + more);
        start += own.len();
        let role = own.first().and_then(|piece| piece.starts_message).unwrap_or(Role::User);
        let is_answered = behind.first().is_some_and(|next| next.starts_message == Some(Role::Assistant));
        Some(ConversationMessage {
            role,
            pieces: own,
            ends_request: role != Role::Assistant && is_answered && start <= last_mark,
            has_breakpoints: breakpoints != BreakpointMode::Never,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::SharedText;

    /// Notation: `u`, `a` and `s` start a message, `.` continues it, `!` sets a breakpoint on the previous block.
    fn check(breakpoints: BreakpointMode, conversation: &str, expected: &str) {
        let mut pieces: Vec<ConversationBlock> = Vec::new();
        for letter in conversation.chars() {
            let opens = match letter {
                'u' => Some(Role::User),
                'a' => Some(Role::Assistant),
                's' => Some(Role::System),
                '!' => {
                    pieces.last_mut().unwrap().has_breakpoint = true;
                    continue;
                }
                _ => None,
            };
            pieces.push(ConversationBlock {
                starts_message: opens,
                block: SharedText::from("{}"),
                has_breakpoint: false,
            });
        }
        let mut shown = String::new();
        for message in group_messages(&pieces, breakpoints) {
            for at in 0..message.pieces.len() {
                let letter = if at == 0 { &message.role.name()[..1] } else { "." };
                shown.push_str(letter);
                if message.has_breakpoint(at) {
                    shown.push('!');
                }
            }
        }
        assert_eq!(shown, expected, "{conversation}");
    }

    #[test]
    fn earlier_breakpoints_stay_where_requests_ended() {
        check(BreakpointMode::TurnEnds, "u.a.u.a.u.!", "u.!a.u.!a.u.!");
        check(BreakpointMode::TurnEnds, "u.sa.u!", "u.s!a.u!");
        // Content after the last breakpoint varies; without a breakpoint nothing is cached.
        check(BreakpointMode::TurnEnds, "ua.u!.a.u.", "u!a.u!.a.u.");
        check(BreakpointMode::TurnEnds, "ua.u", "ua.u");
        check(BreakpointMode::Explicit, "u.a.u.a.u.!", "u.a.u.a.u.!");
        check(BreakpointMode::Never, "ua.u!", "ua.u");
        check(BreakpointMode::Explicit, ".a!", "ua!");
        check(BreakpointMode::Explicit, "", "");
    }
}
