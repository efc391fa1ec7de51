//! The agent: a session that is worked on by a model with tools, under permissions and hooks.
//!
//! [`Agent`] joins the engine with a provider, tools, permissions and hooks, and tells everything that happens as plain
//! [`Event`]s. It runs on the thread that calls it; a [`Handle`] steers and interrupts it from any other.

mod agent;
mod agents;
mod allowance;
mod around;
mod aside;
mod asking;
mod background;
mod clock;
mod commanded;
mod compacting;
mod consent;
mod desk;
mod error;
mod event;
mod fencing;
mod gate;
mod handle;
mod inner;
mod line;
mod listening;
mod note_keeping;
mod opening;
mod options;
mod output_limit;
mod post;
mod remembering;
mod reminding;
mod restoring;
mod servers;
mod switched;
mod telling;
mod timing;
mod voice;
mod warming;
mod words;
mod workers;

pub use agent::Agent;
pub use agents::{Agents, Assignment, AtWork, work_as_teammate};
pub use allowance::{Allowance, Background, BackgroundRun, background};
pub use background::{Dream, DreamReport, DreamState, DreamTask, DreamTurn, Gate, GateSettings, Gates};
pub use clock::Clock;
pub use commanded::Preview;
pub use consent::{ConsentMark, MarkSentence};
pub use error::AgentError;
pub use event::{Began, Denial, End, Ended, Event, Exchanged, telling};
pub use gate::{Answer, Asked, Asking};
pub use handle::Handle;
pub use line::{Exchange, ExchangeEnd, Line, Step};
pub use options::{Above, Beginning, Fencing, Known, Learning, Models, Options, Serving, Starting};
pub use post::{Post, SendError, Sent, send};
pub use remembering::memory_index;
pub use restoring::{directory_around, text_inside};
pub use switched::apply_switches;
pub use voice::Voice;
