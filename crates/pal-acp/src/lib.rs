//! The agent in editors: the agent's side of the Agent Client Protocol, version 1, over standard input and output.
//!
//! [`serve`] speaks with one client until it leaves. Every session lives on a thread of its own with its own
//! [`pal_agent::Agent`]; the connection only passes on what comes, so that nothing which takes time keeps another message
//! waiting. How an agent is made is not known here: a [`Host`] says what one is made of.
//!
//! Whatever goes on in a session is told as updates by one place, `teller`, in the order in which it happened; a prompt is
//! answered behind all that belongs to it.

mod calls;
mod content;
mod host;
mod lines;
mod methods;
mod modes;
mod opening;
mod questions;
mod replay;
mod server;
mod servers;
mod session;
mod teller;
mod worker;

pub use host::{Command, Host, KeptSession, Observer, Prepared, Refusal, Wanted};
pub use server::{ServeError, serve};
