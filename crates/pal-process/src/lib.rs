//! Child processes: started in a process group, bounded in time and output, terminated as a whole.
//!
//! [`run_command`] waits for a command and streams its output; [`BackgroundCommands`] runs commands in the
//! background. Either way a command is over when its first process is over: leftover processes are
//! terminated, in its group or outside (`leftover_processes`), and an open pipe delays nothing.

mod background_commands;
mod cancel_token;
mod command_run;
mod command_spec;
mod control_group;
mod leftover_processes;
mod output_capture;
mod pipe_pump;
mod process_group;
mod process_status;
mod process_table;
pub mod sandbox;
mod termination;

pub use background_commands::{BackgroundCommand, BackgroundCommands, BackgroundOutput, BackgroundState};
pub use cancel_token::{CancelToken, CancelWatch};
pub use command_run::{CommandOutcome, SpawnError, TerminationCause, run_command};
pub use command_spec::{CommandInput, CommandSpec, Program, StreamMode, ThreadSetup};
pub use leftover_processes::{
    COMMAND_VARIABLE, EndedProcess, EndedProcesses, ProcessSession, SESSION_VARIABLE, adopt_orphans,
    end_abandoned, end_descendants, is_hangup_ignored, owner_tag, report_later, take_unreported,
};
pub use output_capture::{CaptureLimits, CapturedOutput, OverflowFile};
pub use process_status::ProcessStatus;
