//! The conversation as a separate request, for a summary that no fork gives (§4.4, §4.7, §4.8): another
//! system prompt, no tools, no images, no thinking, and, if it is too long, without its oldest rounds.

use pal_model::{
    Boundary, Content, EntryBody, EntryDraft, EntryId, LogEntry, PromptPrefix, SharedText, ThinkingModes,
    Timestamp,
};
use pal_view::{Lens, View, VisibleEntry};

/// Builds the view for a model without the oldest `dropped` rounds. Content carried by a boundary stays.
pub(crate) fn plain_view(
    view: &View,
    lens: &Lens,
    shown: &[VisibleEntry<'_>],
    dropped: usize,
    system: &str,
) -> View {
    let mut card = lens.card.clone();
    card.can.images = false;
    card.can.documents = false;
    // Behind another system prompt the provider's own summary is sent as text.
    card.can.provider_compaction = false;
    card.thinking = ThinkingModes::default();
    let lens = Lens { card, ..lens.clone() };
    let first_round = shown.first().map_or(0, |shown| shown.round);
    let mut entries: Vec<LogEntry> = prefix(system).into_iter().collect();
    // Content carried by an earlier boundary comes first: otherwise the boundary would hide the kept messages
    // before it.
    let boundary = shown.iter().find_map(|shown| match &shown.entry.body {
        EntryBody::Boundary(boundary) => Some((shown.entry, boundary)),
        _ => None,
    });
    if let Some((entry, boundary)) = boundary {
        let boundary = Boundary { preserved: None, restored: Content::default(), ..(**boundary).clone() };
        entries.push(LogEntry { body: EntryBody::Boundary(Box::new(boundary)), ..entry.clone() });
    }
    for shown in shown {
        match &shown.entry.body {
            // Content that is restored afterwards need not be summarized.
            EntryBody::Attachment(_) | EntryBody::Boundary(_) => {}
            _ if shown.round >= first_round + dropped => entries.push(shown.entry.clone()),
            _ => {}
        }
    }
    let decisions = view.branch().iter().filter(|entry| matches!(entry.body, EntryBody::Decision(_)));
    entries.extend(decisions.cloned());
    View::from_branch(lens, entries)
}

fn prefix(system: &str) -> Option<LogEntry> {
    let system: SharedText = SharedText::from(format!("[{}]", pal_model::ContentBlock::text(system).raw()));
    let prefix = PromptPrefix {
        system,
        tools: SharedText::from("[]"),
        context: Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    let at = Timestamp::from_milliseconds(0);
    EntryDraft::prefix(&prefix).into_entry(EntryId::from_bits(u128::MAX), None, at).ok()
}

/// Number of rounds to drop, oldest first, to free `gap` tokens; `None` if all of them are not enough.
pub(crate) fn rounds_for(shown: &[VisibleEntry<'_>], dropped: usize, gap: f64) -> Option<usize> {
    let first = shown.first()?.round;
    let last = shown.last()?.round;
    let mut freed = 0.0;
    for round in first + dropped..last {
        let of_round = shown
            .iter()
            .filter(|shown| shown.round == round && !matches!(shown.entry.body, EntryBody::Boundary(_)));
        freed += of_round.fold(0.0, |sum, shown| sum + shown.tokens);
        if freed >= gap {
            return Some(round + 1 - first);
        }
    }
    None
}
