//! Figures of one compaction: what it kept of what the agent used next.

use pal_model::{EntryBody, LogEntry};
use pal_view::View;
use serde::Serialize;

use crate::comparison::{RecordedFileTouch, VisibleContent};
use crate::fidelity::next_use::{
    NEXT_CALLS, NEXT_FILE_CALLS, NextUse, WordSet, add_words, count_calls, touches_after, visible_text,
    visible_words,
};
use crate::fidelity::user_constraints::find_constraints;
use crate::replay::texts;

/// First word of the names of our compactions without a model.
pub(crate) const EXTRACTED: &str = "extracted";
/// First word of the names of our compactions by session notes.
pub(crate) const NOTES: &str = "notes";
/// Maximum lost facts that are listed for one compaction.
const EXAMPLES_MAX: usize = 12;

/// Figures of one compaction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CompactionFigures {
    /// Session.
    pub session: String,
    /// Who compacted: a recorded client, a method of this project, or a policy in a replay.
    pub maker: String,
    /// Number of the call that follows, counted from 1.
    pub call: usize,
    /// Calls that follow before the next compaction.
    pub calls_after: usize,
    /// Estimated tokens of the conversation before and after.
    pub tokens: (u64, u64),
    /// Of those after, tokens of the summary itself.
    pub summary_tokens: u64,
    /// Facts that the agent uses within the next 30 calls, and those of them that the new context shows.
    pub facts: (u64, u64),
    /// Characters of files shown before that the agent reads within the next 30 calls, and those of them that the new context lacks.
    pub reread_characters: (u64, u64),
    /// Files shown before that the agent uses within the next 10 calls, and those of them that the new context shows.
    pub files: (u64, u64),
    /// Constraints that the user stated, and those that the new context repeats verbatim.
    pub constraints: (u64, u64),
    /// Distinctive words of the summary, and those that the agent writes before the next compaction.
    pub summary_words: (u64, u64),
    /// Calls until the agent edits a file; none if it never does.
    pub calls_to_edit: Option<u64>,
    /// Growth of the context until the next compaction or the end, in tokens per minute.
    pub tokens_per_minute: Option<f64>,
    /// Facts that were used next and lost.
    pub lost: Vec<String>,
}

/// A point of a recording at which something compacts.
pub(crate) struct CompactionPoint<'a> {
    session: &'a str,
    touches: &'a [RecordedFileTouch],
    /// Calls before.
    calls: usize,
    next: NextUse,
    /// Words used next that the context showed.
    facts: WordSet,
    constraints: Vec<String>,
    tokens_before: u64,
    tokens_per_minute: Option<f64>,
}

impl<'a> CompactionPoint<'a> {
    /// The point in front of the entry at a position, with the view up to there.
    pub(crate) fn new(
        session: &'a str,
        entries: &[LogEntry],
        touches: &'a [RecordedFileTouch],
        at: usize,
        before: &View,
    ) -> CompactionPoint<'a> {
        let is_boundary = entries.get(at).is_some_and(|entry| matches!(entry.body, EntryBody::Boundary(_)));
        let from = if is_boundary { at + 1 } else { at };
        let next = NextUse::after(entries, from);
        let visible = visible_words(before);
        let earlier = entries.get(..at).unwrap_or_default();
        CompactionPoint {
            session,
            touches,
            calls: count_calls(earlier),
            facts: next.words.iter().filter(|word| visible.contains(*word)).cloned().collect(),
            next,
            constraints: find_constraints(earlier),
            tokens_before: conversation_tokens(before),
            tokens_per_minute: growth(entries.get(from..).unwrap_or_default()),
        }
    }

    /// Returns true if the recording goes on behind it.
    pub(crate) fn goes_on(&self) -> bool {
        self.next.calls > 0
    }

    /// Figures of a compaction here that left the context `after`.
    pub(crate) fn figures(&self, maker: &str, after: &View) -> CompactionFigures {
        let words = visible_words(after);
        let mut lost: Vec<String> =
            self.facts.iter().filter(|word| !words.contains(*word)).cloned().collect();
        lost.sort_unstable();
        let kept = self.facts.len() - lost.len();
        lost.truncate(EXAMPLES_MAX);
        let content = VisibleContent::of(after);
        let mut reread_characters = (0, 0);
        let rereads = touches_after(self.touches, self.calls, NEXT_CALLS);
        for touch in rereads.filter(|touch| touch.is_read) {
            reread_characters.0 += touch.characters;
            reread_characters.1 += if content.lacks(touch) { touch.characters } else { 0 };
        }
        let mut files: Vec<(&str, bool)> = Vec::new();
        for touch in touches_after(self.touches, self.calls, NEXT_FILE_CALLS) {
            if !files.iter().any(|(path, _)| *path == touch.path) {
                files.push((&touch.path, !content.lacks(touch)));
            }
        }
        let text = visible_text(after);
        let repeated = self.constraints.iter().filter(|sentence| text.contains(sentence.as_str()));
        let summary = summary_text(after);
        let mut summary_words = WordSet::default();
        add_words(&summary, &mut summary_words);
        let used = summary_words.iter().filter(|word| self.next.words_until_next.contains(*word));
        let estimator = after.estimator();
        CompactionFigures {
            session: self.session.to_owned(),
            maker: maker.to_owned(),
            call: self.calls + 1,
            calls_after: self.next.calls,
            tokens: (self.tokens_before, conversation_tokens(after)),
            summary_tokens: estimator.total(estimator.text(&summary)),
            facts: (self.facts.len() as u64, kept as u64),
            reread_characters,
            files: (files.len() as u64, files.iter().filter(|(_, is_shown)| *is_shown).count() as u64),
            constraints: (self.constraints.len() as u64, repeated.count() as u64),
            summary_words: (summary_words.len() as u64, used.count() as u64),
            calls_to_edit: self.next.calls_to_edit,
            tokens_per_minute: self.tokens_per_minute,
            lost,
        }
    }
}

/// Estimated tokens of a view without its prefix.
fn conversation_tokens(view: &View) -> u64 {
    view.estimator().total(view.visible_entries().map(|shown| shown.tokens).sum())
}

/// Text of the summary in force.
fn summary_text(view: &View) -> String {
    match view.boundary().map(|entry| &entry.body) {
        Some(EntryBody::Boundary(boundary)) => {
            let parts = [&boundary.lead, &boundary.summary];
            parts.into_iter().flat_map(texts).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Growth of the context in tokens per minute, from the first usage reported to the last before the next compaction.
fn growth(entries: &[LogEntry]) -> Option<f64> {
    let is_boundary =
        |entry: &&LogEntry| matches!(&entry.body, EntryBody::Boundary(boundary) if boundary.has_summary());
    let until = entries.iter().take_while(|entry| !is_boundary(entry));
    let mut sizes = until.filter_map(|entry| match &entry.body {
        EntryBody::Response(got) if got.source.is_conversation() && got.usage.has_prompt() => {
            Some((entry.at.milliseconds(), got.usage.context_tokens()))
        }
        _ => None,
    });
    let first = sizes.next()?;
    let last = sizes.last()?;
    let minutes = (last.0 - first.0) as f64 / 60_000.0;
    (minutes >= 1.0).then(|| last.1.saturating_sub(first.1) as f64 / minutes)
}
