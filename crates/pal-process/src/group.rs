//! Process groups: watched without being reaped, and ended as a whole.

use std::io::{self, PipeWriter, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use crate::leftovers::{EndedProcess, living_adopted};
use crate::process_table::ProcessTable;

/// How long a group may take to end by itself after it was asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long the kernel may take to end what was killed.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(2);

/// How long processes that are about to end anyhow may take: the kernel ends a sandbox's own ones only after the command.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);

/// The first interval between looks at processes that are to end: most are about to end anyhow.
pub(crate) const LOOK_FIRST: Duration = Duration::from_millis(1);

/// The longest interval between looks at a group that is to end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks until something is so, at intervals that grow to `every`; false if it is not within this time.
pub(crate) fn wait_until(time: Duration, every: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    let mut pause = LOOK_FIRST;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(every);
    }
    true
}

/// The processes that came of one child, by the child's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(Pid);

impl Group {
    pub(crate) fn of(child: &Child) -> Group {
        Group(Pid::from_child(child))
    }

    /// Asks all of it to end. A stopped process hears nothing before it goes on.
    pub(crate) fn ask_to_end(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Ends all of it.
    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Ends what a child left behind that was reaped; none if there was nothing. What the system does not list is ended, too,
    /// but not named.
    ///
    /// The number of a group is not given away while the group has a member, so that nobody else is hit.
    pub(crate) fn end_leftovers(self) -> Option<Vec<EndedProcess>> {
        if self.is_gone_within(SETTLE) {
            return None;
        }
        let members = ProcessTable::read().group_members(self.0.as_raw_nonzero().get());
        let ended = members
            .into_iter()
            .map(|key| EndedProcess { pid: key.pid, command: key.command_line() })
            .collect();
        self.ask_to_end();
        if !self.is_gone_within(GRACE) {
            self.kill();
            self.is_gone_within(KILL_TIME);
        }
        Some(ended)
    }

    fn is_gone_within(self, time: Duration) -> bool {
        wait_until(time, LOOK_EVERY, || self.is_gone())
    }

    /// Whether no process of it runs. Some systems take seconds to reap orphans, so that processes are looked at one by one
    /// where that can be done.
    fn is_gone(self) -> bool {
        let is_empty = || test_kill_process_group(self.0) == Err(rustix::io::Errno::SRCH);
        // Orphans that were handed to us stay in the group until we reap them.
        is_empty() || (living_adopted() == Some(0) && is_empty()) || self.has_only_ended()
    }

    /// Whether all members have ended and are only not reaped yet.
    fn has_only_ended(self) -> bool {
        let table = ProcessTable::read();
        let group = self.0.as_raw_nonzero().get();
        table.entries().next().is_some() && table.group_members(group).is_empty()
    }

    fn signal(self, signal: Signal) {
        // It fails where nobody is left, which is what was wanted.
        let _ = kill_process_group(self.0, signal);
    }
}

/// A thread that waits for the end of one child, ready before the child is started: once it runs, nothing can fail.
#[derive(Debug)]
pub(crate) struct Waiter {
    hand_over: Sender<Child>,
    ended: Receiver<Child>,
}

impl Waiter {
    /// A waiter that writes a byte to `wake` when the child has ended.
    pub(crate) fn ready(wake: Option<PipeWriter>) -> io::Result<Waiter> {
        let (hand_over, taken) = channel::<Child>();
        let (tell, ended) = channel();
        thread::Builder::new().name("pal-wait".to_owned()).spawn(move || {
            let Ok(child) = taken.recv() else { return };
            wait_without_reaping(&child);
            // Whoever gave up on it left the child to us.
            if let Err(unclaimed) = tell.send(child) {
                let mut child = unclaimed.0;
                let _ = child.wait();
            }
            if let Some(mut wake) = wake {
                let _ = wake.write(&[0]);
            }
        })?;
        Ok(Waiter { hand_over, ended })
    }

    /// Waits for this child. The child that comes out has ended and is not reaped yet: its number is still its own.
    pub(crate) fn wait_for(self, child: Child) -> Receiver<Child> {
        // The thread is there until it got a child.
        let _ = self.hand_over.send(child);
        self.ended
    }
}

fn wait_without_reaping(child: &Child) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let interrupted = |end| matches!(end, Err(rustix::io::Errno::INTR));
    while interrupted(waitid(WaitId::Pid(Pid::from_child(child)), options).map(drop)) {}
}
