//! Commands that read memories: list, show, search, doctor.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_memory::{FindingKind, MemoryFinding, MemorySummary};
use pal_model::Timestamp;
use pal_model::text::count_noun;
use pal_report::{clip_line, sanitize, sanitize_lines, wrap_lines};
use serde_json::{Value, json};

use super::{MemoryCommandRun, failure};
use crate::failure::Failure;
use crate::open_session::now;
use crate::session_start::with_embeddings;
use crate::terminal_style::columns;

/// Time limit for computing embeddings during a search. Memories without one are found by their words; the next search or
/// session continues.
const EMBEDDING_MAX: Duration = Duration::from_secs(1);

impl MemoryCommandRun<'_> {
    pub(super) fn list(&mut self) -> Result<ExitCode, Failure> {
        let mut listed = Vec::new();
        for mut memory in self.open_all()? {
            listed.extend(memory.list().map_err(|error| failure(&error))?);
        }
        if self.is_json {
            writeln!(self.out, "{}", json!(listed))?;
            return Ok(ExitCode::SUCCESS);
        }
        if listed.is_empty() {
            writeln!(self.out, "No memories here yet. Add one with `pal memory add TEXT`.")?;
        }
        self.rows(&listed)?;
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn show(&mut self, name: &str) -> Result<ExitCode, Failure> {
        let (memory, slug) = self.find(name)?;
        let file = memory.read_file(&slug).map_err(|error| failure(&error))?;
        if self.is_json {
            let topic = memory.read(&slug).map_err(|error| failure(&error))?;
            let mut object = json!(topic.head);
            object["slug"] = json!(slug);
            object["path"] = json!(memory.path().join(format!("{slug}.md")));
            object["body"] = json!(topic.body);
            object["file"] = json!(file);
            writeln!(self.out, "{object}")?;
        } else {
            write!(self.out, "{}", sanitize_lines(&file))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn search(&mut self, query: &str, limit: usize) -> Result<ExitCode, Failure> {
        self.place = with_embeddings(self.place.clone(), self.settings, self.notices);
        let mut found = Vec::new();
        for mut memory in self.open_all()? {
            let until = Instant::now() + EMBEDDING_MAX;
            if let Err(error) = memory.embed_missing(|| Instant::now() >= until) {
                self.notices.add(error);
            }
            found.extend(memory.search(query, limit, now()).map_err(|error| failure(&error))?);
        }
        found.truncate(limit);
        if self.is_json {
            writeln!(self.out, "{}", json!(found))?;
            return Ok(ExitCode::SUCCESS);
        }
        if found.is_empty() {
            writeln!(self.out, "No memory matches. `pal memory list` lists all memories.")?;
        }
        let rows: Vec<MemorySummary> = found.into_iter().map(|found| found.memory).collect();
        self.rows(&rows)?;
        Ok(ExitCode::SUCCESS)
    }

    fn rows(&mut self, listed: &[MemorySummary]) -> Result<(), Failure> {
        if listed.is_empty() {
            return Ok(());
        }
        let wide = listed.iter().map(|memory| memory.slug.chars().count()).max().unwrap_or(0).clamp(4, 32);
        let heading = format!("{:<wide$}  {:<9}  {:<10}  {:>4}  about", "name", "type", "changed", "used");
        writeln!(self.out, "{}", self.colors.bold(&heading))?;
        let room = columns().saturating_sub(wide + 31).max(20);
        for memory in listed {
            let slug = format!("{:<wide$}", clip_line(&memory.slug, wide));
            writeln!(
                self.out,
                "{}  {:<9}  {:<10}  {:>4}  {}",
                self.colors.cyan(&slug),
                memory.head.kind.name(),
                day(memory.changed),
                memory.uses.count,
                clip_line(&memory.head.description, room)
            )?;
        }
        Ok(())
    }

    pub(super) fn doctor(&mut self) -> Result<ExitCode, Failure> {
        let root = self.root.clone();
        let mut findings = Vec::new();
        for mut memory in self.open_all()? {
            findings.extend(memory.doctor(Some(&root), now()).map_err(|error| failure(&error))?);
        }
        if self.is_json {
            writeln!(
                self.out,
                "{}",
                Value::from(findings.iter().map(|finding| json!(finding)).collect::<Vec<_>>())
            )?;
        } else if findings.is_empty() {
            writeln!(self.out, "{}", self.colors.green("No problems found."))?;
        } else {
            for finding in &findings {
                self.finding(finding)?;
            }
            writeln!(self.out, "{}", self.colors.bold(&count_noun(findings.len(), "finding")))?;
        }
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) })
    }

    fn finding(&mut self, finding: &MemoryFinding) -> Result<(), Failure> {
        let kind = match finding.kind {
            FindingKind::Secret => "secret",
            FindingKind::Contradiction => "contradiction",
            FindingKind::Duplicate => "duplicate",
            FindingKind::Dangling => "dangling link",
            FindingKind::StalePath => "stale path",
            FindingKind::Crowded => "crowded",
            FindingKind::Unused => "unused",
            FindingKind::NoMemory => "no memory",
        };
        let text = format!("{kind}: {}", sanitize(&finding.what));
        for line in wrap_lines(&text, columns()) {
            writeln!(self.out, "{}", self.colors.yellow(&line))?;
        }
        for line in wrap_lines(&sanitize(&finding.advice), columns().saturating_sub(2)) {
            writeln!(self.out, "  {}", self.colors.dim(&line))?;
        }
        Ok(())
    }
}

/// Formats the date of a time.
pub(super) fn day(moment: Timestamp) -> String {
    moment.to_string().chars().take(10).collect()
}
