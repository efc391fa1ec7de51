//! Sandbox for shell commands: bubblewrap where it works, else Landlock and seccomp.
//!
//! A sandboxed command may read nearly everything, write where its [`SandboxPolicy`] allows, and use the
//! network only if allowed. [`Sandbox::wrap`] turns a program into one that starts in the sandbox; the last
//! step is always our own program, called with [`HELPER_ARGUMENT`], which restricts itself
//! ([`enter_and_exec`]) and becomes the command. Every failure is an error: a command meant for the sandbox
//! never runs without it.
//!
//! | attempt of a command | bubblewrap | Landlock |
//! | --- | --- | --- |
//! | write outside | read-only mounts | refused by resolved path |
//! | read hidden paths | replaced by something empty | refused by path |
//! | write to read-only paths inside the workspace | read-only mounts | refused; nothing new can be created in the folder above them |
//! | replace a folder above such a path | separate mount that cannot be moved | refused |
//! | change mode, owner or times of files outside | read-only mounts | seccomp where nothing may change, else **not refused** |
//! | signal or trace outside processes | not visible | refused (signals from Linux 6.12 on) |
//! | use sockets, `ptrace`, mounts, namespaces, modules, keys … | seccomp | seccomp |
//!
//! Read-only are above all the paths of a workspace that run later without a sandbox ([`GuardedPaths`]). If
//! such a folder is missing, an empty placeholder exists while commands run
//! ([`Sandbox::create_placeholders`]). A link cannot be protected in this way: its target is read-only, but
//! the link can be replaced.

mod bubblewrap;
#[cfg(target_os = "linux")]
mod capabilities;
mod guarded_home;
mod guarded_paths;
mod helper;
#[cfg(target_os = "linux")]
mod landlock_rules;
mod project_scan;
mod sandbox_backend;
mod sandbox_error;
mod sandbox_policy;
#[cfg(target_os = "linux")]
mod seccomp;

/// Newest Landlock ABI in use.
#[cfg(target_os = "linux")]
const NEWEST_LANDLOCK: u8 = landlock_rules::NEWEST;
#[cfg(not(target_os = "linux"))]
const NEWEST_LANDLOCK: u8 = 0;

pub use guarded_home::{home_credentials, home_startup_files, missing_startup_files};
pub use guarded_paths::{GuardedPaths, enclosing_repository, external_git_dirs, find_repository_dangers};
pub use helper::{HELPER_ARGUMENT, enter_and_exec};
pub use project_scan::{ProjectFindings, ProjectScan};
pub use sandbox_backend::{Sandbox, SandboxProbe, ThreadSandbox};
pub use sandbox_error::SandboxError;
pub use sandbox_policy::SandboxPolicy;
