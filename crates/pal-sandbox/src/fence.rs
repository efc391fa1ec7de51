//! Which fence this machine can put up, and programs that start behind it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pal_process::{Program, ThreadSetup};

use crate::enter::{HELPER_ARGUMENT, Order};
use crate::{Policy, bubblewrap};

/// A fence that this machine can put up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fence {
    /// Namespaces by the program `bwrap`, and seccomp.
    Bubblewrap {
        /// The program.
        program: PathBuf,
    },
    /// Landlock and seccomp.
    Landlock {
        /// What this kernel's Landlock can do, as far as we use it; 1 is the oldest.
        abi: u8,
    },
    /// None can be put up.
    None {
        /// Why.
        why: String,
    },
}

impl Fence {
    /// Tries what this machine can do: a command behind bubblewrap first, then Landlock and seccomp on a thread.
    pub fn detect() -> Fence {
        match bubblewrap::try_out() {
            Ok(program) => Fence::Bubblewrap { program },
            Err(no_bubblewrap) => Fence::detect_landlock()
                .unwrap_or_else(|no_landlock| Fence::None { why: format!("{no_bubblewrap}; {no_landlock}") }),
        }
    }

    /// Tries Landlock and seccomp alone.
    pub fn detect_landlock() -> Result<Fence, String> {
        crate::enter::try_out().map(|abi| Fence::Landlock { abi })
    }

    /// Makes empty folders where read-only ones of the policy are missing; those that it made. They are for whoever calls
    /// to take away again when no command runs behind the fence any more: not sooner, because with a folder goes the
    /// mount on it.
    pub fn hold_places(&self, policy: &Policy) -> Vec<PathBuf> {
        let Fence::Bubblewrap { .. } = self else { return Vec::new() };
        // Where it fails there is something, or commands cannot make anything either.
        policy.read_only.iter().filter(|path| std::fs::create_dir(path).is_ok()).cloned().collect()
    }

    /// The words that put a program behind this fence when they stand before it in a command line; none where the policy
    /// needs no fence.
    pub fn prefix(&self, policy: &Policy, helper: &Path) -> Result<Vec<OsString>, NoFence> {
        let nothing = Program {
            path: OsString::new(),
            arguments: Vec::new(),
            directory: PathBuf::new(),
            environment: Vec::new(),
            thread_setup: None,
        };
        let wrapped = self.wrap(nothing, policy, helper)?;
        let mut words = vec![wrapped.path];
        words.extend(wrapped.arguments);
        words.pop();
        Ok(words)
    }

    /// The program behind this fence. `helper` is a program that calls [`crate::enter_and_exec`] when its first argument
    /// is [`HELPER_ARGUMENT`]: our own.
    pub fn wrap(&self, program: Program, policy: &Policy, helper: &Path) -> Result<Program, NoFence> {
        let (order, mut arguments, path) = match self {
            Fence::None { why } => return Err(NoFence { why: why.clone() }),
            // Landlock gives rights to folders and cannot take some away again: it has nothing for this.
            Fence::Landlock { .. } if policy.is_open => return Ok(program),
            Fence::Bubblewrap { program: bwrap } if policy.is_open => {
                let mut arguments = bubblewrap::arguments(policy);
                arguments.extend(["--".into(), program.path]);
                arguments.extend(program.arguments);
                return Ok(Program { path: OsString::from(bwrap), arguments, ..program });
            }
            Fence::Landlock { .. } => {
                let mut seen = policy.clone();
                seen.visible.iter_mut().for_each(|visible| visible.push(helper.to_owned()));
                (
                    Order { landlock: Some(crate::NEWEST_LANDLOCK), policy: seen },
                    Vec::new(),
                    OsString::from(helper),
                )
            }
            Fence::Bubblewrap { program: bwrap } => {
                let mut seen = policy.clone();
                seen.visible.iter_mut().for_each(|visible| visible.push(helper.to_owned()));
                let mut arguments = bubblewrap::arguments(&seen);
                arguments.extend(["--".into(), helper.into()]);
                (Order { landlock: None, policy: policy.clone() }, arguments, OsString::from(bwrap))
            }
        };
        let order = serde_json::to_string(&order)
            .map_err(|error| NoFence { why: format!("a path of the policy cannot be told: {error}") })?;
        arguments.extend([HELPER_ARGUMENT.into(), order.into(), "--".into(), program.path]);
        arguments.extend(program.arguments);
        Ok(Program { path, arguments, ..program })
    }
}

/// What this machine can do, found when it is first asked for: trying it out takes as long as starting a few programs.
#[derive(Clone, Debug, Default)]
pub struct SandboxProbe(Arc<Probed>);

#[derive(Debug, Default)]
struct Probed {
    fence: OnceLock<Fence>,
    landlock: OnceLock<Option<u8>>,
}

impl SandboxProbe {
    /// The fence around commands.
    pub fn fence(&self) -> &Fence {
        self.0.fence.get_or_init(Fence::detect)
    }

    /// The sandbox of read-only commands that the kernel alone puts up, if it can.
    pub fn thread_sandbox(&self) -> Option<ThreadSandbox> {
        let abi = (*self.0.landlock.get_or_init(|| crate::enter::try_out().ok()))?;
        (abi >= ThreadSandbox::OLDEST).then_some(ThreadSandbox { abi })
    }
}

impl From<Fence> for SandboxProbe {
    fn from(fence: Fence) -> SandboxProbe {
        let landlock = match fence {
            Fence::Landlock { abi } => Some(abi),
            Fence::Bubblewrap { .. } | Fence::None { .. } => None,
        };
        SandboxProbe(Arc::new(Probed { fence: OnceLock::from(fence), landlock: OnceLock::from(landlock) }))
    }
}

/// The sandbox of a read-only command that the thread which starts it puts up by Landlock and seccomp: the command needs no
/// program around it, which would take longer to start than the command itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSandbox {
    abi: u8,
}

impl ThreadSandbox {
    /// The Landlock that first kept files from being cut. What later ones keep inside, signals and abstract sockets, seccomp
    /// refuses.
    pub const OLDEST: u8 = 3;

    /// The same as an older kernel would put it up.
    pub fn of_abi(self, abi: u8) -> ThreadSandbox {
        ThreadSandbox { abi: self.abi.min(abi) }
    }

    /// The program in this sandbox. The policy must be one that changes nothing ([`Policy::read_only`]).
    pub fn confine(self, program: Program, policy: &Policy) -> Program {
        let order = Order { landlock: Some(self.abi), policy: policy.clone() };
        let setup =
            ThreadSetup::new(move || crate::enter::enter(&order).map(drop).map_err(std::io::Error::other));
        Program { thread_setup: Some(setup), ..program }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fence::Bubblewrap { .. } => formatter.write_str("bubblewrap and seccomp"),
            Fence::Landlock { abi } => write!(formatter, "Landlock (ABI {abi}) and seccomp"),
            Fence::None { why } => write!(formatter, "none ({why})"),
        }
    }
}

/// Why a command that was to run behind a fence did not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoFence {
    /// What could not be done.
    pub why: String,
}

impl fmt::Display for NoFence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the command did not run: no sandbox could be put around it ({}). Install bubblewrap, use a Linux kernel \
             with Landlock, or turn the sandbox off in the settings",
            self.why
        )
    }
}

impl std::error::Error for NoFence {}
