//! The conversation as a request of its own, for a summary that no fork gives (§4.4, §4.7, §4.8): another system prompt,
//! no tools, no pictures, no thinking, and, where it is too long, without its oldest rounds.

use pal_model::{Body, Boundary, Content, Draft, Entry, EntryId, Prefix, Text, ThinkingKinds, Timestamp};
use pal_view::{Lens, Shown, View};

/// The conversation with its oldest `dropped` rounds left out. What a boundary carried stays: it stands for more than any
/// round does.
pub(crate) fn plain_view(view: &View, shown: &[Shown<'_>], dropped: usize, system: &str) -> View {
    let mut card = view.lens().card.clone();
    card.can.images = false;
    card.can.documents = false;
    // Behind another system prompt the provider's own summary is told in words.
    card.can.provider_compaction = false;
    card.thinking = ThinkingKinds::default();
    let lens = Lens { card, ..view.lens().clone() };
    let first_round = shown.first().map_or(0, |shown| shown.round);
    let mut entries: Vec<Entry> = prefix(system).into_iter().collect();
    // What an earlier boundary carries comes first, wherever it stood: what it keeps would be hidden before it.
    let boundary = shown.iter().find_map(|shown| match &shown.entry.body {
        Body::Boundary(boundary) => Some((shown.entry, boundary)),
        _ => None,
    });
    if let Some((entry, boundary)) = boundary {
        let boundary = Boundary { preserved: None, restored: Content::default(), ..(**boundary).clone() };
        entries.push(Entry { body: Body::Boundary(Box::new(boundary)), ..entry.clone() });
    }
    for shown in shown {
        match &shown.entry.body {
            // What is put back afterwards need not be summarised.
            Body::Attachment(_) | Body::Boundary(_) => {}
            _ if shown.round >= first_round + dropped => entries.push(shown.entry.clone()),
            _ => {}
        }
    }
    let decisions = view.branch().iter().filter(|entry| matches!(entry.body, Body::Decision(_)));
    entries.extend(decisions.cloned());
    View::of(lens, entries)
}

fn prefix(system: &str) -> Option<Entry> {
    let system: Text = Text::from(format!("[{}]", pal_model::Block::text(system).raw()));
    let prefix = Prefix {
        system,
        tools: Text::from("[]"),
        context: Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    let at = Timestamp::from_milliseconds(0);
    Draft::prefix(&prefix).into_entry(EntryId::from_bits(u128::MAX), None, at).ok()
}

/// How many rounds must go, oldest first, so that `gap` tokens are freed; none if all of them are not enough.
pub(crate) fn rounds_for(shown: &[Shown<'_>], dropped: usize, gap: f64) -> Option<usize> {
    let first = shown.first()?.round;
    let last = shown.last()?.round;
    let mut freed = 0.0;
    for round in first + dropped..last {
        let of_round = shown
            .iter()
            .filter(|shown| shown.round == round && !matches!(shown.entry.body, Body::Boundary(_)));
        freed += of_round.fold(0.0, |sum, shown| sum + shown.tokens);
        if freed >= gap {
            return Some(round + 1 - first);
        }
    }
    None
}
