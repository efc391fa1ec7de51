//! What the tests of several crates share: scenarios, soups of entries, and the way to the real data.
//!
//! A development dependency only; nothing here is part of the program.

mod blocks;
mod collector;
mod data;
mod scenario;
mod script;
mod soup;

pub use blocks::{assistant_block, user_block};
pub use collector::{Collector, Manner, Posted};
pub use data::{cases, data_dir, session_files};
pub use scenario::{Scenario, scenarios};
pub use script::script;
pub use soup::{Soup, soup};
