//! The simulator's clock: the system clock, or a virtual one that only moves on events.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::Timestamp;

/// Clock mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockSpeed {
    /// System time: answers take their time.
    Real,
    /// Answers are sent at once and the clock jumps by the time they would have taken.
    Virtual,
}

/// A real or virtual clock.
#[derive(Debug)]
pub(crate) struct SimClock {
    speed: ClockSpeed,
    /// Virtual time in milliseconds since the epoch.
    virtual_now: AtomicI64,
}

impl SimClock {
    /// Creates a clock that starts at system time.
    pub(crate) fn new(speed: ClockSpeed) -> SimClock {
        SimClock { speed, virtual_now: AtomicI64::new(machine_time()) }
    }

    pub(crate) fn speed(&self) -> ClockSpeed {
        self.speed
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_milliseconds(match self.speed {
            ClockSpeed::Real => machine_time(),
            ClockSpeed::Virtual => self.virtual_now.load(Ordering::SeqCst),
        })
    }

    /// Moves a virtual clock forward to this moment; never back.
    pub(crate) fn move_to(&self, moment: Timestamp) {
        self.virtual_now.fetch_max(moment.milliseconds(), Ordering::SeqCst);
    }

    /// Advances a virtual clock and returns the new time; `None` for a real clock.
    pub(crate) fn advance(&self, by: Duration) -> Option<Timestamp> {
        if self.speed == ClockSpeed::Real {
            return None;
        }
        let mut reached = self.now();
        // An answer may have moved the clock meanwhile, so the jump starts from the stored time.
        let jump = |now| {
            reached = Timestamp::from_milliseconds(now).after(by);
            Some(reached.milliseconds())
        };
        let _ = self.virtual_now.fetch_update(Ordering::SeqCst, Ordering::SeqCst, jump);
        Some(reached)
    }
}

fn machine_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_clock_moves_only_forward_on_request() {
        let clock = SimClock::new(ClockSpeed::Virtual);
        let start = clock.now();
        assert_eq!(clock.now(), start);
        let later = clock.advance(Duration::from_secs(3_600)).unwrap();
        assert_eq!(later.milliseconds() - start.milliseconds(), 3_600_000);
        clock.move_to(start);
        assert_eq!(clock.now(), later);
        clock.advance(Duration::MAX);
        assert!(clock.now() > later);
        assert_eq!(SimClock::new(ClockSpeed::Real).advance(Duration::from_secs(1)), None);
    }
}
