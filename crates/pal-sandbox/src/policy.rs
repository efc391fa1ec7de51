//! What a command behind the fence may do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a command behind the fence may do. It may read everything that is not hidden.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Folders and files that it may write, links followed: the roots of the workspace, and where temporary files go.
    pub writable: Vec<PathBuf>,
    /// Inside of those, what it may not write, nor move; only bubblewrap can hold it to that. What is not there can be
    /// made, unless its place is held ([`crate::Fence::hold_places`]).
    pub read_only: Vec<PathBuf>,
    /// What it may not even read, such as files with keys. Inside of what it may write, only bubblewrap can hide.
    pub hidden: Vec<PathBuf>,
    /// Whether it may reach the network.
    pub network: bool,
    /// Whether it may connect to sockets that are files: through them it can reach programs that are not fenced in,
    /// some of which do everything for whoever asks. Pairs of connected sockets are always allowed.
    pub unix_sockets: bool,
    /// All that it gets to see, read-only; without, it sees everything that is not hidden.
    pub visible: Option<Vec<PathBuf>>,
    /// Whether it is refused to change modes, owners and times of files, too, as it changes nothing at all.
    pub changes_nothing: bool,
    /// Whether everything is open but what is read-only or hidden: devices, the network and other processes, too.
    pub is_open: bool,
    /// A file that nobody may read, which stands in the place of hidden ones; without, they seem to be empty.
    pub mask: Option<PathBuf>,
}

/// Files and folders of the system that programs need to run and to print: no settings with credentials.
const SYSTEM: [&str; 37] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/gitconfig",
    "/etc/gitattributes",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/debian_version",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/default/locale",
    "/etc/terminfo",
    "/etc/inputrc",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
];

impl Policy {
    /// Writes in the roots of a workspace and where temporary files go, and no sockets.
    pub fn workspace(roots: &[PathBuf]) -> Policy {
        let mut writable = roots.to_vec();
        for folder in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
            let folder = folder.canonicalize().unwrap_or(folder);
            if !writable.contains(&folder) {
                writable.push(folder);
            }
        }
        Policy { writable, ..Policy::default() }
    }

    /// Changes nothing, reaches nothing, and sees the system's programs and these files and folders.
    pub fn read_only(visible: &[PathBuf]) -> Policy {
        let mut all: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        all.extend(program_folders());
        all.extend(visible.iter().cloned());
        Policy { visible: Some(all), changes_nothing: true, ..Policy::default() }
    }

    /// Does what it likes, but for what is read-only or hidden.
    pub fn guarded(read_only: Vec<PathBuf>, hidden: Vec<PathBuf>) -> Policy {
        Policy { read_only, hidden, network: true, unix_sockets: true, is_open: true, ..Policy::default() }
    }
}

/// The folders of programs, wherever the user has them. One that is the home itself would show everything in it.
fn program_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_narrow = |folder: &PathBuf| {
        let is_above_home = home.as_ref().is_some_and(|home| home.starts_with(folder));
        folder.is_absolute() && folder.parent().is_some() && !is_above_home && folder.is_dir()
    };
    std::env::split_paths(&path).filter(is_narrow).collect()
}
