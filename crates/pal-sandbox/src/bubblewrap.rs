//! Bubblewrap: everything is mounted read-only, but for what may be written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_process::{Cancel, Input, Keep, Program, Spec, Streams, run};

use crate::Policy;

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(3);

/// The program, if a command behind it runs.
pub(crate) fn try_out() -> Result<PathBuf, String> {
    let program = find().ok_or("bubblewrap is not installed")?;
    let mut arguments = arguments(&Policy::default());
    arguments.extend(["--", "sh", "-c", ":"].map(OsString::from));
    let trial = Spec {
        program: Program {
            path: program.clone().into(),
            arguments,
            directory: PathBuf::from("/"),
            environment: Vec::new(),
            thread_setup: None,
        },
        input: Input::Nothing,
        streams: Streams::Merged,
        keep: Keep::up_to(1_000),
        limit: Some(TRIAL),
    };
    match run(trial, &Cancel::new(), &|_| ()) {
        Ok(done) if done.status.is_success() => Ok(program),
        Ok(done) => Err(format!("bubblewrap does not work here: {}", done.output.text().trim())),
        Err(error) => Err(error.to_string()),
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // A relative folder there could lie in the workspace, where commands behind the fence write.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("bwrap")).find(|program| program.is_file())
}

/// What bubblewrap is called with, up to the command.
pub(crate) fn arguments(policy: &Policy) -> Vec<OsString> {
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
    // In this order folders come before what is in them, and no mount lies over another.
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

// The user namespace keeps root, too, from mounting things back; without --new-session signals to the process group
// reach the command, and seccomp refuses to type on the terminal.
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

/// The machine as it is, read-only.
fn whole_machine() -> Vec<OsString> {
    let mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    NAMESPACES.iter().chain(&mounts).map(OsString::from).collect()
}

/// An empty machine with these files and folders, read-only, and a scratch folder that goes with it.
fn of_visible(visible: &[PathBuf]) -> Vec<OsString> {
    let mounts = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
    let mut arguments: Vec<OsString> = NAMESPACES.iter().chain(&mounts).map(OsString::from).collect();
    let paths: BTreeSet<&PathBuf> = visible.iter().collect();
    let mut mounted: Vec<&Path> = Vec::new();
    for path in paths {
        // Bubblewrap takes longer with every mount: none is for what another has brought along, or for nothing.
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

/// The machine as it is, writable, with its devices. Root keeps the powers over files that it needs to install
/// something, and none by which it could take a mount away.
fn open_machine() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["--dev-bind", "/", "/"].map(OsString::from).to_vec();
    for power in ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "KILL", "NET_BIND_SERVICE"]
    {
        arguments.extend(["--cap-add".into(), format!("CAP_{power}").into()]);
    }
    arguments
}

/// The paths that are there, links followed: nothing can be mounted on a link, nor where there is nothing.
fn real(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
}

/// The folders between what may be written and what in it may not: a mount of its own keeps each from being moved away,
/// with a new one put in its place.
fn pinned(policy: &Policy, read_only: &BTreeSet<PathBuf>, hidden: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let above = read_only.iter().chain(hidden).flat_map(|path| path.ancestors().skip(1));
    let is_open = |path: &Path| policy.writable.iter().any(|open| path.starts_with(open) && path != open);
    let is_closed = |path: &Path| read_only.iter().any(|closed| path.starts_with(closed));
    above.filter(|path| is_open(path) && !is_closed(path)).map(Path::to_owned).collect()
}
