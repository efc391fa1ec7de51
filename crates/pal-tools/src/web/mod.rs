//! The tool that fetches pages.

mod address;
mod fetch;
mod page;

pub use fetch::WebFetch;
