//! The last step before a command: our own program, which shuts itself in and becomes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::{NoFence, Policy};

/// The first argument by which our program knows that it is the last step before a command behind the fence.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// What the helper is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The newest Landlock that may guard the files; none if bubblewrap did already.
    pub(crate) landlock: Option<u8>,
    pub(crate) policy: Policy,
}

/// Shuts this process in and becomes the command. The arguments are those behind [`HELPER_ARGUMENT`]. It only comes
/// back if something failed: then nothing ran, and whoever called prints why and exits.
pub fn enter_and_exec(arguments: impl IntoIterator<Item = OsString>) -> NoFence {
    let mut arguments = arguments.into_iter();
    let (order, dashes, program) = (arguments.next(), arguments.next(), arguments.next());
    let order = order.and_then(|order| order.into_string().ok());
    let (Some(order), Some("--"), Some(program)) =
        (order, dashes.as_ref().and_then(|text| text.to_str()), program)
    else {
        return NoFence { why: "it is called with a policy, -- and a command".to_owned() };
    };
    let entered = serde_json::from_str(&order)
        .map_err(|error| format!("its policy: {error}"))
        .and_then(|order| enter(&order));
    match entered {
        Err(why) => NoFence { why },
        Ok(_) => {
            let error = Command::new(&program).args(arguments).exec();
            NoFence { why: format!("{} could not be started: {error}", program.display()) }
        }
    }
}

/// Tries on a thread of its own whether this kernel can do it; what its Landlock is able to.
pub(crate) fn try_out() -> Result<u8, String> {
    // Both bind the thread that asks for them, and go with it.
    let order = Order { landlock: Some(crate::NEWEST_LANDLOCK), policy: Policy::default() };
    let trial =
        std::thread::Builder::new().spawn(move || enter(&order)).map_err(|error| error.to_string())?;
    trial.join().unwrap_or_else(|_| Err("the trial of Landlock and seccomp failed".to_owned()))
}

/// Binds this thread; what Landlock is able to, 0 if it was not wanted.
#[cfg(target_os = "linux")]
pub(crate) fn enter(order: &Order) -> Result<u8, String> {
    let abi = order.landlock.map(|newest| crate::landlocked::restrict(&order.policy, newest)).transpose()?;
    crate::powers::give_up()?;
    // Without that right in Landlock, a call that needs no open file could cut files anywhere.
    let deny_truncate = abi.is_some_and(|abi| abi < 3);
    // Before that version, a command could end programs outside.
    let deny_signals = abi.is_some_and(|abi| abi < 6) && order.policy.changes_nothing;
    crate::seccomp::restrict(&order.policy, deny_truncate, deny_signals)?;
    Ok(abi.unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter(_: &Order) -> Result<u8, String> {
    Err("Landlock and seccomp are parts of Linux".to_owned())
}
