//! Looking at memories: lists, one of them, searches, what is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_memory::{Finding, Listed, Trouble};
use pal_model::Timestamp;
use serde_json::{Value, json};

use super::{Desk, failure};
use crate::aside;
use crate::colour::{clipped, columns, wrapped};
use crate::failure::Failure;
use crate::stored::now;
use crate::surroundings::with_embeddings;
use crate::table::{counted, harmless, harmless_lines};

/// How long a search makes memories ready to be found by their meaning. Those that are not ready then are found by their words,
/// and the next search, or a session, goes on with them.
const EMBEDDING_MOST: Duration = Duration::from_secs(1);

impl Desk<'_> {
    pub(super) fn list(&mut self) -> Result<ExitCode, Failure> {
        let mut listed = Vec::new();
        for mut memory in self.all()? {
            listed.extend(memory.list().map_err(|error| failure(&error))?);
        }
        if self.is_json {
            writeln!(self.out, "{}", json!(listed))?;
            return Ok(ExitCode::SUCCESS);
        }
        if listed.is_empty() {
            writeln!(
                self.out,
                "Nothing is remembered here yet. `pal memory add TEXT` writes the first memory."
            )?;
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
            write!(self.out, "{}", harmless_lines(&file))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn search(&mut self, query: &str, limit: usize) -> Result<ExitCode, Failure> {
        self.place = with_embeddings(self.place.clone(), self.settings);
        let mut found = Vec::new();
        for mut memory in self.all()? {
            let until = Instant::now() + EMBEDDING_MOST;
            if let Err(error) = memory.embed_some(|| Instant::now() >= until) {
                aside::tell(error);
            }
            found.extend(memory.search(query, limit, now()).map_err(|error| failure(&error))?);
        }
        found.truncate(limit);
        if self.is_json {
            writeln!(self.out, "{}", json!(found))?;
            return Ok(ExitCode::SUCCESS);
        }
        if found.is_empty() {
            writeln!(self.out, "No memory fits. `pal memory list` has all of them.")?;
        }
        let rows: Vec<Listed> = found.into_iter().map(|found| found.memory).collect();
        self.rows(&rows)?;
        Ok(ExitCode::SUCCESS)
    }

    fn rows(&mut self, listed: &[Listed]) -> Result<(), Failure> {
        if listed.is_empty() {
            return Ok(());
        }
        let wide = listed.iter().map(|memory| memory.slug.chars().count()).max().unwrap_or(0).clamp(4, 32);
        let heading = format!("{:<wide$}  {:<9}  {:<10}  {:>4}  about", "name", "type", "changed", "used");
        writeln!(self.out, "{}", self.colours.bold(&heading))?;
        let room = columns().saturating_sub(wide + 31).max(20);
        for memory in listed {
            let slug = format!("{:<wide$}", clipped(&memory.slug, wide));
            writeln!(
                self.out,
                "{}  {:<9}  {:<10}  {:>4}  {}",
                self.colours.cyan(&slug),
                memory.head.kind.name(),
                day(memory.changed),
                memory.uses.count,
                clipped(&memory.head.description, room)
            )?;
        }
        Ok(())
    }

    pub(super) fn doctor(&mut self) -> Result<ExitCode, Failure> {
        let root = self.root.clone();
        let mut findings = Vec::new();
        for mut memory in self.all()? {
            findings.extend(memory.doctor(Some(&root), now()).map_err(|error| failure(&error))?);
        }
        if self.is_json {
            writeln!(
                self.out,
                "{}",
                Value::from(findings.iter().map(|finding| json!(finding)).collect::<Vec<_>>())
            )?;
        } else if findings.is_empty() {
            writeln!(self.out, "{}", self.colours.green("Nothing is wrong."))?;
        } else {
            for finding in &findings {
                self.finding(finding)?;
            }
            writeln!(self.out, "{}", self.colours.bold(&counted(findings.len(), "finding")))?;
        }
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn finding(&mut self, finding: &Finding) -> Result<(), Failure> {
        let kind = match finding.trouble {
            Trouble::Secret => "secret",
            Trouble::Contradiction => "contradiction",
            Trouble::Duplicate => "duplicate",
            Trouble::Dangling => "leads nowhere",
            Trouble::StalePath => "stale path",
            Trouble::Crowded => "crowded",
            Trouble::Unused => "unused",
            Trouble::NoMemory => "no memory",
        };
        let text = format!("{kind}: {}", harmless(&finding.what));
        for line in wrapped(&text, columns()) {
            writeln!(self.out, "{}", self.colours.yellow(&line))?;
        }
        for line in wrapped(&harmless(&finding.advice), columns().saturating_sub(2)) {
            writeln!(self.out, "  {}", self.colours.dim(&line))?;
        }
        Ok(())
    }
}

/// The day of a moment.
pub(super) fn day(moment: Timestamp) -> String {
    moment.to_string().chars().take(10).collect()
}
