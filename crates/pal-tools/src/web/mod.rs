//! Tool that fetches web pages.

mod public_address;
mod web_fetch;
mod web_page;

pub use web_fetch::WebFetchTool;
