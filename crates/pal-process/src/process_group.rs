//! Process groups: watched without being reaped, and terminated as a whole.

use std::io::{self, PipeWriter, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use crate::leftover_processes::{EndedProcess, living_adopted};
use crate::process_table::ProcessTable;
use crate::termination::{GRACE_PERIOD, KILL_TIMEOUT, SETTLE_TIME, wait_until};

/// Maximum poll interval for a group that is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Process group of a child, identified by the child's pid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessGroup(Pid);

impl ProcessGroup {
    pub(crate) fn of(child: &Child) -> ProcessGroup {
        ProcessGroup(Pid::from_child(child))
    }

    /// Sends SIGTERM to the group, then SIGCONT for stopped processes.
    pub(crate) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Sends SIGKILL to the group.
    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Terminates the leftovers of a reaped child; `None` if there were none. Processes that the system does
    /// not list are ended but not named.
    ///
    /// A group id is not reused while the group has members, so no other process is hit.
    pub(crate) fn end_leftovers(self) -> Option<Vec<EndedProcess>> {
        if self.is_gone_within(SETTLE_TIME) {
            return None;
        }
        let members = ProcessTable::read().group_members(self.0.as_raw_nonzero().get());
        let ended = members
            .into_iter()
            .map(|key| EndedProcess { pid: key.pid, command: key.command_line() })
            .collect();
        self.terminate();
        if !self.is_gone_within(GRACE_PERIOD) {
            self.kill();
            self.is_gone_within(KILL_TIMEOUT);
        }
        Some(ended)
    }

    fn is_gone_within(self, time: Duration) -> bool {
        wait_until(time, POLL_INTERVAL, || self.is_gone())
    }

    /// Returns whether no process of the group runs. Some systems take seconds to reap orphans, so processes
    /// are checked one by one where possible.
    fn is_gone(self) -> bool {
        let is_empty = || test_kill_process_group(self.0) == Err(rustix::io::Errno::SRCH);
        // Adopted orphans stay in the group until we reap them.
        is_empty() || (living_adopted() == Some(0) && is_empty()) || self.has_only_ended()
    }

    /// Returns whether all members have ended but are not reaped yet.
    fn has_only_ended(self) -> bool {
        let table = ProcessTable::read();
        let group = self.0.as_raw_nonzero().get();
        table.entries().next().is_some() && table.group_members(group).is_empty()
    }

    fn signal(self, signal: Signal) {
        // It fails if the group is empty, which is fine.
        let _ = kill_process_group(self.0, signal);
    }
}

/// Thread that waits for the end of one child, started before the child so that nothing can fail afterwards.
#[derive(Debug)]
pub(crate) struct ChildWaiter {
    hand_over: Sender<Child>,
    ended: Receiver<Child>,
}

impl ChildWaiter {
    /// Starts a waiter that writes a byte to `wake` when the child has ended.
    pub(crate) fn ready(wake: Option<PipeWriter>) -> io::Result<ChildWaiter> {
        let (hand_over, taken) = channel::<Child>();
        let (tell, ended) = channel();
        thread::Builder::new().name("pal-wait".to_owned()).spawn(move || {
            let Ok(child) = taken.recv() else { return };
            wait_without_reaping(&child);
            // If the receiver is gone, the child is ours to reap.
            if let Err(unclaimed) = tell.send(child) {
                let mut child = unclaimed.0;
                let _ = child.wait();
            }
            if let Some(mut wake) = wake {
                let _ = wake.write(&[0]);
            }
        })?;
        Ok(ChildWaiter { hand_over, ended })
    }

    /// Waits for this child. The received child has ended but is not reaped: its pid is still its own.
    pub(crate) fn wait_for(self, child: Child) -> Receiver<Child> {
        // The thread lives until it gets a child.
        let _ = self.hand_over.send(child);
        self.ended
    }
}

fn wait_without_reaping(child: &Child) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let interrupted = |end| matches!(end, Err(rustix::io::Errno::INTR));
    while interrupted(waitid(WaitId::Pid(Pid::from_child(child)), options).map(drop)) {}
}
