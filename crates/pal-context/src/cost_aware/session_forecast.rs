//! Session forecast: remaining requests, growth per request and pauses, learnt from the session on top of
//! recorded ones; and the reliability of such forecasts, in bins.

use std::time::Duration;

use pal_model::{ActivityStats, PAUSE_LIMITS, Timestamp};
use serde::Serialize;

use super::{FittedFigures, fitted_figures};

/// Forecast of a session.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SessionForecast {
    /// Expected number of remaining requests.
    pub requests: f64,
    /// Expected growth per request in tokens.
    pub growth: f64,
    /// Probabilities of the pause before a request: up to 5 minutes, up to 15, up to an hour, longer.
    pub pauses: [f64; 4],
    /// Probabilities of the pause before a person's message.
    pub turn_pauses: [f64; 4],
    /// Expected share of requests that open a user turn.
    pub turn_share: f64,
}

impl SessionForecast {
    /// Forecast at a request that is about to be sent: the pause that it ends is over, so it counts like those before it.
    pub fn at_request(activity: &ActivityStats, now: Timestamp, figures: &FittedFigures) -> SessionForecast {
        let mut activity = activity.clone();
        activity.record_request(now);
        SessionForecast::from_activity(&activity, figures)
    }

    /// Forecast for a session with this activity so far. People pause between turns, not between the requests of one: so pauses are
    /// learnt per turn, and a hundred requests of one turn say nothing about the next pause.
    pub fn from_activity(activity: &ActivityStats, figures: &FittedFigures) -> SessionForecast {
        let blend = |prior: f64, weight: f64, sum: f64, times: f64| (prior * weight + sum) / (weight + times);
        let shares = |prior: [f64; 4], weight: f64, counts: [u64; 4]| -> [f64; 4] {
            let times = counts.iter().sum::<u64>() as f64;
            std::array::from_fn(|bucket| blend(prior[bucket], weight, counts[bucket] as f64, times))
        };
        let turns = activity.turn_pauses.iter().sum::<u64>() as f64;
        let requests = activity.pauses.iter().sum::<u64>() as f64;
        let turn_share = blend(figures.turn_share, fitted_figures::PRIOR_REQUESTS, turns, requests);
        let turn_pauses = shares(figures.turn_pauses, fitted_figures::PRIOR_TURNS, activity.turn_pauses);
        let loop_pauses = shares(figures.loop_pauses, fitted_figures::PRIOR_LOOPS, activity.loop_pauses());
        SessionForecast {
            requests: figures.requests_to_come,
            growth: blend(
                figures.growth,
                fitted_figures::PRIOR_REQUESTS,
                activity.grown_tokens as f64,
                activity.grown_times as f64,
            )
            .max(1.0),
            pauses: std::array::from_fn(|bucket| {
                turn_share * turn_pauses[bucket] + (1.0 - turn_share) * loop_pauses[bucket]
            }),
            turn_pauses,
            turn_share,
        }
    }

    /// Probability of at least `requests` more requests. Sessions end with a constant probability per
    /// request, as the recorded ones do.
    pub fn survival_probability(&self, requests: f64) -> f64 {
        (-requests / self.requests).exp()
    }

    /// Expected number of requests among the next `most`.
    pub fn requests_within(&self, most: f64) -> f64 {
        self.requests * (1.0 - self.survival_probability(most))
    }

    /// Probability that a person sends nothing within `time` of the last response, because the pause is longer
    /// or the session is over. Between the pause classes the probability falls by the same factor whenever the
    /// time doubles, and below five minutes as it does above, as in the recorded sessions (143, 135, 85, 65 and
    /// 33 of 3,615 pauses over 4.5, 5, 9.5, 15 and 60 minutes).
    pub fn silence_probability(&self, time: Duration) -> f64 {
        let [_, soon, later, last] = self.turn_pauses;
        let longer = [soon + later + last, later + last, last].map(|share| share.max(1e-9));
        let from = usize::from(time > PAUSE_LIMITS[1]);
        let (share, next) = (longer[from], longer[from + 1]);
        let way = |time: Duration| (time.as_secs_f64().max(1.0) / PAUSE_LIMITS[from].as_secs_f64()).ln();
        let longer = share * (next / share).powf(way(time) / way(PAUSE_LIMITS[from + 1]));
        let ends = self.end_probability();
        (1.0 - ends) * longer.min(1.0) + ends
    }

    /// Probability that the current user turn is the last one.
    pub fn end_probability(&self) -> f64 {
        let turn_requests = 1.0 / self.turn_share.max(1e-6);
        1.0 - self.survival_probability(turn_requests)
    }

    /// Probability of a pause over five minutes and up to an hour before the next request.
    pub fn pause_within_an_hour(&self) -> f64 {
        self.pauses[1] + self.pauses[2]
    }

    /// Probability of a pause over an hour.
    pub fn pause_beyond_an_hour(&self) -> f64 {
        self.pauses[3]
    }
}

/// Reliability of forecasts in one bin of predicted values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ForecastReliability {
    /// Mean prediction.
    pub predicted: f64,
    /// Mean outcome.
    pub actual: f64,
    /// Number of cases.
    pub cases: u64,
}

/// Groups cases of (prediction, outcome) into bins of about equal size.
fn binned(mut cases: Vec<(f64, f64)>, bins: usize) -> Vec<ForecastReliability> {
    cases.sort_by(|one, other| one.0.total_cmp(&other.0));
    let size = cases.len().div_ceil(bins.max(1)).max(1);
    let mean = |values: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        values.iter().map(of).sum::<f64>() / values.len() as f64
    };
    let bin = |values: &[(f64, f64)]| ForecastReliability {
        predicted: mean(values, |case| case.0),
        actual: mean(values, |case| case.1),
        cases: values.len() as u64,
    };
    cases.chunks(size).map(bin).collect()
}

/// Compares the predicted probability of `ahead` more requests with the outcomes. Each session is its activity before each of its
/// requests, in order, and the figures that its forecast starts from.
pub fn turn_reliability(
    sessions: &[(&[ActivityStats], FittedFigures)],
    ahead: &[usize],
) -> Vec<ForecastReliability> {
    let over = |requests: usize| {
        let mut cases = Vec::new();
        for (session, figures) in sessions {
            cases.extend(session.iter().enumerate().map(|(at, activity)| {
                let happened = session.len() - at > requests;
                let forecast = SessionForecast::from_activity(activity, figures);
                (forecast.survival_probability(requests as f64), f64::from(u8::from(happened)))
            }));
        }
        binned(cases, 1)
    };
    ahead.iter().flat_map(|requests| over(*requests)).collect()
}

/// Compares the predicted probability of pauses longer than a bound of the pause classes with the outcomes.
pub fn pause_reliability(
    sessions: &[(&[ActivityStats], FittedFigures)],
    end: usize,
    bins: usize,
) -> Vec<ForecastReliability> {
    let longer = |pauses: [f64; 4]| pauses[(end + 1).min(PAUSE_LIMITS.len())..].iter().sum::<f64>();
    let mut cases = Vec::new();
    for (session, figures) in sessions {
        for pair in session.windows(2) {
            let [before, after] = pair else { continue };
            let counted = |activity: &ActivityStats| longer(activity.pauses.map(|count| count as f64));
            cases.push((
                longer(SessionForecast::from_activity(before, figures).pauses),
                counted(after) - counted(before),
            ));
        }
    }
    binned(cases, bins)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &FittedFigures = &FittedFigures::SHIPPED;

    #[test]
    fn longer_sessions_outweigh_the_prior() {
        let mut activity = ActivityStats::default();
        let prior = SessionForecast::from_activity(&activity, FIGURES);
        let is_prior = |pair: (f64, f64)| (pair.0 - pair.1).abs() < 1e-12;
        assert!(prior.turn_pauses.into_iter().zip(FIGURES.turn_pauses).all(is_prior), "{prior:?}");
        for number in 0..400 {
            // A request every ten minutes.
            activity.record_request(Timestamp::from_milliseconds(number * 600_000));
        }
        let learnt = SessionForecast::from_activity(&activity, FIGURES);
        assert!(learnt.pause_within_an_hour() > 0.85, "{learnt:?}");
        assert!((learnt.pauses.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(learnt.growth, prior.growth, "nothing was answered");
    }

    #[test]
    fn requests_of_one_turn_say_nothing_about_people_s_pauses() {
        let mut activity = ActivityStats::default();
        activity.record_user_message();
        for number in 0..100 {
            activity.record_request(Timestamp::from_milliseconds(number * 1_000));
        }
        let forecast = SessionForecast::from_activity(&activity, FIGURES);
        assert_eq!(
            forecast.turn_pauses,
            SessionForecast::from_activity(&ActivityStats::default(), FIGURES).turn_pauses
        );
        assert!(forecast.turn_share < 0.02 && forecast.pauses[0] > 0.99, "{forecast:?}");
        // Five turns with a pause of ten minutes each weigh more than the prior.
        for number in 0..5 {
            activity.record_user_message();
            activity.record_request(Timestamp::from_milliseconds(100_000 + (number + 1) * 600_000));
        }
        let paused = SessionForecast::from_activity(&activity, FIGURES);
        assert!(paused.turn_pauses[1] > 0.5 && paused.turn_pauses[0] < 0.5, "{paused:?}");
    }

    #[test]
    fn expected_requests_are_bounded_by_the_horizon() {
        let forecast = SessionForecast::from_activity(&ActivityStats::default(), FIGURES);
        assert!(forecast.requests_within(10.0) < 10.0 && forecast.requests_within(10.0) > 9.0);
        assert!((forecast.requests_within(1e6) - forecast.requests).abs() < 1e-6);
        assert_eq!(forecast.survival_probability(0.0), 1.0);
    }

    #[test]
    fn reliability_separates_good_and_bad_forecasts() {
        // Four sessions of which three have a pause of ten minutes before every request.
        let session = |minutes: i64| {
            let mut rhythm = ActivityStats::default();
            let mut states = Vec::new();
            for number in 0..200 {
                rhythm.record_request(Timestamp::from_milliseconds(number * minutes * 60_000));
                states.push(rhythm.clone());
            }
            states
        };
        let sessions: Vec<_> = [10, 10, 10, 1].into_iter().map(session).collect();
        let sessions: Vec<(&[ActivityStats], FittedFigures)> =
            sessions.iter().map(|session| (session.as_slice(), *FIGURES)).collect();
        let bins = pause_reliability(&sessions, 0, 2);
        assert_eq!(bins.iter().map(|bin| bin.cases).sum::<u64>(), 4 * 199);
        assert!(bins[0].predicted < bins[1].predicted && bins[0].actual < bins[1].actual, "{bins:?}");
        assert_eq!(bins[1].actual, 1.0);
        let turns = turn_reliability(&sessions, &[0, 100, 200]);
        assert_eq!((turns[0].predicted, turns[0].actual), (1.0, 1.0));
        assert_eq!((turns[1].actual, turns[2].actual), (0.5, 0.0));
    }
}
