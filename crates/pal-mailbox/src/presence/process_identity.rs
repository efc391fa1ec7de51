//! Identity of a process that cannot be confused with a later one of the same PID.

use serde::{Deserialize, Serialize};

/// A process; equal if PID and start time are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Start time in the system's own format; empty if unknown.
    pub began: String,
}

impl ProcessIdentity {
    /// The current process.
    pub fn current() -> ProcessIdentity {
        let pid = std::process::id();
        ProcessIdentity::of(pid).unwrap_or(ProcessIdentity { pid, began: String::new() })
    }

    /// The running process with this PID, if any.
    pub fn of(pid: u32) -> Option<ProcessIdentity> {
        start_time(pid).map(|began| ProcessIdentity { pid, began })
    }

    /// Reports whether the process still runs.
    pub fn is_alive(&self) -> bool {
        ProcessIdentity::of(self.pid).as_ref() == Some(self)
    }
}

/// Start time in ticks since boot, and the boot id.
#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks_in(&stat)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{ticks}@{}", boot.trim()))
}

/// Field `starttime` of a running process. The program name is in parentheses and may contain anything, so
/// fields are counted after the last one.
#[cfg(target_os = "linux")]
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let has_ended = matches!(state, "Z" | "X" | "x");
    fields.nth(18).filter(|_| !has_ended)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn start_time(pid: u32) -> Option<String> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(rustix::io::Errno::PERM) => Some(String::new()),
        Err(_) => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_parsed_for_any_program_name() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(ticks_in(&format!("7 (a) R 9) S {rest}")), Some(4711));
        assert_eq!(ticks_in(&format!("7 (zombie) Z {rest}")), None);
        assert_eq!(ticks_in("7 (short) S 1"), None);
        assert!(ProcessIdentity::current().is_alive());
        let later = ProcessIdentity { began: String::from("1@another"), ..ProcessIdentity::current() };
        assert!(!later.is_alive());
    }
}
