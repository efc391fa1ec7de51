//! The other side of the wire: a provider that can be asked without a key, strict, with a real prefix cache, real
//! token counts, prices and faults.
//!
//! Pure: the time is an argument, chance comes from a seed, and an answer is a list of bytes with the moment at
//! which each leaves. `pal-sim-server` puts it behind a socket.

mod chance;
mod faults;
mod model;
mod nearest;
mod reply;
// The handler of requests speaks through it; nothing else does.
#[allow(dead_code)]
mod speak;

pub use faults::{FaultError, Faults};
pub use model::{Answer, Ask, AskMessage, Model, Said, Stop};
pub use reply::{Chunk, Ending, HttpRequest, Reply};
