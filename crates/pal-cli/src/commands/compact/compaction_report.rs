//! Report on a compaction or on its preview.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use pal_context::CompactionRange;
use pal_model::text::{count_noun, group_digits};
use pal_model::{Boundary, EntryId, SummaryAudit};
use pal_report::{TextTable, format_usage, sanitize_lines, wrap_lines};
use pal_view::{View, VisibleEntry};
use serde_json::json;

use crate::failure::Failure;
use crate::summary_client::QuestionTotals;
use crate::terminal_style::{auto_style, yellow};

/// A compaction and its effects.
pub(super) struct CompactionReport<'a> {
    /// The compaction was not applied.
    pub(super) is_preview: bool,
    /// Maximum lines of the summary in a preview.
    pub(super) lines_max: usize,
    pub(super) model: &'a str,
    /// View before the compaction.
    pub(super) before: &'a View,
    /// Requested range.
    pub(super) reach: CompactionRange,
    pub(super) boundary: &'a Boundary,
    pub(super) attempts: &'a [String],
    /// Usage of the model that wrote the summary.
    pub(super) taken: &'a QuestionTotals,
    /// Files that could not be read again, with reasons.
    pub(super) not_read: &'a [(String, String)],
}

/// Messages and their tokens.
#[derive(Default)]
struct MessageGroup {
    messages: usize,
    tokens: u64,
}

/// Number of the message before which the conversation was cut.
struct CutPosition {
    /// As requested.
    asked: usize,
    /// As made: calls and their results stay together.
    made: usize,
}

/// Messages kept and dropped, and files restored.
struct CompactionChange {
    cut: Option<CutPosition>,
    kept: MessageGroup,
    dropped: MessageGroup,
    restored: Vec<(String, u64)>,
}

impl CompactionReport<'_> {
    fn change(&self) -> CompactionChange {
        let after = self.before.with_boundary(self.boundary);
        let is_boundary =
            |shown: &VisibleEntry<'_>| matches!(shown.entry.body, pal_model::EntryBody::Boundary(_));
        let stays: BTreeSet<EntryId> =
            after.visible_entries().filter(|shown| !is_boundary(shown)).map(|shown| shown.entry.id).collect();
        let estimator = self.before.estimator();
        let is_first = |shown: &VisibleEntry<'_>| match self.reach {
            CompactionRange::Whole => false,
            CompactionRange::From(_) => !is_boundary(shown) && !stays.contains(&shown.entry.id),
            CompactionRange::UpTo(_) => stays.contains(&shown.entry.id),
        };
        let cut = match self.reach {
            CompactionRange::Whole => None,
            CompactionRange::From(entry) | CompactionRange::UpTo(entry) => {
                let asked = self.before.visible_entries().position(|shown| shown.entry.id == entry);
                let made = self.before.visible_entries().position(|shown| is_first(&shown));
                asked.zip(made).map(|(asked, made)| CutPosition { asked: asked + 1, made: made + 1 })
            }
        };
        let (mut kept, mut dropped) = (MessageGroup::default(), MessageGroup::default());
        for shown in self.before.visible_entries() {
            let part = if stays.contains(&shown.entry.id) { &mut kept } else { &mut dropped };
            part.messages += 1;
            part.tokens += estimator.total(shown.tokens);
        }
        let restored = self.boundary.restored.blocks().iter().map(|block| {
            let text = block.string("text").unwrap_or_default();
            let heading = text.lines().next().unwrap_or_default().trim_matches(['[', ']']);
            (heading.to_owned(), estimator.total(estimator.text(&text)))
        });
        CompactionChange { cut, kept, dropped, restored: restored.collect() }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let CompactionReport { boundary, taken, .. } = self;
        let change = self.change();
        let title = if self.is_preview { "preview" } else { "compacted" };
        let mut table = TextTable::new(&[title, &self.by_whom()], &[0, 1]);
        let mut row = |name: &str, value: String| table.push_row(vec![name.into(), value]);
        row(
            "context",
            format!("{} → {} tokens", figure(boundary.tokens_before), figure(boundary.tokens_after)),
        );
        if boundary.has_not_shrunk() {
            row("note", String::from(self.growth_note()));
        }
        if let Some(cut) = &change.cut {
            row("cut", cut_line(cut));
        }
        row("summarised", format!("{} messages", figure(boundary.messages_summarised)));
        row("kept", format_group(&change.kept));
        row("dropped", format_group(&change.dropped));
        if let Some(audit) = &boundary.audit {
            audit_rows(audit, &mut row);
        }
        row(
            "cost",
            match taken.questions {
                0 => String::from("none: no model was used"),
                _ => format_usage(&taken.usage, taken.cost),
            },
        );
        table.write(auto_style(), out)?;
        self.print_lists(&change, out)?;
        if self.is_preview {
            self.print_summary(out)?;
        }
        Ok(())
    }

    /// Note on a compaction that did not shrink the context, with the way back.
    fn growth_note(&self) -> &'static str {
        match self.is_preview {
            true => "this would not shrink the context",
            false => "this did not shrink the context; `pal uncompact` takes it back",
        }
    }

    fn by_whom(&self) -> String {
        match self.boundary.method.as_str() {
            "extractive" => String::from("extractive, without a model"),
            how => format!("{how}, by {}", self.model),
        }
    }

    fn print_lists(&self, change: &CompactionChange, out: &mut dyn Write) -> Result<(), Failure> {
        let mut list = |title: &str, items: Vec<String>| -> Result<(), Failure> {
            if !items.is_empty() {
                writeln!(out, "{title}")?;
            }
            for item in items {
                for (at, line) in wrap_lines(&item, 76).iter().enumerate() {
                    writeln!(out, "{}{line}", if at == 0 { "  - " } else { "    " })?;
                }
            }
            Ok(())
        };
        let restored =
            change.restored.iter().map(|(what, tokens)| format!("{what}: {} tokens", group_digits(*tokens)));
        list("restored files:", restored.collect())?;
        list("not restored:", self.not_read())?;
        list("failed attempts:", self.attempts.to_vec())?;
        let invented = self.boundary.audit.iter().flat_map(|audit| &audit.invented);
        list("invented paths in the summary:", invented.cloned().collect())?;
        let words = self.boundary.audit.iter().flat_map(|audit| &audit.invented_words);
        list("words in the summary that the user never wrote:", words.cloned().collect())
    }

    /// Files that could not be read again, grouped by reason.
    fn not_read(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, why) in self.not_read {
            by_reason.entry(why).or_default().push(path);
        }
        let line = |(why, paths): (&str, Vec<&str>)| match paths.as_slice() {
            [path] => format!("{path}: {why}"),
            paths => format!("{}: {why}", count_noun(paths.len(), "file")),
        };
        by_reason.into_iter().map(line).collect()
    }

    fn print_summary(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\n──── summary for the model ────")?;
        let text = sanitize_lines(summary_text(self.boundary).trim_end());
        for line in text.lines().take(self.lines_max) {
            writeln!(out, "{line}")?;
        }
        match text.lines().count().saturating_sub(self.lines_max) {
            0 => writeln!(out, "──── end ────\n")?,
            1 => writeln!(out, "──── 1 more line ────\n")?,
            left => writeln!(out, "──── {} more lines ────\n", group_digits(left as u64))?,
        }
        writeln!(out, "The context is unchanged.")?;
        if self.taken.questions > 0 {
            let note = "The requests for this summary are recorded in the log.";
            writeln!(out, "{}", yellow(note))?;
        }
        Ok(())
    }

    pub(super) fn print_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let CompactionReport { boundary, taken, .. } = self;
        let change = self.change();
        let group = |group: &MessageGroup| json!({"messages": group.messages, "tokens": group.tokens});
        let named = |items: &[(String, u64)]| -> Vec<serde_json::Value> {
            items.iter().map(|(what, tokens)| json!({"what": what, "tokens": tokens})).collect()
        };
        let not_read: Vec<_> =
            self.not_read.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        let report = json!({
            "applied": !self.is_preview, "how": boundary.method, "model": self.model,
            "tokens_before": boundary.tokens_before, "tokens_after": boundary.tokens_after,
            "has_not_shrunk": boundary.has_not_shrunk(),
            "messages_summarised": boundary.messages_summarised,
            "cut_before_message": change.cut.as_ref().map(|cut| cut.made),
            "kept": group(&change.kept), "dropped": group(&change.dropped),
            "restored": named(&change.restored), "not_restored": not_read,
            "audit": boundary.audit, "attempts": self.attempts,
            "questions": taken.questions, "usage": taken.usage, "cost_usd": taken.cost,
            "summary": summary_text(boundary),
        });
        writeln!(out, "{report}")?;
        Ok(())
    }
}

/// Writes the audit as table rows.
fn audit_rows(audit: &SummaryAudit, row: &mut dyn FnMut(&str, String)) {
    row(
        "user messages",
        format!(
            "{}: {} verbatim, {} repaired, {} by pointer",
            audit.user_messages,
            audit.user_messages_verbatim,
            audit.user_messages_repaired,
            audit.user_messages_by_pointer
        ),
    );
    row(
        "edited files",
        format!("{}: {} mentioned, {} added", audit.paths, audit.paths_kept, audit.paths_repaired),
    );
    row(
        "open tasks",
        format!("{}: {} mentioned, {} added", audit.todos, audit.todos_kept, audit.todos_repaired),
    );
    if let Some(kept) = audit.error_kept {
        row("last error", String::from(if kept { "mentioned" } else { "added" }));
    }
    row("invented paths", audit.invented.len().to_string());
    if !audit.invented_words.is_empty() {
        row("invented words", audit.invented_words.len().to_string());
    }
}

fn cut_line(cut: &CutPosition) -> String {
    let CutPosition { asked, made } = cut;
    if asked == made {
        format!("before message {made}")
    } else {
        format!("before message {made}, not {asked}: calls and their results stay together")
    }
}

fn format_group(group: &MessageGroup) -> String {
    match group.messages {
        0 => String::from("nothing"),
        count => format!("{}, about {} tokens", count_noun(count, "message"), group_digits(group.tokens)),
    }
}

fn figure(number: Option<u64>) -> String {
    number.map_or(String::from("–"), group_digits)
}

/// Returns the summary text of a boundary: the provider's own summary, if any, and the message.
fn summary_text(boundary: &Boundary) -> String {
    let blocks = boundary.summary.blocks().iter();
    let texts = blocks.filter_map(|block| block.string("text").or_else(|| block.string("content")));
    texts.collect::<Vec<_>>().join("\n\n")
}
