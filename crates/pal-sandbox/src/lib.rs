//! The fence around shell commands: bubblewrap where it works, else Landlock and seccomp.
//!
//! A command inside may read nearly everything, write where its [`Policy`] says, and reach no network unless allowed.
//! [`Fence::wrap`] turns a program into one that starts behind the fence; the last step of that is always our own
//! program, called with [`HELPER_ARGUMENT`], which closes the door behind itself ([`enter_and_exec`]) and becomes the
//! command. Whatever cannot be put up is an error: a command that was to run behind a fence never runs without.
//!
//! | what a command tries | bubblewrap | Landlock |
//! | --- | --- | --- |
//! | write outside | read-only mounts | refused by path, whatever way leads there |
//! | read hidden paths | something empty in their place | refused by path |
//! | write to read-only paths inside the workspace | read-only mounts | refused; nothing new can be made in the folder above them |
//! | move what is above such a path out of the way | a mount of its own, which cannot be moved | refused |
//! | mode, owner and times of files outside | read-only mounts | seccomp where nothing may change, else **not refused** |
//! | end or look into processes outside | not visible | refused (signals from Linux 6.12 on) |
//! | sockets, `ptrace`, mounts, namespaces, modules, keys … | seccomp | seccomp |
//!
//! Read-only are above all those places of a workspace from which something runs later without a fence ([`Planted`]).
//! Where such a folder is missing, an empty one holds its place as long as commands run ([`Fence::hold_places`]). A
//! place that is a link cannot be held: what it leads to is read-only, but another can be put where it was.

mod bubblewrap;
mod enter;
mod fence;
mod guarded_home;
#[cfg(target_os = "linux")]
mod landlocked;
mod planted;
mod policy;
#[cfg(target_os = "linux")]
mod powers;
mod project_scan;
#[cfg(target_os = "linux")]
mod seccomp;

/// The newest Landlock that is used.
#[cfg(target_os = "linux")]
const NEWEST_LANDLOCK: u8 = landlocked::NEWEST;
#[cfg(not(target_os = "linux"))]
const NEWEST_LANDLOCK: u8 = 0;

pub use enter::{HELPER_ARGUMENT, enter_and_exec};
pub use fence::{Fence, NoFence, SandboxProbe, ThreadSandbox};
pub use guarded_home::{home_credentials, home_startup_files, missing_startup_files};
pub use planted::{Planted, dangers_of_repository, enclosing_repository, repository_elsewhere};
pub use policy::Policy;
pub use project_scan::{ProjectFindings, ProjectScan};
