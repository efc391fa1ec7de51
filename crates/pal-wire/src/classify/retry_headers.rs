//! Response headers about retries.

use std::time::Duration;

use super::display_text;

/// Returns the requested wait: `retry-after-ms`, else `retry-after` in seconds or as a date. A date is relative to the
/// response's own `date` header, so that no local clock is needed.
pub(super) fn retry_after<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    if let Some(milliseconds) = header("retry-after-ms").and_then(|value| seconds(value, 1e-3)) {
        return Some(milliseconds);
    }
    let value = header("retry-after")?;
    seconds(value, 1.0).or_else(|| {
        let wait = http_date(value)?.saturating_sub(http_date(header("date")?)?);
        Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)))
    })
}

/// Returns the provider's own statement on retrying.
pub(super) fn should_retry<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<bool> {
    match header("x-should-retry")?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns the provider's request id.
pub(super) fn request_id<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<String> {
    ["request-id", "x-request-id", "x-amzn-requestid"]
        .iter()
        .find_map(|name| header(name))
        .map(display_text::display_code)
}

/// Parses a number of `unit` seconds, limited to one year.
fn seconds(value: &str, unit: f64) -> Option<Duration> {
    let value: f64 = value.trim().parse().ok()?;
    (value >= 0.0).then(|| Duration::from_secs_f64((value * unit).min(31_536_000.0)))
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` to seconds since 1970.
fn http_date(value: &str) -> Option<i64> {
    let (_, value) = value.trim().split_once(", ")?;
    let mut words = value.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i64::try_from(names.iter().position(|name| *name == month)?).ok()?;
    let year: i64 = words.next()?.parse().ok()?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let is_date = (1..=31).contains(&day) && (1970..=9999).contains(&year);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    (is_date && is_time).then(|| ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days since 1970 of a Gregorian date; months count from 0.
fn days(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let in_year = BEFORE.get(usize::try_from(month).unwrap_or(0)).copied().unwrap_or(0);
    let leap_day = i64::from(is_leap && month > 1);
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + in_year + leap_day + day - 1
}
