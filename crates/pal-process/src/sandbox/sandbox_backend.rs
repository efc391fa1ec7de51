//! Detection of the available sandbox, and wrapping of programs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::{Program, ThreadSetup};

use crate::sandbox::helper::{HELPER_ARGUMENT, HelperRequest};
use crate::sandbox::{SandboxError, SandboxPolicy, bubblewrap};

/// Sandbox mechanism of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sandbox {
    /// Namespaces by `bwrap`, and seccomp.
    Bubblewrap {
        /// Path of `bwrap`.
        program: PathBuf,
    },
    /// Landlock and seccomp.
    Landlock {
        /// Landlock ABI in use; 1 is the oldest.
        abi: u8,
    },
    /// No sandbox is available.
    None {
        /// Reason.
        why: String,
    },
}

impl Sandbox {
    /// Probes this machine: a command in bubblewrap first, then Landlock and seccomp on a thread.
    pub fn detect() -> Sandbox {
        match bubblewrap::probe_bubblewrap() {
            Ok(program) => Sandbox::Bubblewrap { program },
            Err(no_bubblewrap) => Sandbox::detect_landlock().unwrap_or_else(|no_landlock| Sandbox::None {
                why: format!("{no_bubblewrap}; {no_landlock}"),
            }),
        }
    }

    /// Probes Landlock and seccomp alone.
    pub fn detect_landlock() -> Result<Sandbox, String> {
        crate::sandbox::helper::probe_kernel().map(|abi| Sandbox::Landlock { abi })
    }

    /// Creates empty folders for missing read-only ones and returns them. The caller removes them when no
    /// sandboxed command runs any more, not sooner: the mount goes with the folder.
    pub fn create_placeholders(&self, policy: &SandboxPolicy) -> Vec<PathBuf> {
        let Sandbox::Bubblewrap { .. } = self else { return Vec::new() };
        // On failure the path exists, or commands cannot create it either.
        policy.read_only.iter().filter(|path| std::fs::create_dir(path).is_ok()).cloned().collect()
    }

    /// Words that sandbox a program when put before it in a command line; empty if the policy needs no
    /// sandbox.
    pub fn prefix(&self, policy: &SandboxPolicy, helper: &Path) -> Result<Vec<OsString>, SandboxError> {
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

    /// Wraps a program in this sandbox. `helper` is a program that calls [`crate::sandbox::enter_and_exec`]
    /// when its first argument is [`HELPER_ARGUMENT`]: our own.
    pub fn wrap(
        &self,
        program: Program,
        policy: &SandboxPolicy,
        helper: &Path,
    ) -> Result<Program, SandboxError> {
        let (order, mut arguments, path) = match self {
            Sandbox::None { why } => return Err(SandboxError { why: why.clone() }),
            // Landlock grants rights to folders and cannot revoke some of them: it has nothing for this.
            Sandbox::Landlock { .. } if policy.is_open => return Ok(program),
            Sandbox::Bubblewrap { program: bwrap } if policy.is_open => {
                let mut arguments = bubblewrap::arguments(policy);
                arguments.extend(["--".into(), program.path]);
                arguments.extend(program.arguments);
                return Ok(Program { path: OsString::from(bwrap), arguments, ..program });
            }
            Sandbox::Landlock { .. } => {
                let mut seen = policy.clone();
                seen.visible.iter_mut().for_each(|visible| visible.push(helper.to_owned()));
                (
                    HelperRequest { landlock: Some(crate::sandbox::NEWEST_LANDLOCK), policy: seen },
                    Vec::new(),
                    OsString::from(helper),
                )
            }
            Sandbox::Bubblewrap { program: bwrap } => {
                let mut seen = policy.clone();
                seen.visible.iter_mut().for_each(|visible| visible.push(helper.to_owned()));
                let mut arguments = bubblewrap::arguments(&seen);
                arguments.extend(["--".into(), helper.into()]);
                (HelperRequest { landlock: None, policy: policy.clone() }, arguments, OsString::from(bwrap))
            }
        };
        let order = serde_json::to_string(&order)
            .map_err(|error| SandboxError { why: format!("a path of the policy cannot be told: {error}") })?;
        arguments.extend([HELPER_ARGUMENT.into(), order.into(), "--".into(), program.path]);
        arguments.extend(program.arguments);
        Ok(Program { path, arguments, ..program })
    }
}

/// Lazy detection of the sandbox: a probe takes as long as starting a few programs.
#[derive(Clone, Debug, Default)]
pub struct SandboxProbe(Arc<ProbeResults>);

#[derive(Debug, Default)]
struct ProbeResults {
    sandbox: OnceLock<Sandbox>,
    landlock: OnceLock<Option<u8>>,
}

impl SandboxProbe {
    /// Sandbox for commands.
    pub fn sandbox(&self) -> &Sandbox {
        self.0.sandbox.get_or_init(Sandbox::detect)
    }

    /// Kernel-only sandbox for read-only commands, if supported.
    pub fn thread_sandbox(&self) -> Option<ThreadSandbox> {
        let abi = (*self.0.landlock.get_or_init(|| crate::sandbox::helper::probe_kernel().ok()))?;
        (abi >= ThreadSandbox::OLDEST).then_some(ThreadSandbox { abi })
    }
}

impl From<Sandbox> for SandboxProbe {
    fn from(sandbox: Sandbox) -> SandboxProbe {
        let landlock = match sandbox {
            Sandbox::Landlock { abi } => Some(abi),
            Sandbox::Bubblewrap { .. } | Sandbox::None { .. } => None,
        };
        SandboxProbe(Arc::new(ProbeResults {
            sandbox: OnceLock::from(sandbox),
            landlock: OnceLock::from(landlock),
        }))
    }
}

/// Sandbox of a read-only command that the starting thread sets up by Landlock and seccomp. It needs no
/// wrapper program, which would take longer to start than the command itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSandbox {
    abi: u8,
}

impl ThreadSandbox {
    /// Oldest supported Landlock ABI, the first that prevents truncation. Seccomp blocks what later ones add:
    /// signals and abstract sockets.
    pub const OLDEST: u8 = 3;

    /// Limits the Landlock ABI, as on an older kernel.
    pub fn of_abi(self, abi: u8) -> ThreadSandbox {
        ThreadSandbox { abi: self.abi.min(abi) }
    }

    /// Confines a program. The policy must change nothing ([`SandboxPolicy::read_only`]).
    pub fn confine(self, program: Program, policy: &SandboxPolicy) -> Program {
        let order = HelperRequest { landlock: Some(self.abi), policy: policy.clone() };
        let setup = ThreadSetup::new(move || {
            crate::sandbox::helper::enter(&order).map(drop).map_err(std::io::Error::other)
        });
        Program { thread_setup: Some(setup), ..program }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sandbox::Bubblewrap { .. } => formatter.write_str("bubblewrap and seccomp"),
            Sandbox::Landlock { abi } => write!(formatter, "Landlock (ABI {abi}) and seccomp"),
            Sandbox::None { why } => write!(formatter, "none ({why})"),
        }
    }
}
