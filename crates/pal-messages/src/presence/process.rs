//! A process that cannot be taken for a later one with the same number.

use serde::{Deserialize, Serialize};

/// A process. Two are equal if number and beginning are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in the words of the system; empty where the system does not tell.
    pub began: String,
}

impl Process {
    /// This process.
    pub fn current() -> Process {
        let pid = std::process::id();
        Process::of(pid).unwrap_or(Process { pid, began: String::new() })
    }

    /// The process that has this number now, if there is one that has not ended.
    pub fn of(pid: u32) -> Option<Process> {
        began(pid).map(|began| Process { pid, began })
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        Process::of(self.pid).as_ref() == Some(self)
    }
}

/// The ticks since the start of the machine, and which start that was.
#[cfg(target_os = "linux")]
fn began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks_in(&stat)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{ticks}@{}", boot.trim()))
}

/// The field `starttime` of a process that has not ended. The name of the program stands in parentheses and may hold
/// anything, so counting begins behind the last of them.
#[cfg(target_os = "linux")]
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let has_ended = matches!(state, "Z" | "X" | "x");
    fields.nth(18).filter(|_| !has_ended)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn began(pid: u32) -> Option<String> {
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
    fn the_beginning_is_read_whatever_the_program_is_called() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(ticks_in(&format!("7 (a) R 9) S {rest}")), Some(4711));
        assert_eq!(ticks_in(&format!("7 (zombie) Z {rest}")), None);
        assert_eq!(ticks_in("7 (short) S 1"), None);
        assert!(Process::current().is_alive());
        let later = Process { began: String::from("1@another"), ..Process::current() };
        assert!(!later.is_alive());
    }
}
