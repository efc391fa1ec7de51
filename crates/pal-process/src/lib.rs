//! Child processes: started in a group of their own, bounded in time and output, ended as a whole.
//!
//! [`run`] waits for a command and streams what it prints; [`Background`] keeps commands that go on beside the session.
//! Either way a command is over when the process that was started is over: what it left behind is ended, in its group or
//! out of it (`leftovers`), and nothing that keeps a pipe open can make anybody wait.

mod background;
mod cancel;
mod capture;
mod control_group;
mod group;
mod leftovers;
mod process_table;
mod pump;
mod run;
mod spec;
mod status;

pub use background::{Background, News, State, Task};
pub use cancel::{Cancel, Watch};
pub use capture::{Captured, Keep, Overflow};
pub use leftovers::{
    COMMAND_VARIABLE, EndedProcess, EndedProcesses, ProcessSession, SESSION_VARIABLE, adopt_orphans,
    end_abandoned, end_descendants, is_hangup_ignored, owner_mark, take_untold, tell_later,
};
pub use run::{Finished, NotStarted, Stopped, run};
pub use spec::{Input, Program, Spec, Streams, ThreadSetup};
pub use status::{Status, signal_name};
