//! Quantities formatted for people: tokens, dollars, percentages, durations.

use pal_model::text::group_digits;
use pal_model::{Timestamp, Usage};

/// Formats a fractional number of tokens, rounded.
pub fn format_tokens(tokens: f64) -> String {
    group_digits(tokens.max(0.0).round() as u64)
}

/// Formats US dollars: two decimals from $100 on, four below.
pub fn format_usd(dollars: f64) -> String {
    let sign = if dollars < 0.0 { "−" } else { "" };
    let dollars = dollars.abs();
    if dollars >= 100.0 { format!("{sign}${dollars:.2}") } else { format!("{sign}${dollars:.4}") }
}

/// Formats a share between 0 and 1 as a percentage: `95.0%`.
pub fn format_percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Formats a duration in its two largest units: `7 min 10 s`.
pub fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let pair = |large: u64, large_name: &str, small: u64, small_name: &str| match small {
        0 => format!("{large} {large_name}"),
        _ => format!("{large} {large_name} {small} {small_name}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// Formats the token usage of a response, and its cost in US dollars where known.
pub fn format_usage(usage: &Usage, cost: Option<f64>) -> String {
    let [read, written, uncached, output] = [
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.input_tokens,
        usage.output_tokens,
    ]
    .map(group_digits);
    let cost = cost.map_or(String::new(), |cost| format!(", ${cost:.4}"));
    format!("{read} read, {written} written, {uncached} uncached, {output} out{cost}")
}

/// Formats a number with three significant digits or so: `12.3 M`.
pub fn format_count(count: u64) -> String {
    let count_f64 = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} K", count_f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", count_f64 / 1e6),
        _ => format!("{:.1} G", count_f64 / 1e9),
    }
}

/// Formats a size in bytes with three significant digits or so: `73.1 KB`.
pub fn format_bytes(count: u64) -> String {
    if count < 1_000 { format!("{count} B") } else { format!("{}B", format_count(count)) }
}

/// Formats how long ago a time was, in its largest unit; after a week, the date.
pub fn format_age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.milliseconds().saturating_sub(at.milliseconds()) / 1_000;
    match seconds {
        ..60 => String::from("just now"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..604_800 => format!("{} d ago", seconds / 86_400),
        _ => at.to_string().chars().take(10).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_times_are_short() {
        assert_eq!(
            [0.0, 0.01234, -1.5, 1234.567].map(format_usd),
            ["$0.0000", "$0.0123", "−$1.5000", "$1234.57"]
        );
        let times = [999, 60_000, 430_000, 3_600_000, 3_780_000, 187_200_000].map(format_duration);
        assert_eq!(times, ["0 s", "1 min", "7 min 10 s", "1 h", "1 h 3 min", "2 d 4 h"]);
    }

    #[test]
    fn counts_sizes_and_ages_are_short() {
        assert_eq!(
            [999, 1_234, 12_345_678, 3_000_000_000].map(format_count),
            ["999", "1.2 K", "12.3 M", "3.0 G"]
        );
        assert_eq!([7, 1_234].map(format_bytes), ["7 B", "1.2 KB"]);
        let now: Timestamp = "2026-11-16T12:00:00.000Z".parse().unwrap();
        let before = [
            "2026-11-16T12:00:30.000Z",
            "2026-11-16T11:58:00.000Z",
            "2026-11-15T13:00:00.000Z",
            "2026-11-13T12:00:00.000Z",
            "2026-10-01T12:00:00.000Z",
        ];
        let ages = before.map(|at| format_age(at.parse().unwrap(), now));
        assert_eq!(ages, ["just now", "2 min ago", "23 h ago", "3 d ago", "2026-10-01"]);
    }
}
