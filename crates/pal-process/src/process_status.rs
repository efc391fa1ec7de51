//! Exit status of a process.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Exit status of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessStatus {
    /// Exited with this code.
    Exited(i32),
    /// Ended by this signal.
    Signalled(i32),
    /// Unknown: it was never started, or it survived SIGKILL.
    Unknown,
}

impl ProcessStatus {
    /// Returns whether it exited with code 0.
    pub fn is_success(self) -> bool {
        self == ProcessStatus::Exited(0)
    }
}

impl From<ExitStatus> for ProcessStatus {
    fn from(status: ExitStatus) -> ProcessStatus {
        match (status.code(), status.signal()) {
            (Some(code), _) => ProcessStatus::Exited(code),
            (None, Some(signal)) => ProcessStatus::Signalled(signal),
            (None, None) => ProcessStatus::Unknown,
        }
    }
}

impl fmt::Display for ProcessStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ProcessStatus::Exited(code) => write!(formatter, "exit code {code}"),
            ProcessStatus::Signalled(signal) => match signal_name(signal) {
                Some(name) => write!(formatter, "signal {name}"),
                None => write!(formatter, "signal {signal}"),
            },
            ProcessStatus::Unknown => formatter.write_str("unknown status"),
        }
    }
}

/// Name of a signal that is common to Unix systems or often ends commands.
fn signal_name(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name)
}
