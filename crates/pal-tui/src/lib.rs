//! The terminal program: a conversation that grows in the terminal's own scrollback, and below it a small region that is
//! drawn anew: the end of the answer, tools that run, what is typed, the state of the session.
//!
//! Nothing here knows how an agent is made. [`run`] gets an [`Origin`] of what happens ([`Told`]) and a place for what the
//! user wants ([`Wish`]); commands are answered by [`Commands`]. What is finished is printed once and never touched again, so
//! the scrollback stays whole whatever the window does. What is shown is computed by pure parts (`transcript`, `markdown`,
//! `difference`, `editor`, `picker`, `asking`, `consent_document`); only `screen` writes, only `app` waits.

mod ansi;
mod app;
mod asking;
mod attach;
mod consent_document;
mod difference;
mod editor;
mod files;
mod history;
mod keys;
mod live;
mod markdown;
mod modes;
mod paint;
mod picker;
mod plain;
mod screen;
mod status;
mod stream;
mod suggest;
mod theme;
mod told;
mod transcript;

pub use app::run;
pub use markdown::rendered;
pub use plain::run_plain;
pub use screen::{Live, Screen};
pub use stream::Stream;
pub use theme::Theme;
pub use told::{Choice, CommandInfo, Commands, Consent, Facts, Origin, Outcome, Start, Told, Wish};
pub use transcript::Transcript;
