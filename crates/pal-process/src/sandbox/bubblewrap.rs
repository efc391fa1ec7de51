//! Bubblewrap: mounts everything read-only except writable paths.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{CancelToken, CaptureLimits, CommandInput, CommandSpec, Program, StreamMode, run_command};

use crate::sandbox::SandboxPolicy;

/// Timeout of a trial run.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Path of bubblewrap, if a trial command runs in it.
pub(crate) fn probe_bubblewrap() -> Result<PathBuf, String> {
    let program = find().ok_or("bubblewrap is not installed")?;
    let mut arguments = arguments(&SandboxPolicy::default());
    arguments.extend(["--", "sh", "-c", ":"].map(OsString::from));
    let trial = CommandSpec {
        program: Program {
            path: program.clone().into(),
            arguments,
            directory: PathBuf::from("/"),
            environment: Vec::new(),
            thread_setup: None,
        },
        input: CommandInput::Nothing,
        streams: StreamMode::Merged,
        keep: CaptureLimits::up_to(1_000),
        limit: Some(TRIAL_TIMEOUT),
    };
    match run_command(trial, &CancelToken::new(), &|_| ()) {
        Ok(done) if done.status.is_success() => Ok(program),
        Ok(done) => Err(format!("bubblewrap does not work here: {}", done.output.text().trim())),
        Err(error) => Err(error.to_string()),
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // A relative `PATH` entry could lie in the workspace, where sandboxed commands write.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("bwrap")).find(|program| program.is_file())
}

/// Arguments of bubblewrap before the command.
pub(crate) fn arguments(policy: &SandboxPolicy) -> Vec<OsString> {
    let mut arguments = match (&policy.visible, policy.is_open) {
        (_, true) => open_machine(),
        (Some(visible), false) => of_visible(visible),
        (None, false) => whole_machine(),
    };
    if !policy.network {
        arguments.push("--unshare-net".into());
    }
    let mut mount =
        |how: &str, from: &Path, to: &Path| arguments.extend([how.into(), from.into(), to.into()]);
    let read_only = real(&policy.read_only);
    let hidden = real(&policy.hidden);
    let mut open: BTreeSet<PathBuf> = policy.writable.iter().cloned().collect();
    open.extend(pinned(policy, &read_only, &hidden));
    // In this order folders come before their content, and no mount hides another.
    for path in &open {
        mount("--bind-try", path, path);
    }
    for path in &read_only {
        mount("--ro-bind-try", path, path);
    }
    let mask = policy.mask.clone().unwrap_or_else(|| PathBuf::from("/dev/null"));
    let is_seen = |path: &Path| match &policy.visible {
        Some(visible) => visible.iter().any(|seen| path.starts_with(seen)),
        None => true,
    };
    for path in hidden.iter().filter(|path| is_seen(path)) {
        if path.is_dir() {
            arguments.extend(["--perms", "0000", "--tmpfs"].map(OsString::from));
            arguments.push(path.into());
        } else {
            arguments.extend(["--ro-bind".into(), mask.clone().into(), path.into()]);
        }
    }
    arguments
}

// The user namespace keeps root, too, from remounting; without --new-session signals to the process group
// reach the command, and seccomp blocks typing on the terminal.
const NAMESPACES: [&str; 8] = [
    "--die-with-parent",
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// Mounts of the whole machine, read-only.
fn whole_machine() -> Vec<OsString> {
    let mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    NAMESPACES.iter().chain(&mounts).map(OsString::from).collect()
}

/// Mounts of an empty machine with these paths, read-only, and a temporary `/tmp`.
fn of_visible(visible: &[PathBuf]) -> Vec<OsString> {
    let mounts = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
    let mut arguments: Vec<OsString> = NAMESPACES.iter().chain(&mounts).map(OsString::from).collect();
    let paths: BTreeSet<&PathBuf> = visible.iter().collect();
    let mut mounted: Vec<&Path> = Vec::new();
    for path in paths {
        // Every mount costs time: skip paths inside another mount and missing ones.
        if mounted.iter().any(|above| path.starts_with(above)) || path.symlink_metadata().is_err() {
            continue;
        }
        match std::fs::read_link(path) {
            // `/bin` is a link into `/usr` on many systems.
            Ok(target) if path.components().count() == 2 => {
                arguments.extend(["--symlink".into(), target.into(), path.into()]);
            }
            _ => {
                arguments.extend(["--ro-bind-try".into(), path.into(), path.into()]);
                mounted.push(path);
            }
        }
    }
    arguments
}

/// Mounts of the whole machine, writable, with devices. Root keeps the file capabilities that installers
/// need, but none to unmount.
fn open_machine() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["--dev-bind", "/", "/"].map(OsString::from).to_vec();
    for power in ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "KILL", "NET_BIND_SERVICE"]
    {
        arguments.extend(["--cap-add".into(), format!("CAP_{power}").into()]);
    }
    arguments
}

/// Existing paths with links resolved: nothing can be mounted on a link or a missing path.
fn real(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
}

/// Folders between writable paths and protected paths inside them: a mount of its own keeps each from being
/// replaced.
fn pinned(
    policy: &SandboxPolicy,
    read_only: &BTreeSet<PathBuf>,
    hidden: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let above = read_only.iter().chain(hidden).flat_map(|path| path.ancestors().skip(1));
    let is_open = |path: &Path| policy.writable.iter().any(|open| path.starts_with(open) && path != open);
    let is_closed = |path: &Path| read_only.iter().any(|closed| path.starts_with(closed));
    above.filter(|path| is_open(path) && !is_closed(path)).map(Path::to_owned).collect()
}
