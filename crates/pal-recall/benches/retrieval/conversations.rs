//! Conversations with questions whose evidence is known.
//!
//! A file holds `turns` (`id`, `session`, `at`, `speaker`, `text`) and `questions` (`question`, `evidence`: ids of turns,
//! `category`). Times are written as `1:56 pm on 8 May, 2023` or `2023-05-08T13:56:00Z`.

use std::path::Path;

use pal_model::Timestamp;
use serde::Deserialize;

/// Milliseconds between two turns of a session: the data has one time per session.
const TURN_MS: i64 = 1_000;
const DAY_MS: i64 = 86_400_000;

/// A conversation over several sessions.
pub(crate) struct Conversation {
    /// Turns in order.
    pub(crate) turns: Vec<Turn>,
    /// Questions with evidence.
    pub(crate) questions: Vec<Question>,
}

/// A message.
pub(crate) struct Turn {
    pub(crate) session: String,
    pub(crate) at: Timestamp,
    /// True for the first speaker, whose messages become prompts.
    pub(crate) is_first_speaker: bool,
    /// Speaker and text.
    pub(crate) text: String,
}

/// A question.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) category: String,
    /// Indexes of the turns that hold the evidence.
    pub(crate) evidence: Vec<usize>,
}

#[derive(Deserialize)]
struct ConversationFile {
    turns: Vec<TurnRecord>,
    questions: Vec<QuestionRecord>,
}

#[derive(Deserialize)]
struct TurnRecord {
    id: String,
    session: serde_json::Value,
    at: String,
    speaker: String,
    text: String,
}

#[derive(Deserialize)]
struct QuestionRecord {
    question: String,
    evidence: Vec<String>,
    category: serde_json::Value,
}

impl Conversation {
    /// Reads all conversations of a folder, by name.
    pub(crate) fn read_folder(folder: &Path) -> Vec<Conversation> {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|ending| ending == "json")).collect();
        files.sort();
        files.iter().map(|file| Conversation::read(&std::fs::read_to_string(file).unwrap())).collect()
    }

    fn read(json: &str) -> Conversation {
        let file: ConversationFile = serde_json::from_str(json).unwrap();
        let first = file.turns.first().map(|turn| turn.speaker.clone());
        let place = |id: &String| file.turns.iter().position(|turn| turn.id == *id);
        let question = |record: &QuestionRecord| Question {
            text: record.question.clone(),
            category: plain_text(&record.category),
            evidence: record.evidence.iter().filter_map(place).collect(),
        };
        let questions = file.questions.iter().map(question).filter(|question| !question.evidence.is_empty());
        let questions = questions.collect();
        let mut turns: Vec<Turn> = Vec::new();
        for turn in &file.turns {
            let session = plain_text(&turn.session);
            let start = milliseconds(&turn.at).unwrap_or_else(|| panic!("not a time: {}", turn.at));
            let last = turns.last().filter(|last| last.session == session);
            let at = last.map_or(start, |last| start.max(last.at.milliseconds() + TURN_MS));
            turns.push(Turn {
                session,
                at: Timestamp::from_milliseconds(at),
                is_first_speaker: Some(&turn.speaker) == first.as_ref(),
                text: format!("{}: {}", turn.speaker, turn.text),
            });
        }
        Conversation { turns, questions }
    }

    /// Time after the last turn.
    pub(crate) fn end(&self) -> Timestamp {
        let last = self.turns.iter().map(|turn| turn.at.milliseconds()).max().unwrap_or_default();
        Timestamp::from_milliseconds(last + DAY_MS)
    }
}

fn plain_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Milliseconds of a time in one of the two forms.
fn milliseconds(text: &str) -> Option<i64> {
    if let Ok(time) = serde_json::from_value::<Timestamp>(text.into()) {
        return Some(time.milliseconds());
    }
    let (clock, date) = text.split_once(" on ")?;
    let (clock, half) = clock.split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let hour = hour.parse::<i64>().ok()? % 12 + if half == "pm" { 12 } else { 0 };
    let minute: i64 = minute.parse().ok()?;
    let mut parts = date.split([' ', ',']).filter(|part| !part.is_empty());
    let day: i64 = parts.next()?.parse().ok()?;
    let month = parts.next()?;
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = months.iter().position(|name| month.to_lowercase().starts_with(name))? as i64 + 1;
    let year: i64 = parts.next()?.parse().ok()?;
    Some(days_from_civil(year, month, day) * DAY_MS + (hour * 60 + minute) * 60_000)
}

/// Days since 1970-01-01 of a date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}
