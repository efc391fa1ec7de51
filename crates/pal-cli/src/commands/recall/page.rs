//! What was found, for people: the session, who and when and where, and the lines with the words in colour.

use std::io::Write;

use pal_model::Timestamp;
use pal_recall::{Found, Passage, Place};

use crate::colour::{Colours, clipped};
use crate::commands::sessions::ago;
use crate::failure::Failure;
use crate::table::{counted, harmless, harmless_lines};

/// How much of an id is shown.
const ID_CHARACTERS: usize = 13;

pub(super) struct Page {
    pub(super) colours: Colours,
    pub(super) columns: usize,
    pub(super) now: Timestamp,
    /// Whether the sessions are of many projects.
    pub(super) is_all: bool,
}

impl Page {
    pub(super) fn write(&self, found: &Found, out: &mut dyn Write) -> Result<(), Failure> {
        if found.is_loose {
            let words = "No place holds all the words; these hold some of them.";
            writeln!(out, "{}\n", self.colours.yellow(words))?;
        }
        let mut last = None;
        for place in &found.places {
            if last != Some(&place.session) {
                self.session(place, out)?;
            }
            last = Some(&place.session);
            self.place(place, out)?;
        }
        let count = counted(found.places.len(), "place");
        let advice = "`pal view ID` shows a session, `pal -r ID` goes on with it";
        writeln!(out, "{}", self.colours.dim(&format!("{count} · {advice}")))?;
        Ok(())
    }

    fn session(&self, place: &Place, out: &mut dyn Write) -> Result<(), Failure> {
        let id: String = harmless(&place.session).chars().take(ID_CHARACTERS).collect();
        let ago = place.at.map_or(String::new(), |at| ago(at, self.now));
        let room = self.columns.saturating_sub(id.chars().count() + ago.chars().count() + 4).max(20);
        let title = clipped(place.about.title().unwrap_or("(no prompt yet)"), room);
        let (id, title) = (self.colours.cyan(&id), self.colours.bold(&title));
        writeln!(out, "{id}  {title}  {}", self.colours.dim(&ago))?;
        if let Some(directory) = place.about.directory.as_ref().filter(|_| self.is_all) {
            writeln!(out, "  {}", self.colours.dim(&clipped(directory, self.columns.saturating_sub(2))))?;
        }
        Ok(())
    }

    fn place(&self, place: &Place, out: &mut dyn Write) -> Result<(), Failure> {
        let agent =
            place.agent.as_ref().map_or(String::new(), |agent| format!(" (agent {})", harmless(agent)));
        let at = place.at.map_or(String::new(), |at| format!(" · {at}"));
        let entry = place.entry.map_or(String::new(), |entry| format!(" · entry {entry}"));
        writeln!(
            out,
            "  {}{agent}{}",
            self.colours.green(&place.who.to_string()),
            self.colours.dim(&(at + &entry))
        )?;
        let stands = format!("{}:{}", harmless(&place.file.to_string_lossy()), place.line);
        writeln!(out, "  {}", self.colours.dim(&stands))?;
        for line in self.lines(&place.passage) {
            writeln!(out, "  {} {line}", self.colours.dim("│"))?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// The lines of a passage, with the words that were asked for in colour.
    fn lines(&self, passage: &Passage) -> Vec<String> {
        let mut painted = String::new();
        let mut from = 0;
        for mark in &passage.marks {
            // Marks never share a character, whatever the words.
            let Some(before) = passage.text.get(from..mark.start) else { continue };
            painted.push_str(&harmless_lines(&before.replace("\r\n", "\n")));
            painted.push_str(&self.colours.painted("1;33", &harmless(&passage.text[mark.clone()])));
            from = mark.end;
        }
        painted.push_str(&harmless_lines(&passage.text[from..].replace("\r\n", "\n")));
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let text = format!("{}{painted}{}", cut(passage.is_cut_before), cut(passage.is_cut_after));
        text.split('\n').map(str::to_owned).collect()
    }
}
