//! Compactions without a model at a given point of a recording: by this project's engine as it is shipped, or of a given size.

use pal_context::{
    Compaction, CompactionRange, CompactionRequest, CompactionStep, CompactionTrigger, ContextPolicy,
    RestoreSources, SessionNotes, SessionPaths, SummaryMethod,
};
use pal_extract::{ConversationFacts, extractive_summary};
use pal_model::{Boundary, Content, LogEntry, RequestSource};
use pal_view::{Estimator, View, VisiblePart, WindowLimits};

use crate::replay::{recorded_file, texts};

/// A compaction to make.
pub(crate) struct OwnCompaction<'a> {
    pub(crate) policy: &'a ContextPolicy,
    pub(crate) limits: &'a WindowLimits,
    /// Session notes; none for a summary that is extracted.
    pub(crate) notes: Option<SessionNotes>,
    /// Entries of the recording up to this point, for the texts of restored files.
    pub(crate) entries: &'a [LogEntry],
}

impl OwnCompaction<'_> {
    /// Compacts a view; returns the boundary, or none if the engine refuses.
    pub(crate) fn boundary(self, view: &View) -> Option<Boundary> {
        let method = if self.notes.is_some() { SummaryMethod::Notes } else { SummaryMethod::Extractive };
        let order = CompactionRequest {
            trigger: CompactionTrigger::Auto,
            reason: None,
            range: CompactionRange::Whole,
            source: RequestSource::main(),
            instructions: None,
            hook_instructions: None,
            notes: self.notes,
            methods: Some(vec![method]),
            is_attended: true,
            sources: RestoreSources::default(),
            params: Default::default(),
        };
        let paths = SessionPaths {
            directory: String::from("session"),
            transcript: String::from("session/log.jsonl"),
        };
        let mut compaction = Compaction::new(view, order, self.limits, self.policy, &paths);
        loop {
            match compaction.next(view) {
                CompactionStep::ReadFiles(wanted) => compaction
                    .receive_files(wanted.iter().map(|wanted| recorded_file(self.entries, wanted)).collect()),
                CompactionStep::Done(done) => return Some(done.boundary),
                CompactionStep::Ask(_) | CompactionStep::Failed { .. } => return None,
            }
        }
    }
}

/// Estimated tokens of a content's texts.
pub(crate) fn content_tokens(content: &Content, estimator: Estimator) -> u64 {
    estimator.total(texts(content).iter().map(|text| estimator.text(text)).sum())
}

/// An extracted summary of at most `tokens` tokens.
pub(crate) fn summary_of_size(view: &View, tokens: u64) -> Content {
    let shown = view.visible_entries();
    let said = shown.filter(|shown| shown.part == VisiblePart::Content).map(|shown| shown.entry);
    let facts = ConversationFacts::from_entries(said);
    let estimator = view.estimator();
    let mut room = tokens as usize * 4;
    loop {
        let text = extractive_summary(&facts, room);
        let taken = estimator.total(estimator.text(&text));
        if taken <= tokens || room < 200 {
            return Content::from_text(&text);
        }
        room = (room as u64 * tokens / taken.max(1)) as usize * 99 / 100;
    }
}
