//! Sandbox helper: our own program, which enters the sandbox and becomes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::sandbox::{SandboxError, SandboxPolicy};

/// First argument that makes our program act as the sandbox helper.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// Instructions for the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HelperRequest {
    /// Newest Landlock ABI to use; `None` if bubblewrap already protects the files.
    pub(crate) landlock: Option<u8>,
    pub(crate) policy: SandboxPolicy,
}

/// Enters the sandbox and becomes the command. Expects the arguments after [`HELPER_ARGUMENT`]. Returns only
/// on failure: then nothing ran, and the caller prints the error and exits.
pub fn enter_and_exec(arguments: impl IntoIterator<Item = OsString>) -> SandboxError {
    let mut arguments = arguments.into_iter();
    let (order, dashes, program) = (arguments.next(), arguments.next(), arguments.next());
    let order = order.and_then(|order| order.into_string().ok());
    let (Some(order), Some("--"), Some(program)) =
        (order, dashes.as_ref().and_then(|text| text.to_str()), program)
    else {
        return SandboxError { why: "it is called with a policy, -- and a command".to_owned() };
    };
    let entered = serde_json::from_str(&order)
        .map_err(|error| format!("its policy: {error}"))
        .and_then(|order| enter(&order));
    match entered {
        Err(why) => SandboxError { why },
        Ok(_) => {
            let error = Command::new(&program).args(arguments).exec();
            SandboxError { why: format!("{} could not be started: {error}", program.display()) }
        }
    }
}

/// Probes the kernel on a separate thread; returns its Landlock ABI.
pub(crate) fn probe_kernel() -> Result<u8, String> {
    // Both restrict the calling thread and end with it.
    let order =
        HelperRequest { landlock: Some(crate::sandbox::NEWEST_LANDLOCK), policy: SandboxPolicy::default() };
    let trial =
        std::thread::Builder::new().spawn(move || enter(&order)).map_err(|error| error.to_string())?;
    trial.join().unwrap_or_else(|_| Err("the trial of Landlock and seccomp failed".to_owned()))
}

/// Restricts this thread; returns the Landlock ABI, 0 if not requested.
#[cfg(target_os = "linux")]
pub(crate) fn enter(order: &HelperRequest) -> Result<u8, String> {
    let abi = order
        .landlock
        .map(|newest| crate::sandbox::landlock_rules::restrict(&order.policy, newest))
        .transpose()?;
    crate::sandbox::capabilities::drop_capabilities()?;
    // Without that right in Landlock, `truncate` could cut files anywhere.
    let deny_truncate = abi.is_some_and(|abi| abi < 3);
    // Before that version, a command could signal outside processes.
    let deny_signals = abi.is_some_and(|abi| abi < 6) && order.policy.changes_nothing;
    crate::sandbox::seccomp::restrict(&order.policy, deny_truncate, deny_signals)?;
    Ok(abi.unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter(_: &HelperRequest) -> Result<u8, String> {
    Err("Landlock and seccomp are parts of Linux".to_owned())
}
