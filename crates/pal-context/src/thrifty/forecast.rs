//! What is to come: how many requests, how much each adds, how long the pauses are. Learnt from the session so far, on top
//! of what recorded sessions were like; and how well such a forecast was, in bins that can be drawn.

use std::time::Duration;

use pal_model::{PAUSES, Rhythm};
use serde::Serialize;

use super::fitted;

/// What is to come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Forecast {
    /// Requests to come, on average.
    pub requests: f64,
    /// Tokens that each adds.
    pub growth: f64,
    /// How likely the pause before a request is up to 5 minutes, up to 15, up to an hour, longer.
    pub pauses: [f64; 4],
}

impl Forecast {
    /// The forecast for a session with this rhythm so far.
    pub fn of(rhythm: &Rhythm) -> Forecast {
        let blend = |prior: f64, sum: f64, times: f64| {
            (prior * fitted::PRIOR_REQUESTS + sum) / (fitted::PRIOR_REQUESTS + times)
        };
        let times: u64 = rhythm.pauses.iter().sum();
        let mut pauses = fitted::PAUSES;
        for (share, seen) in pauses.iter_mut().zip(rhythm.pauses) {
            *share = blend(*share, seen as f64, times as f64);
        }
        Forecast {
            requests: fitted::REQUESTS_TO_COME,
            growth: blend(fitted::GROWTH, rhythm.grown_tokens as f64, rhythm.grown_times as f64).max(1.0),
            pauses,
        }
    }

    /// How likely at least so many requests are to come. Sessions end as if each request had the same chance to be the
    /// last: that is what the recorded ones look like.
    pub fn goes_on_for(&self, requests: f64) -> f64 {
        (-requests / self.requests).exp()
    }

    /// Requests to come, on average, of the next so many.
    pub fn requests_within(&self, most: f64) -> f64 {
        self.requests * (1.0 - self.goes_on_for(most))
    }

    /// How likely no request comes within so much time, because the pause is longer or the session is over. Between the sorts
    /// of pauses the chance falls by the same share whenever the time doubles, and below five minutes as it does above:
    /// so it was in the recorded sessions (143, 135, 85, 65 and 33 of 3 615 pauses over 4.5, 5, 9.5, 15 and 60 minutes).
    pub fn silent_beyond(&self, time: Duration) -> f64 {
        let [_, soon, later, last] = self.pauses;
        let longer = [soon + later + last, later + last, last].map(|share| share.max(1e-9));
        let from = usize::from(time > PAUSES[1]);
        let (share, next) = (longer[from], longer[from + 1]);
        let way = |time: Duration| (time.as_secs_f64().max(1.0) / PAUSES[from].as_secs_f64()).ln();
        let longer = share * (next / share).powf(way(time) / way(PAUSES[from + 1]));
        let goes_on = self.goes_on_for(1.0);
        goes_on * longer.min(1.0) + (1.0 - goes_on)
    }

    /// How likely the pause before the next request is longer than five minutes and at most an hour.
    pub fn pause_within_an_hour(&self) -> f64 {
        self.pauses[1] + self.pauses[2]
    }

    /// How likely it is longer than an hour.
    pub fn pause_beyond_an_hour(&self) -> f64 {
        self.pauses[3]
    }
}

/// How well a forecast was, over cases that were told apart by what was predicted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Reliability {
    /// What was predicted, on average.
    pub predicted: f64,
    /// What happened, on average.
    pub actual: f64,
    /// How many cases.
    pub cases: u64,
}

/// Sums up cases of what was predicted and what happened, in so many bins with about as many cases each.
fn binned(mut cases: Vec<(f64, f64)>, bins: usize) -> Vec<Reliability> {
    cases.sort_by(|one, other| one.0.total_cmp(&other.0));
    let size = cases.len().div_ceil(bins.max(1)).max(1);
    let mean = |values: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        values.iter().map(of).sum::<f64>() / values.len() as f64
    };
    let bin = |values: &[(f64, f64)]| Reliability {
        predicted: mean(values, |case| case.0),
        actual: mean(values, |case| case.1),
        cases: values.len() as u64,
    };
    cases.chunks(size).map(bin).collect()
}

/// How likely it was that sessions go on for another `ahead` requests, against how many did. Each session is its rhythm
/// before each of its requests, in order.
pub fn turn_reliability(sessions: &[impl AsRef<[Rhythm]>], ahead: &[usize]) -> Vec<Reliability> {
    let over = |requests: usize| {
        let mut cases = Vec::new();
        for session in sessions.iter().map(AsRef::as_ref) {
            cases.extend(session.iter().enumerate().map(|(at, rhythm)| {
                let happened = session.len() - at > requests;
                (Forecast::of(rhythm).goes_on_for(requests as f64), f64::from(u8::from(happened)))
            }));
        }
        binned(cases, 1)
    };
    ahead.iter().flat_map(|requests| over(*requests)).collect()
}

/// How likely pauses longer than that end of [`PAUSES`] were said to be, against how many there were.
pub fn pause_reliability(sessions: &[impl AsRef<[Rhythm]>], end: usize, bins: usize) -> Vec<Reliability> {
    let longer = |pauses: [f64; 4]| pauses[(end + 1).min(PAUSES.len())..].iter().sum::<f64>();
    let mut cases = Vec::new();
    for session in sessions {
        for pair in session.as_ref().windows(2) {
            let [before, after] = pair else { continue };
            let counted = |rhythm: &Rhythm| longer(rhythm.pauses.map(|count| count as f64));
            cases.push((longer(Forecast::of(before).pauses), counted(after) - counted(before)));
        }
    }
    binned(cases, bins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::Timestamp;

    #[test]
    fn a_session_is_believed_the_more_the_longer_it_lasts() {
        let mut rhythm = Rhythm::default();
        let prior = Forecast::of(&rhythm);
        let is_prior = |pair: (f64, f64)| (pair.0 - pair.1).abs() < 1e-12;
        assert!(prior.pauses.into_iter().zip(fitted::PAUSES).all(is_prior), "{prior:?}");
        for number in 0..400 {
            // Every request after ten minutes.
            rhythm.requested(Timestamp::from_milliseconds(number * 600_000));
        }
        let learnt = Forecast::of(&rhythm);
        assert!(learnt.pause_within_an_hour() > 0.85, "{learnt:?}");
        assert!((learnt.pauses.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(learnt.growth, prior.growth, "nothing was answered");
    }

    #[test]
    fn requests_to_come_are_bounded_by_how_far_one_looks() {
        let forecast = Forecast::of(&Rhythm::default());
        assert!(forecast.requests_within(10.0) < 10.0 && forecast.requests_within(10.0) > 9.0);
        assert!((forecast.requests_within(1e6) - forecast.requests).abs() < 1e-6);
        assert_eq!(forecast.goes_on_for(0.0), 1.0);
    }

    #[test]
    fn reliability_tells_a_good_forecast_from_a_bad_one() {
        // Four sessions of which three have a pause of ten minutes before every request.
        let session = |minutes: i64| {
            let mut rhythm = Rhythm::default();
            let mut states = Vec::new();
            for number in 0..200 {
                rhythm.requested(Timestamp::from_milliseconds(number * minutes * 60_000));
                states.push(rhythm.clone());
            }
            states
        };
        let sessions: Vec<_> = [10, 10, 10, 1].into_iter().map(session).collect();
        let bins = pause_reliability(&sessions, 0, 2);
        assert_eq!(bins.iter().map(|bin| bin.cases).sum::<u64>(), 4 * 199);
        assert!(bins[0].predicted < bins[1].predicted && bins[0].actual < bins[1].actual, "{bins:?}");
        assert_eq!(bins[1].actual, 1.0);
        let turns = turn_reliability(&sessions, &[0, 100, 200]);
        assert_eq!((turns[0].predicted, turns[0].actual), (1.0, 1.0));
        assert_eq!((turns[1].actual, turns[2].actual), (0.5, 0.0));
    }
}
