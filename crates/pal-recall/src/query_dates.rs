//! Dates in a question, resolved against the current time: `on 8 May 2023`, `in March`, `last Tuesday`, `3 days ago`.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};
use pal_model::Timestamp;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Words before a month without a day or a year: `may` and `march` are words of their own.
const BEFORE_MONTHS: [&str; 12] =
    ["in", "of", "during", "since", "by", "last", "this", "early", "mid", "late", "until", "from"];
/// Factor for a text of the time asked for, of the days after it, and of the days before it: people speak of a day
/// afterwards, and of their plans before.
const WITHIN_FACTOR: f32 = 2.0;
const AFTER_FACTOR: f32 = 1.6;
const BEFORE_FACTOR: f32 = 1.3;
const AFTER_DAYS: i64 = 7;
const BEFORE_DAYS: i64 = 3;
const DAY_MS: i64 = 86_400_000;

/// A range of days, in days since 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DayRange {
    first: i64,
    last: i64,
}

/// Times that a question asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct QueryDates(Vec<DayRange>);

impl QueryDates {
    /// Reads the dates of a question that is asked now. A date without a year is the last one before now.
    pub(crate) fn of(query: &str, now: Timestamp) -> QueryDates {
        let words: Vec<String> = query
            .split(|letter: char| !letter.is_alphanumeric() && letter != '-')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let today = date_of(now);
        let found = (0..words.len()).filter_map(|at| DateReader { words: &words, at, today }.read());
        QueryDates(found.filter_map(|(first, last)| DayRange::new(first, last)).collect())
    }

    /// Returns true if the question names no date.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a time is within a range.
    pub(crate) fn contain(&self, milliseconds: i64) -> bool {
        let day = milliseconds.div_euclid(DAY_MS);
        self.0.iter().any(|range| (range.first..=range.last).contains(&day))
    }

    /// Factor of the relevance of a text of this time.
    pub(crate) fn factor(&self, milliseconds: i64) -> f32 {
        let day = milliseconds.div_euclid(DAY_MS);
        let of_range = |range: &DayRange| match day {
            day if day < range.first - BEFORE_DAYS || day > range.last + AFTER_DAYS => 1.0,
            day if day < range.first => BEFORE_FACTOR,
            day if day > range.last => AFTER_FACTOR,
            _ => WITHIN_FACTOR,
        };
        self.0.iter().map(of_range).fold(1.0, f32::max)
    }
}

impl DayRange {
    fn new(first: Date, last: Date) -> Option<DayRange> {
        let days =
            |date: Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second().div_euclid(86_400));
        Some(DayRange { first: days(first)?, last: days(last)? })
    }
}

fn date_of(time: Timestamp) -> Date {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(Span::new().days(time.milliseconds().div_euclid(DAY_MS))).unwrap_or(epoch)
}

/// Reads a date at a word of a question.
struct DateReader<'a> {
    words: &'a [&'a str],
    at: usize,
    today: Date,
}

impl DateReader<'_> {
    fn word(&self, offset: isize) -> Option<&str> {
        self.words.get(self.at.checked_add_signed(offset)?).copied()
    }

    /// First and last day of the date that has its main word here.
    fn read(&self) -> Option<(Date, Date)> {
        let word = self.word(0)?;
        let day = |date: Date| Some((date, date));
        if let Ok(date) = word.parse::<Date>() {
            return (word.len() == 10).then_some((date, date));
        }
        match word {
            "today" => return day(self.today),
            "yesterday" => return day(self.today.yesterday().ok()?),
            "week" if self.is_after(&["last", "this", "past"]) => return self.week(),
            "month" if self.is_after(&["last", "this"]) => return self.month_of(self.this_or_last_month()?),
            "ago" => return self.ago(),
            _ => {}
        }
        if let Some((_, weekday)) = WEEKDAYS.iter().find(|(name, _)| *name == word) {
            return day(self.today.nth_weekday(-1, *weekday).ok()?);
        }
        let month = MONTHS.iter().position(|name| is_month(name, word))? as i8 + 1;
        self.dated_month(month)
    }

    fn is_after(&self, words: &[&str]) -> bool {
        self.word(-1).is_some_and(|before| words.contains(&before))
    }

    /// The week before today, or the one before that for `last week`.
    fn week(&self) -> Option<(Date, Date)> {
        let (from, to) = if self.is_after(&["last"]) { (13, 6) } else { (6, 0) };
        Some((self.today.checked_sub(from.days()).ok()?, self.today.checked_sub(to.days()).ok()?))
    }

    fn this_or_last_month(&self) -> Option<Date> {
        let this = self.today.first_of_month();
        if self.is_after(&["last"]) { this.checked_sub(1.month()).ok() } else { Some(this) }
    }

    fn month_of(&self, date: Date) -> Option<(Date, Date)> {
        Some((date.first_of_month(), date.last_of_month()))
    }

    /// `3 days ago`, `a week ago`.
    fn ago(&self) -> Option<(Date, Date)> {
        let count: i64 = match self.word(-2)? {
            "a" | "an" | "one" => 1,
            "two" => 2,
            "three" => 3,
            count => count.parse().ok().filter(|count| *count < 1_000)?,
        };
        let (days, around) = match self.word(-1)?.trim_end_matches('s') {
            "day" => (count, 0),
            "week" => (count * 7, 3),
            "month" => (count * 30, 15),
            _ => return None,
        };
        let middle = self.today.checked_sub(days.days()).ok()?;
        Some((middle.checked_sub(around.days()).ok()?, middle.checked_add(around.days()).ok()?))
    }

    /// A month with a day, a year or a preposition.
    fn dated_month(&self, month: i8) -> Option<(Date, Date)> {
        let number = |offset: isize| day_number(self.word(offset)?);
        let year =
            |offset: isize| self.word(offset)?.parse::<i16>().ok().filter(|year| (1970..2200).contains(year));
        let before = number(-1).or_else(|| if self.is_after(&["of"]) { number(-2) } else { None });
        let day = before.or_else(|| number(1));
        let year = year(1).or_else(|| year(2).filter(|_| number(1).is_some()));
        if day.is_none() && year.is_none() && !self.is_after(&BEFORE_MONTHS) {
            return None;
        }
        let of_year = |year: i16| Date::new(year, month, day.unwrap_or(1)).ok();
        let date = match year {
            Some(year) => of_year(year)?,
            None => of_year(self.today.year())
                .filter(|date| *date <= self.today)
                .or_else(|| of_year(self.today.year() - 1))?,
        };
        if day.is_some() { Some((date, date)) } else { self.month_of(date) }
    }
}

/// Returns true for the name of a month and for its first three letters.
fn is_month(name: &str, word: &str) -> bool {
    name == word || (word.len() == 3 && name.starts_with(word)) || (name == "september" && word == "sept")
}

/// Number of a day: `8`, `8th`.
fn day_number(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let is_ending = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
    digits.parse().ok().filter(|day| is_ending && (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of a question asked on Thursday, 19 November 2026.
    fn ranges(query: &str) -> Vec<(String, String)> {
        let now = Timestamp::from_milliseconds(1_795_089_600_000);
        let date = |day: i64| date_of(Timestamp::from_milliseconds(day * DAY_MS)).to_string();
        QueryDates::of(query, now).0.iter().map(|range| (date(range.first), date(range.last))).collect()
    }

    #[test]
    fn dates_of_questions_are_resolved() {
        for (query, first, last) in [
            ("on 8 May, 2023", "2023-05-08", "2023-05-08"),
            ("May 8th, 2023", "2023-05-08", "2023-05-08"),
            ("the 8th of May", "2026-05-08", "2026-05-08"),
            ("on 2023-05-08?", "2023-05-08", "2023-05-08"),
            ("in March", "2026-03-01", "2026-03-31"),
            ("in December", "2025-12-01", "2025-12-31"),
            ("July 2022", "2022-07-01", "2022-07-31"),
            ("yesterday", "2026-11-18", "2026-11-18"),
            ("last Tuesday", "2026-11-17", "2026-11-17"),
            ("last week", "2026-11-06", "2026-11-13"),
            ("last month", "2026-10-01", "2026-10-31"),
            ("3 days ago", "2026-11-16", "2026-11-16"),
            ("two weeks ago", "2026-11-02", "2026-11-08"),
        ] {
            assert_eq!(ranges(query), [(first.to_owned(), last.to_owned())], "{query}");
        }
        for none in ["what may it be", "we march on", "port 8 is closed", "error 2023", "a few days ago"] {
            assert!(ranges(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn days_around_a_date_count_less() {
        let now = Timestamp::from_milliseconds(1_795_089_600_000);
        let dates = QueryDates::of("on 2026-11-10", now);
        let day = |day: i64| dates.factor((20_767 + day) * DAY_MS);
        assert_eq!([day(0), day(5), day(-2), day(30)], [2.0, 1.6, 1.3, 1.0]);
        assert!(dates.contain(20_767 * DAY_MS) && !dates.contain(20_768 * DAY_MS));
    }
}
