//! Exports as a collector gets them, read by what the makers of the protocol generate from it.

mod export;
mod trouble;
mod worked;
