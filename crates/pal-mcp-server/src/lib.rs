//! Memory and recall for other agents: a server of the Model Context Protocol on standard input and output.
//!
//! It offers four tools: `memory_search`, `memory_read`, `memory_write` and `recall`. Whoever writes is named in the history of the
//! memory, secrets are masked, every change can be taken back. What is handed out was written by others and may be anything: tags
//! by which programs speak to models are defused in it.

mod asked;
mod desk;
mod offered;
mod server;

pub use desk::Offer;
pub use server::serve;
