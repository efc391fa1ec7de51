//! How a process ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Nobody can tell: it was never started, or it did not even end when it was killed.
    Unknown,
}

impl Status {
    /// Whether it ended by itself and says that all went well.
    pub fn is_success(self) -> bool {
        self == Status::Exited(0)
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Status {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signalled(signal),
            (None, None) => Status::Unknown,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Status::Exited(code) => write!(formatter, "exit code {code}"),
            Status::Signalled(signal) => match signal_name(signal) {
                Some(name) => write!(formatter, "signal {name}"),
                None => write!(formatter, "signal {signal}"),
            },
            Status::Unknown => formatter.write_str("unknown status"),
        }
    }
}

/// The name of a signal that has the same number on all Unix systems, or that commands commonly end by.
pub fn signal_name(signal: i32) -> Option<&'static str> {
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
