//! The price-aware policy (§10.5): before each request it weighs what every act would cost from here on, and takes the
//! cheapest.
//!
//! Three parts, each of plain numbers: a [`Forecast`] learnt from the session, a [`Tariff`] from the card, and what an
//! act leaves of the context, a [`Change`]. [`weigh`] prices it; [`choose`] picks. What the figures rest on is in
//! `fitted.rs`, and `cargo run -p xtask -- fit` makes them.
//!
//! All that is learnt is in the state of the view, which a boundary carries: a resumed session decides the same.

mod choose;
mod cost;
mod fitted;
mod forecast;
mod lifetime;
mod needs;
mod ping;

pub use choose::{Choice, Deed};
pub(crate) use choose::{Clearable, choose, worth_clearing};
pub use cost::{Change, Stand, Tariff, Weighed, weigh};
pub use forecast::{Forecast, Reliability, pause_reliability, turn_reliability};
pub(crate) use lifetime::cheapest_lifetime;
pub use lifetime::{Keeping, Pausing, keep_costs};
pub(crate) use needs::Files;
pub use needs::{Need, NeedAge, Since, needs, share_needed};
pub(crate) use ping::judged_ping;
pub use ping::{PINGS_MOST, Ping, ping_due};

/// What may be set about thrift.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thrift {
    /// How much it matters that what leaves the view may be needed again, from 0 to 1: at a half, reading it again is
    /// priced at what it is expected to cost; at 0 not at all, at 1 twice as high.
    pub fidelity: f64,
    /// Whether requests may be sent that only keep the cache warm.
    pub pings: bool,
}

impl Thrift {
    /// What holds when nothing is set.
    pub const STANDARD: Thrift = Thrift { fidelity: 0.5, pings: false };

    /// By how much the expected price of a loss is multiplied.
    pub(crate) fn weight(self) -> f64 {
        2.0 * self.fidelity.clamp(0.0, 1.0)
    }
}
