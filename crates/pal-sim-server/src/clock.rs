//! The simulator's clock: the machine's, or one that moves only when something happens.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::Timestamp;

/// How time passes for the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speed {
    /// As everywhere: answers take their time.
    Real,
    /// Answers leave at once, and the clock jumps by the time that they would have taken.
    Virtual,
}

/// A clock of either speed.
#[derive(Debug)]
pub(crate) struct Clock {
    speed: Speed,
    /// Milliseconds since the epoch, where virtual.
    virtual_now: AtomicI64,
}

impl Clock {
    /// A clock that shows the machine's time now.
    pub(crate) fn new(speed: Speed) -> Clock {
        Clock { speed, virtual_now: AtomicI64::new(machine_time()) }
    }

    pub(crate) fn speed(&self) -> Speed {
        self.speed
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_milliseconds(match self.speed {
            Speed::Real => machine_time(),
            Speed::Virtual => self.virtual_now.load(Ordering::SeqCst),
        })
    }

    /// Moves a virtual clock to this moment, unless it is past it.
    pub(crate) fn reach(&self, moment: Timestamp) {
        self.virtual_now.fetch_max(moment.milliseconds(), Ordering::SeqCst);
    }

    /// Moves a virtual clock on; returns the new time, or none if the clock is a real one.
    pub(crate) fn advance(&self, by: Duration) -> Option<Timestamp> {
        if self.speed == Speed::Real {
            return None;
        }
        let mut reached = self.now();
        // Time may have passed for an answer meanwhile, so the jump starts from the clock, not from what was read.
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
    fn a_virtual_clock_moves_only_when_told_and_never_back() {
        let clock = Clock::new(Speed::Virtual);
        let start = clock.now();
        assert_eq!(clock.now(), start);
        let later = clock.advance(Duration::from_secs(3_600)).unwrap();
        assert_eq!(later.milliseconds() - start.milliseconds(), 3_600_000);
        clock.reach(start);
        assert_eq!(clock.now(), later);
        clock.advance(Duration::MAX);
        assert!(clock.now() > later);
        assert_eq!(Clock::new(Speed::Real).advance(Duration::from_secs(1)), None);
    }
}
