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
}

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
}
