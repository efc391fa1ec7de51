//! Days, weeks and months in a time zone.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::OverviewKey;

/// A range of days, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateRange {
    /// First day; none for no limit.
    pub since: Option<Date>,
    /// Last day; none for no limit.
    pub until: Option<Date>,
}

impl DateRange {
    pub(super) fn contains(&self, day: Date) -> bool {
        self.since.is_none_or(|since| day >= since) && self.until.is_none_or(|until| day <= until)
    }

    /// Returns true if no day is left out.
    pub(super) fn is_open(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }
}

/// Parses a day: `2026-11-15`, `20261115`, `today`, `yesterday`, or an age such as `7d`, `4w`. `today` is the current day.
pub fn parse_day(text: &str, today: Date) -> Option<Date> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "today" => return Some(today),
        "yesterday" => return today.yesterday().ok(),
        _ => {}
    }
    if let Some((count, unit)) = text.split_at_checked(text.len().saturating_sub(1))
        && let Ok(count) = count.parse::<i32>()
        && (0..=100_000).contains(&count)
    {
        let days = match unit {
            "d" => count,
            "w" => count * 7,
            _ => return compact_date(text),
        };
        return today.checked_sub(days.days()).ok();
    }
    text.parse().ok().or_else(|| compact_date(text))
}

/// Parses `20261115`.
fn compact_date(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Date::new(text[..4].parse().ok()?, text[4..6].parse().ok()?, text[6..].parse().ok()?).ok()
}

/// Converts times to days; times of one day are converted once.
pub(super) struct DayCache {
    zone: TimeZone,
    /// The last day, with its first millisecond and that of the next day.
    last: Option<(i64, i64, Date)>,
}

impl DayCache {
    pub(super) fn new(zone: TimeZone) -> DayCache {
        DayCache { zone, last: None }
    }

    pub(super) fn day(&mut self, at_ms: i64) -> Date {
        if let Some((start, end, day)) = self.last
            && (start..end).contains(&at_ms)
        {
            return day;
        }
        let time = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let day = time.to_zoned(self.zone.clone()).date();
        let start_of =
            |day: Date| day.to_zoned(self.zone.clone()).map(|day| day.timestamp().as_millisecond());
        if let (Ok(start), Ok(Ok(end))) = (start_of(day), day.tomorrow().map(start_of)) {
            self.last = Some((start, end, day));
        }
        day
    }
}

/// Text of the period that a day belongs to.
pub(super) fn label(day: Date, key: OverviewKey) -> String {
    match key {
        OverviewKey::Week => {
            let monday = i64::from(day.weekday().since(Weekday::Monday));
            day.checked_sub(monday.days()).unwrap_or(day).to_string()
        }
        OverviewKey::Month => format!("{:04}-{:02}", day.year(), day.month()),
        _ => day.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_several_forms() {
        let today: Date = "2026-11-18".parse().unwrap();
        let read = |text: &str| parse_day(text, today).map(|day| day.to_string());
        for (text, expected) in [
            ("2026-11-15", Some("2026-11-15")),
            ("20261115", Some("2026-11-15")),
            ("today", Some("2026-11-18")),
            ("Yesterday", Some("2026-11-17")),
            ("7d", Some("2026-11-11")),
            ("2w", Some("2026-11-04")),
            ("0d", Some("2026-11-18")),
            ("2026-13-01", None),
            ("20261301", None),
            ("soon", None),
            ("", None),
            ("-3d", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn periods_follow_the_time_zone() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        let mut tokyo = DayCache::new(TimeZone::fixed(jiff::tz::offset(9)));
        let mut utc = DayCache::new(TimeZone::UTC);
        let late = at("2026-11-15T23:30:00Z");
        assert_eq!(
            (utc.day(late).to_string(), tokyo.day(late).to_string()),
            ("2026-11-15".into(), "2026-11-16".into())
        );
        assert_eq!(utc.day(at("2026-11-16T00:00:00Z")).to_string(), "2026-11-16");
        let day: Date = "2026-11-15".parse().unwrap();
        assert_eq!(
            [OverviewKey::Day, OverviewKey::Week, OverviewKey::Month].map(|key| label(day, key)),
            ["2026-11-15", "2026-11-09", "2026-11"]
        );
        assert_eq!(label("2026-11-09".parse().unwrap(), OverviewKey::Week), "2026-11-09", "a Monday");
    }
}
