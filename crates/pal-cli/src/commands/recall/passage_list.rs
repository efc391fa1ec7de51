//! Search results for people: session, author, time and place, and the lines with the matches highlighted.

use std::io::Write;

use pal_model::Timestamp;
use pal_model::text::count_noun;
use pal_recall::{NearbyText, Passage, PassageHit, RecallResults};
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
    /// Show each match with its context; otherwise in one line.
    pub(super) is_full: bool,
}

impl PassageList {
    pub(super) fn write(&self, found: &RecallResults, out: &mut dyn Write) -> Result<(), Failure> {
        if !found.corrections.is_empty() {
            let pair =
                |(word, term): &(String, String)| format!("`{}` as `{}…`", sanitize(word), sanitize(term));
            let pairs: Vec<String> = found.corrections.iter().map(pair).collect();
            let some = if found.lacks_words { " These contain some of the words." } else { "" };
            let words =
                format!("No passage contains all the words as they are; read {}.{some}", pairs.join(", "));
            writeln!(out, "{}\n", self.colors.yellow(&words))?;
        } else if found.is_partial {
            let words = "No passage contains all the words; these contain some of them.";
            writeln!(out, "{}\n", self.colors.yellow(words))?;
        }
        let mut last = None;
        for place in &found.passages {
            if last != Some(&place.session) {
                self.session(place, out)?;
            }
            last = Some(&place.session);
            match self.is_full {
                true => self.place(place, out)?,
                false => self.hit_line(place, out)?,
            }
        }
        let count = count_noun(found.passages.len(), "passage");
        let advice = match self.is_full {
            true => "`pal view ID` shows a session, `pal -r ID` resumes it",
            false => "--full shows context; `pal view ID`, `pal -r ID`: the session",
        };
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

    /// Writes a match in one line: who said it, and the line of the text around the first match.
    fn hit_line(&self, place: &PassageHit, out: &mut dyn Write) -> Result<(), Failure> {
        let speaker = place.speaker.to_string();
        let room = self.columns.saturating_sub(speaker.chars().count() + 4).max(20);
        let line = match_line(&place.passage, room);
        let mut painted = String::new();
        let mut from = 0;
        for mark in &line.marks {
            painted.push_str(&line.text[from..mark.start]);
            painted.push_str(&self.colors.paint("1;33", &line.text[mark.clone()]));
            from = mark.end;
        }
        painted.push_str(&line.text[from..]);
        writeln!(out, "  {}  {painted}", self.colors.green(&speaker))?;
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
        if let Some(before) = &place.nearby.before {
            self.nearby(before, out)?;
        }
        for line in self.lines(&place.passage) {
            writeln!(out, "  {} {line}", self.colors.dim("│"))?;
        }
        if let Some(after) = &place.nearby.after {
            self.nearby(after, out)?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Writes the text before or after a passage.
    fn nearby(&self, nearby: &NearbyText, out: &mut dyn Write) -> Result<(), Failure> {
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let (start, end) = (cut(nearby.is_cut_before), cut(nearby.is_cut_after));
        let text = sanitize_lines(&nearby.text.replace("\r\n", "\n"));
        for line in format!("{}: {start}{text}{end}", nearby.speaker).split('\n') {
            writeln!(out, "  {}", self.colors.dim(&format!("┊ {line}")))?;
        }
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

/// A line of text with the matches in it.
struct MatchLine {
    text: String,
    marks: Vec<std::ops::Range<usize>>,
}

/// The line of a passage with the most matches, cut to `room` characters around the first of them.
fn match_line(passage: &Passage, room: usize) -> MatchLine {
    let mut best = (0, 0..0);
    let mut start = 0;
    for line in passage.text.split('\n') {
        let range = start..start + line.len();
        let marks = passage.marks.iter().filter(|mark| range.contains(&mark.start)).count();
        if marks > best.0 || best.1.is_empty() {
            best = (marks, range.clone());
        }
        start = range.end + 1;
    }
    let range = best.1;
    let first =
        passage.marks.iter().find(|mark| range.contains(&mark.start)).map_or(range.start, |mark| mark.start);
    // A third of the room stands before the first match.
    let line = &passage.text[range.clone()];
    let before = line[..first - range.start].chars().count();
    let skipped = if line.chars().count() <= room { 0 } else { before.saturating_sub(room / 3) };
    let mut text = String::from(if skipped > 0 { "…" } else { "" });
    let mut marks = Vec::new();
    let mut mark_start = None;
    let taken = usize::from(skipped > 0);
    for (taken, (at, letter)) in (taken..).zip(line.char_indices().skip(skipped)) {
        let at = range.start + at;
        let is_marked = passage.marks.iter().any(|mark| mark.contains(&at));
        match (is_marked, mark_start) {
            (true, None) => mark_start = Some(text.len()),
            (false, Some(from)) => {
                marks.push(from..text.len());
                mark_start = None;
            }
            _ => {}
        }
        if taken + 1 >= room {
            text.push('…');
            break;
        }
        text.push(if letter.is_control() { ' ' } else { letter });
    }
    if let Some(from) = mark_start {
        marks.push(from..text.trim_end_matches('…').len());
    }
    MatchLine { text, marks }
}
