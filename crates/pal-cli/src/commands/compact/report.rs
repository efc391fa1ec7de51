//! What came of a compaction, or would.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use pal_context::Reach;
use pal_model::{Audit, Boundary, EntryId};
use pal_view::{Shown, View};
use serde_json::json;

use crate::colour::wrapped;
use crate::errands::Taken;
use crate::failure::Failure;
use crate::table::{Table, counted, harmless_lines, thousands, usage_line, yellow};

/// What came of a compaction.
pub(super) struct Report<'a> {
    /// Whether it only would.
    pub(super) is_preview: bool,
    /// Lines of the summary that a preview shows at most.
    pub(super) lines_max: usize,
    pub(super) model: &'a str,
    /// The view before.
    pub(super) before: &'a View,
    /// What was asked for.
    pub(super) reach: Reach,
    pub(super) boundary: &'a Boundary,
    pub(super) attempts: &'a [String],
    /// What models took that were asked.
    pub(super) taken: &'a Taken,
    /// Files that were wanted and not read, and why.
    pub(super) not_read: &'a [(String, String)],
}

/// Messages and what they take.
#[derive(Default)]
struct Part {
    messages: usize,
    tokens: u64,
}

/// Where the conversation was cut: before the message with this number.
struct Cut {
    /// Where it was asked for.
    asked: usize,
    /// Where it was possible without parting what belongs together.
    made: usize,
}

/// What stays, what goes, what comes back.
struct Change {
    cut: Option<Cut>,
    kept: Part,
    dropped: Part,
    restored: Vec<(String, u64)>,
}

impl Report<'_> {
    fn change(&self) -> Change {
        let after = self.before.with_boundary(self.boundary);
        let is_boundary = |shown: &Shown<'_>| matches!(shown.entry.body, pal_model::Body::Boundary(_));
        let stays: BTreeSet<EntryId> =
            after.shown().filter(|shown| !is_boundary(shown)).map(|shown| shown.entry.id).collect();
        let estimator = self.before.estimator();
        let is_first = |shown: &Shown<'_>| match self.reach {
            Reach::Whole => false,
            Reach::From(_) => !is_boundary(shown) && !stays.contains(&shown.entry.id),
            Reach::UpTo(_) => stays.contains(&shown.entry.id),
        };
        let cut = match self.reach {
            Reach::Whole => None,
            Reach::From(entry) | Reach::UpTo(entry) => {
                let asked = self.before.shown().position(|shown| shown.entry.id == entry);
                let made = self.before.shown().position(|shown| is_first(&shown));
                asked.zip(made).map(|(asked, made)| Cut { asked: asked + 1, made: made + 1 })
            }
        };
        let (mut kept, mut dropped) = (Part::default(), Part::default());
        for shown in self.before.shown() {
            let part = if stays.contains(&shown.entry.id) { &mut kept } else { &mut dropped };
            part.messages += 1;
            part.tokens += estimator.total(shown.tokens);
        }
        let restored = self.boundary.restored.blocks().iter().map(|block| {
            let text = block.string("text").unwrap_or_default();
            let heading = text.lines().next().unwrap_or_default().trim_matches(['[', ']']);
            (heading.to_owned(), estimator.total(estimator.text(&text)))
        });
        Change { cut, kept, dropped, restored: restored.collect() }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Report { boundary, taken, .. } = self;
        let change = self.change();
        let title = if self.is_preview { "preview" } else { "compacted" };
        let mut table = Table::new(&[title, &self.by_whom()], &[0, 1]);
        let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
        row(
            "context",
            format!("{} → {} tokens", figure(boundary.tokens_before), figure(boundary.tokens_after)),
        );
        if let Some(cut) = &change.cut {
            row("cut", cut_line(cut));
        }
        row("summarised", format!("{} messages", figure(boundary.messages_summarised)));
        row("kept", part(&change.kept));
        row("dropped from sight", part(&change.dropped));
        if let Some(audit) = &boundary.audit {
            audit_rows(audit, &mut row);
        }
        row(
            "cost",
            match taken.questions {
                0 => String::from("none: no model was asked"),
                _ => usage_line(&taken.usage, taken.cost),
            },
        );
        table.write(out)?;
        self.print_lists(&change, out)?;
        if self.is_preview {
            self.print_summary(out)?;
        }
        Ok(())
    }

    fn by_whom(&self) -> String {
        match self.boundary.how.as_str() {
            "extractive" => String::from("extractive, without a model"),
            how => format!("{how}, by {}", self.model),
        }
    }

    fn print_lists(&self, change: &Change, out: &mut dyn Write) -> Result<(), Failure> {
        let mut list = |title: &str, items: Vec<String>| -> Result<(), Failure> {
            if !items.is_empty() {
                writeln!(out, "{title}")?;
            }
            for item in items {
                for (at, line) in wrapped(&item, 76).iter().enumerate() {
                    writeln!(out, "{}{line}", if at == 0 { "  - " } else { "    " })?;
                }
            }
            Ok(())
        };
        let restored =
            change.restored.iter().map(|(what, tokens)| format!("{what}: {} tokens", thousands(*tokens)));
        list("put back into sight:", restored.collect())?;
        list("not put back:", self.not_read())?;
        list("tried before:", self.attempts.to_vec())?;
        let invented = self.boundary.audit.iter().flat_map(|audit| &audit.invented);
        list("paths in the summary that nobody ever mentioned:", invented.cloned().collect())
    }

    /// Files that could not be read again, those with one reason together.
    fn not_read(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, why) in self.not_read {
            by_reason.entry(why).or_default().push(path);
        }
        let line = |(why, paths): (&str, Vec<&str>)| match paths.as_slice() {
            [path] => format!("{path}: {why}"),
            paths => format!("{}: {why}", counted(paths.len(), "file")),
        };
        by_reason.into_iter().map(line).collect()
    }

    fn print_summary(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\n──── what the model would read ────")?;
        let text = harmless_lines(summary_text(self.boundary).trim_end());
        for line in text.lines().take(self.lines_max) {
            writeln!(out, "{line}")?;
        }
        match text.lines().count().saturating_sub(self.lines_max) {
            0 => writeln!(out, "──── end ────\n")?,
            left => writeln!(out, "──── {} more ────\n", counted(left, "line"))?,
        }
        writeln!(out, "Nothing was changed in what the model sees.")?;
        if self.taken.questions > 0 {
            let note = "What the model was asked, and what it took, is booked in the log.";
            writeln!(out, "{}", yellow(note))?;
        }
        Ok(())
    }

    pub(super) fn print_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Report { boundary, taken, .. } = self;
        let change = self.change();
        let part = |part: &Part| json!({"messages": part.messages, "tokens": part.tokens});
        let named = |items: &[(String, u64)]| -> Vec<serde_json::Value> {
            items.iter().map(|(what, tokens)| json!({"what": what, "tokens": tokens})).collect()
        };
        let not_read: Vec<_> =
            self.not_read.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        let report = json!({
            "applied": !self.is_preview, "how": boundary.how, "model": self.model,
            "tokens_before": boundary.tokens_before, "tokens_after": boundary.tokens_after,
            "messages_summarised": boundary.messages_summarised,
            "cut_before_message": change.cut.as_ref().map(|cut| cut.made),
            "kept": part(&change.kept), "dropped": part(&change.dropped),
            "restored": named(&change.restored), "not_restored": not_read,
            "audit": boundary.audit, "attempts": self.attempts,
            "questions": taken.questions, "usage": taken.usage, "cost_usd": taken.cost,
            "summary": summary_text(boundary),
        });
        writeln!(out, "{report}")?;
        Ok(())
    }
}

/// What was checked, in rows.
fn audit_rows(audit: &Audit, row: &mut dyn FnMut(&str, String)) {
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
        format!("{}: {} named, {} put in", audit.paths, audit.paths_kept, audit.paths_repaired),
    );
    row(
        "open tasks",
        format!("{}: {} named, {} put in", audit.todos, audit.todos_kept, audit.todos_repaired),
    );
    if let Some(kept) = audit.error_kept {
        row("last error", String::from(if kept { "named" } else { "put in" }));
    }
    row("invented paths", audit.invented.len().to_string());
}

fn cut_line(cut: &Cut) -> String {
    let Cut { asked, made } = cut;
    if asked == made {
        format!("before message {made}")
    } else {
        format!("before message {made}, not {asked}: what belongs together stays together")
    }
}

fn part(part: &Part) -> String {
    match part.messages {
        0 => String::from("nothing"),
        count => format!("{}, about {} tokens", counted(count, "message"), thousands(part.tokens)),
    }
}

fn figure(number: Option<u64>) -> String {
    number.map_or(String::from("–"), thousands)
}

/// What the model reads of a boundary's summary: a provider's own words, where there are any, and the message.
fn summary_text(boundary: &Boundary) -> String {
    let blocks = boundary.summary.blocks().iter();
    let texts = blocks.filter_map(|block| block.string("text").or_else(|| block.string("content")));
    texts.collect::<Vec<_>>().join("\n\n")
}
