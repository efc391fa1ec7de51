//! Search results for people: session, author, time and place, and the lines with the matches highlighted.

use std::io::Write;

use pal_model::Timestamp;
use pal_model::text::count_noun;
use pal_recall::{Passage, PassageHit, RecallResults};
use pal_report::{TextStyle, clip_line, sanitize, sanitize_lines};

use crate::failure::Failure;
use pal_report::format_age;

/// Characters of an id that are shown.
const ID_CHARACTERS: usize = 13;

pub(super) struct PassageList {
    pub(super) colors: TextStyle,
    pub(super) columns: usize,
    pub(super) now: Timestamp,
    /// Show the directory of each session.
    pub(super) is_all: bool,
}

impl PassageList {
    pub(super) fn write(&self, found: &RecallResults, out: &mut dyn Write) -> Result<(), Failure> {
        if found.is_partial {
            let words = "No passage contains all the words; these contain some of them.";
            writeln!(out, "{}\n", self.colors.yellow(words))?;
        }
        let mut last = None;
        for place in &found.passages {
            if last != Some(&place.session) {
                self.session(place, out)?;
            }
            last = Some(&place.session);
            self.place(place, out)?;
        }
        let count = count_noun(found.passages.len(), "passage");
        let advice = "`pal view ID` shows a session, `pal -r ID` resumes it";
        writeln!(out, "{}", self.colors.dim(&format!("{count} · {advice}")))?;
        Ok(())
    }

    fn session(&self, place: &PassageHit, out: &mut dyn Write) -> Result<(), Failure> {
        let id: String = sanitize(&place.session).chars().take(ID_CHARACTERS).collect();
        let ago = place.at.map_or(String::new(), |at| format_age(at, self.now));
        let room = self.columns.saturating_sub(id.chars().count() + ago.chars().count() + 4).max(20);
        let title = clip_line(place.description.title().unwrap_or("(no prompt yet)"), room);
        let (id, title) = (self.colors.cyan(&id), self.colors.bold(&title));
        writeln!(out, "{id}  {title}  {}", self.colors.dim(&ago))?;
        if let Some(directory) = place.description.directory.as_ref().filter(|_| self.is_all) {
            writeln!(out, "  {}", self.colors.dim(&clip_line(directory, self.columns.saturating_sub(2))))?;
        }
        Ok(())
    }

    fn place(&self, place: &PassageHit, out: &mut dyn Write) -> Result<(), Failure> {
        let agent =
            place.agent.as_ref().map_or(String::new(), |agent| format!(" (agent {})", sanitize(agent)));
        let at = place.at.map_or(String::new(), |at| format!(" · {at}"));
        let entry = place.entry.map_or(String::new(), |entry| format!(" · entry {entry}"));
        writeln!(
            out,
            "  {}{agent}{}",
            self.colors.green(&place.speaker.to_string()),
            self.colors.dim(&(at + &entry))
        )?;
        let stands = format!("{}:{}", sanitize(&place.file.to_string_lossy()), place.line);
        writeln!(out, "  {}", self.colors.dim(&stands))?;
        for line in self.lines(&place.passage) {
            writeln!(out, "  {} {line}", self.colors.dim("│"))?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Formats the lines of a passage with the matches highlighted.
    fn lines(&self, passage: &Passage) -> Vec<String> {
        let mut painted = String::new();
        let mut from = 0;
        for mark in &passage.marks {
            // Matches never overlap.
            let Some(before) = passage.text.get(from..mark.start) else { continue };
            painted.push_str(&sanitize_lines(&before.replace("\r\n", "\n")));
            painted.push_str(&self.colors.paint("1;33", &sanitize(&passage.text[mark.clone()])));
            from = mark.end;
        }
        painted.push_str(&sanitize_lines(&passage.text[from..].replace("\r\n", "\n")));
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let text = format!("{}{painted}{}", cut(passage.is_cut_before), cut(passage.is_cut_after));
        text.split('\n').map(str::to_owned).collect()
    }
}
