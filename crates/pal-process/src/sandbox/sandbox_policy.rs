//! Permissions of a sandboxed command.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Permissions of a sandboxed command. It may read everything that is not hidden.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPolicy {
    /// Writable paths with links resolved: the roots of the workspace and folders for temporary files.
    pub writable: Vec<PathBuf>,
    /// Paths inside those that it may not write or move; only bubblewrap enforces that. A missing path can be
    /// created unless it has a placeholder ([`crate::sandbox::Sandbox::create_placeholders`]).
    pub read_only: Vec<PathBuf>,
    /// Unreadable paths, such as files with keys. Inside writable paths only bubblewrap can hide them.
    pub hidden: Vec<PathBuf>,
    /// True if it may use the network.
    pub network: bool,
    /// True if it may connect to Unix sockets, which reach programs outside the sandbox, some of them with
    /// full access. Socket pairs are always allowed.
    pub unix_sockets: bool,
    /// Visible paths, read-only; `None` for everything that is not hidden.
    pub visible: Option<Vec<PathBuf>>,
    /// True if it changes nothing at all: modes, owners and times of files are protected, too.
    pub changes_nothing: bool,
    /// True if everything except read-only and hidden paths is open, including devices, network and other
    /// processes.
    pub is_open: bool,
    /// Unreadable file that replaces hidden ones; without it they appear empty.
    pub mask: Option<PathBuf>,
}

/// System paths that programs need to run, without credentials.
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

impl SandboxPolicy {
    /// Policy that may write to the roots and to temporary files, without sockets.
    pub fn workspace(roots: &[PathBuf]) -> SandboxPolicy {
        let mut writable = roots.to_vec();
        for folder in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
            let folder = folder.canonicalize().unwrap_or(folder);
            if !writable.contains(&folder) {
                writable.push(folder);
            }
        }
        SandboxPolicy { writable, ..SandboxPolicy::default() }
    }

    /// Policy that changes nothing, has no network, and sees system programs and these paths.
    pub fn read_only(visible: &[PathBuf]) -> SandboxPolicy {
        let mut all: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        all.extend(program_folders());
        all.extend(visible.iter().cloned());
        SandboxPolicy { visible: Some(all), changes_nothing: true, ..SandboxPolicy::default() }
    }

    /// Policy without limits except read-only and hidden paths.
    pub fn guarded(read_only: Vec<PathBuf>, hidden: Vec<PathBuf>) -> SandboxPolicy {
        SandboxPolicy {
            read_only,
            hidden,
            network: true,
            unix_sockets: true,
            is_open: true,
            ..SandboxPolicy::default()
        }
    }
}

/// Folders of `PATH`, except those that contain the home directory and would expose it.
fn program_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_narrow = |folder: &PathBuf| {
        let is_above_home = home.as_ref().is_some_and(|home| home.starts_with(folder));
        folder.is_absolute() && folder.parent().is_some() && !is_above_home && folder.is_dir()
    };
    std::env::split_paths(&path).filter(is_narrow).collect()
}
