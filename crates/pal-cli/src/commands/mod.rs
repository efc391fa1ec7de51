//! One file a command: each takes what was typed and the settings, calls the crates, and prints.

mod ask;
mod breaks;
mod check;
mod compact;
mod config;
mod context;
mod cost;
mod export;
mod import;
mod pin;
mod print;
mod render;
mod replay;
mod sessions;
mod sim;
mod tokens;
mod uncompact;
mod view;

pub(crate) use ask::ask;
pub(crate) use breaks::breaks;
pub(crate) use check::check;
pub(crate) use compact::compact;
pub(crate) use config::config;
pub(crate) use context::context;
pub(crate) use cost::cost;
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use pin::pin;
pub(crate) use print::print;
pub(crate) use render::render;
pub(crate) use replay::replay;
pub(crate) use sessions::sessions;
pub(crate) use sim::sim;
pub(crate) use tokens::tokens;
pub(crate) use uncompact::uncompact;
pub(crate) use view::view;
