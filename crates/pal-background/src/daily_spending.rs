//! Spending of the day: one line per exchange with a provider, in `spending/DAY.jsonl` under the home, so that all
//! processes of a user see it at once. Days are UTC. What a simulator would have cost is kept apart.

use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Minimum part of a day on which a forecast is based.
const FORECAST_MIN: f64 = 1.0 / 24.0;

/// One exchange.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SpendingEntry {
    /// Time of its end.
    pub at: Timestamp,
    /// Session that it was for.
    pub session: String,
    /// Price in US dollars.
    pub cost_usd: f64,
    /// True if a simulator answered: nothing was spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// Appends an exchange to the file of its day.
pub fn record_spending(home: &Path, entry: &SpendingEntry) -> io::Result<()> {
    let folder = home.join("spending");
    pal_store::create_private_directory(&folder).map_err(|error| io::Error::other(error.to_string()))?;
    pal_store::append_private_line(&file(home, entry.at), &serde_json::to_string(entry)?)
}

/// Spending of the day of `now`, real or simulated.
pub fn read_day_spending(home: &Path, now: Timestamp, is_simulated: bool) -> io::Result<DaySpending> {
    let text = match std::fs::read(file(home, now)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // A line may be cut off by a kill.
    let entries = lines.filter_map(|line| serde_json::from_slice::<SpendingEntry>(line).ok());
    let spent = entries.filter(|entry| entry.simulated == is_simulated).map(|entry| entry.cost_usd).sum();
    Ok(DaySpending { spent, passed: now.milliseconds().rem_euclid(DAY_MS) as f64 / DAY_MS as f64 })
}

/// Spending of a day so far.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DaySpending {
    /// US dollars.
    pub spent: f64,
    /// Part of the day that has passed, from 0 to 1.
    pub passed: f64,
}

impl DaySpending {
    /// Spending by the end of the day at the pace so far.
    pub fn forecast(&self) -> f64 {
        self.spent / self.passed.clamp(FORECAST_MIN, 1.0)
    }

    /// One line for the user: used, left of a budget, and the forecast.
    pub fn line(&self, budget: Option<f64>) -> String {
        let left = match budget {
            Some(budget) if budget > self.spent => {
                format!(", ${:.2} left of ${budget:.2}", budget - self.spent)
            }
            Some(budget) => format!(", the budget of ${budget:.2} is used up"),
            None => String::new(),
        };
        format!(
            "today (UTC): ${:.2} spent{left}; ${:.2} by midnight at this pace",
            self.spent,
            self.forecast()
        )
    }
}

fn file(home: &Path, at: Timestamp) -> PathBuf {
    let day: String = at.to_string().chars().take_while(|letter| *letter != 'T').collect();
    home.join("spending").join(format!("{day}.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    fn record(home: &Path, time: &str, cost_usd: f64, simulated: bool) {
        let entry = SpendingEntry { at: at(time), session: String::from("s"), cost_usd, simulated };
        record_spending(home, &entry).unwrap();
    }

    #[test]
    fn a_day_is_summed_up_apart_from_others_and_from_the_simulator() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(read_day_spending(home.path(), at("2026-11-18T06:00:00Z"), false).unwrap().spent, 0.0);
        record(home.path(), "2026-11-17T23:59:59Z", 7.0, false);
        record(home.path(), "2026-11-18T01:00:00Z", 1.0, false);
        record(home.path(), "2026-11-18T02:00:00Z", 0.25, false);
        record(home.path(), "2026-11-18T02:00:00Z", 40.0, true);
        let day = read_day_spending(home.path(), at("2026-11-18T06:00:00Z"), false).unwrap();
        assert_eq!((day.spent, day.passed, day.forecast()), (1.25, 0.25, 5.0));
        assert_eq!(
            day.line(Some(4.0)),
            "today (UTC): $1.25 spent, $2.75 left of $4.00; $5.00 by midnight at this pace"
        );
        assert_eq!(day.line(None), "today (UTC): $1.25 spent; $5.00 by midnight at this pace");
        assert!(day.line(Some(1.25)).contains("the budget of $1.25 is used up"));
        assert_eq!(read_day_spending(home.path(), at("2026-11-18T06:00:00Z"), true).unwrap().spent, 40.0);
    }

    #[test]
    fn a_line_cut_off_by_a_kill_is_skipped_and_the_first_minutes_do_not_explode() {
        let home = tempfile::tempdir().unwrap();
        record(home.path(), "2026-11-18T00:01:00Z", 0.5, false);
        let path = file(home.path(), at("2026-11-18T00:01:00Z"));
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"at\":\"2026-");
        std::fs::write(&path, text).unwrap();
        let day = read_day_spending(home.path(), at("2026-11-18T00:06:00Z"), false).unwrap();
        assert_eq!((day.spent, day.forecast()), (0.5, 12.0));
    }
}
