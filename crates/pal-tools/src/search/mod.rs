//! The tools that look for files, by what is in them and by what they are called.

mod glob;
mod grep;
mod hits;
mod walk;

pub use glob::Glob;
pub use grep::Grep;
