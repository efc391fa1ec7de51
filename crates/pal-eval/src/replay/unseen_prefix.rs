//! The part of a prompt that a transcript does not contain, with the size the provider counted and the division the recorded client used.
//!
//! Clients set a breakpoint after the part that all their sessions share, not at the end of the prefix. The rest (environment,
//! instruction files) is cached with the messages and written again after a compaction. The recorded cache reads tell where the shared
//! part ends; it becomes the view's placeholder prefix, and the rest precedes the first message.

use pal_model::{
    Content, ContentBlock, EntryBody, EntryDraft, IdSource, LogEntry, ModelCard, PrefixNotes, PromptPrefix,
    SharedText, Timestamp,
};
use pal_view::{Lens, RenderOptions, View};

use crate::replay::recorded_session::RecordedSession;
use crate::replay::replay_provider::ReplayProvider;

/// Placeholder for the part that is cached with the messages.
const LINE: &str = "This line stands in for instructions that the transcript does not hold.\n";
/// Lines, and tokens, by which it is found out how the provider counts.
const SAMPLE: u64 = 4_096;

/// The prefix with an unseen part that fits the recording: of the size that the provider counts, and divided.
pub(crate) fn fitted(
    prefix: &PromptPrefix,
    recorded: &RecordedSession,
    lens: &Lens,
    provider: &mut ReplayProvider,
) -> PromptPrefix {
    // The schemas that the import made up were part of what it did not see.
    let schemas = lens.estimator.json(&prefix.tools) as u64;
    let unseen = prefix.unseen_tokens.min(lens.card.window / 4);
    let shared = shared_tokens(recorded).map_or(unseen, |shared| shared.min(unseen));
    let lines = (unseen - shared) as f64 / line_tokens(&lens.card, provider);
    let mut context: Vec<ContentBlock> = prefix.context.blocks().to_vec();
    if lines >= 1.0 {
        context.push(ContentBlock::text(&LINE.repeat(lines as usize)));
    }
    let shared = shared.saturating_sub(schemas) as f64 / counted_share(lens, provider);
    let notes = PrefixNotes { fills_unseen: true, ..prefix.notes.clone() };
    let context = context.into_iter().collect();
    PromptPrefix { context, unseen_tokens: shared as u64, notes, ..prefix.clone() }
}

/// Tokens of a line, as the provider counts them.
fn line_tokens(card: &ModelCard, provider: &mut ReplayProvider) -> f64 {
    let counted = provider.count(card, &LINE.repeat(SAMPLE as usize));
    counted.map_or(16.0, |counted| (counted as f64 / SAMPLE as f64).max(1.0))
}

/// Provider's count for each token that the view's own stand-in is meant to have.
fn counted_share(lens: &Lens, provider: &mut ReplayProvider) -> f64 {
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from("[]"),
        context: Content::default(),
        unseen_tokens: SAMPLE,
        notes: Default::default(),
    };
    let options = RenderOptions { max_tokens: 1, stream: false, spell_out_unseen: true };
    let Some(view) = prefix_view(&prefix, lens) else { return 1.0 };
    let request = view.render(options);
    let texts = request
        .system_blocks()
        .iter()
        .filter_map(|raw| ContentBlock::parse(raw.clone()).string("text").map(|text| text.into_owned()));
    let counted = provider.count(&lens.card, &texts.collect::<String>());
    counted.map_or(1.0, |counted| (counted as f64 / SAMPLE as f64).clamp(0.25, 4.0))
}

/// A view of nothing but a prefix.
pub(crate) fn prefix_view(prefix: &PromptPrefix, lens: &Lens) -> Option<View> {
    let at = Timestamp::default();
    let entry = EntryDraft::prefix(prefix).into_entry(IdSource::seeded(0).next_id(at), None, at);
    entry.ok().map(|entry| View::from_branch(lens.clone(), [entry]))
}

/// Tokens that the client marked before the messages: what was read right behind a compaction; in a session without
/// one, what its first request found from others.
fn shared_tokens(recorded: &RecordedSession) -> Option<u64> {
    let mut is_fresh = true;
    let mut reads = Vec::new();
    for (at, entry) in recorded.entries().iter().enumerate() {
        is_fresh |= begins_anew(entry);
        if let Some(called) = recorded.call(at)
            && std::mem::take(&mut is_fresh)
        {
            reads.extend(called.usage.as_ref().map(|usage| usage.cache_read_input_tokens));
        }
    }
    let (first, later) = reads.split_first()?;
    let smallest = later.iter().copied().filter(|read| *read > 0).min();
    smallest.or(Some(*first)).filter(|read| *read > 0)
}

fn begins_anew(entry: &LogEntry) -> bool {
    matches!(&entry.body, EntryBody::Boundary(boundary) if boundary.has_summary())
}
