//! Presence files: one per running agent, in a directory shared by all sessions.
//!
//! A file is written atomically and removed when its agent ends. A killed agent leaves its file; its process
//! id and start time show that it is stale, and the next listing removes it.

mod process_identity;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use pal_store::create_private_directory;
use serde::{Deserialize, Serialize};

use crate::address::AgentName;
use crate::private_dir::{PrivateDir, PrivateDirError};
use crate::socket::MessageSocket;

pub use process_identity::ProcessIdentity;

/// Maximum size of a presence file that is read.
const PRESENCE_BYTES_MAX: u64 = 64 * 1024;

/// A running agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Presence {
    /// Name of the agent.
    pub name: AgentName,
    /// Id of its session.
    pub session: AgentName,
    /// Process that runs it.
    pub process: ProcessIdentity,
    /// Path of its socket.
    pub socket: Option<PathBuf>,
    /// Start time.
    pub started: Timestamp,
    /// Current activity, in a few words.
    pub doing: String,
}

/// A published presence, removed on drop.
pub struct PresenceFile {
    presence: Presence,
    directory: PrivateDir,
}

impl Presence {
    /// Publishes the presence in `dir`, which is created if needed.
    pub fn announce(self, dir: &Path) -> Result<PresenceFile, PrivateDirError> {
        create_private_directory(dir)?;
        let announcement = PresenceFile { directory: PrivateDir::open(dir)?, presence: self };
        announcement.write()?;
        Ok(announcement)
    }

    /// File name with the PID, so that the file of a later process is never removed.
    fn file_name(&self) -> String {
        format!("{}.{}.{}.json", self.session, self.name, self.process.pid)
    }
}

impl PresenceFile {
    /// Published content.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Updates the current activity.
    pub fn update(&mut self, doing: &str) -> Result<(), PrivateDirError> {
        if self.presence.doing == doing {
            return Ok(());
        }
        doing.clone_into(&mut self.presence.doing);
        self.write()
    }

    fn write(&self) -> Result<(), PrivateDirError> {
        let bytes = serde_json::to_vec(&self.presence).map_err(io::Error::from);
        let written =
            bytes.and_then(|bytes| self.directory.replace(&self.presence.file_name(), &bytes, false));
        written.map_err(|error| PrivateDirError::new("write", self.directory.path(), error))
    }
}

impl Drop for PresenceFile {
    fn drop(&mut self) {
        // After this process has ended, the next listing removes what is left.
        let _ = self.directory.remove(&self.presence.file_name());
    }
}

/// Lists the running agents in order of their start. Removes stale files in `dir`; a missing directory is
/// empty.
pub fn list_presences(dir: &Path) -> Result<Vec<Presence>, PrivateDirError> {
    let failed = |error| PrivateDirError::new("read", dir, error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let directory = PrivateDir::open(dir)?;
    let mut present = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(file_name) = entry.file_name().into_string() else { continue };
        let Some(pid) = pid_of(&file_name) else { continue };
        match read(&directory, &file_name) {
            Some(presence) if presence.process.is_alive() => present.push(presence),
            // Of a later version, or still being written.
            None if ProcessIdentity::of(pid).is_some() => {}
            presence => remove(&directory, &file_name, presence.as_ref()),
        }
    }
    present.sort_by(|one, other| (one.started, &one.name).cmp(&(other.started, &other.name)));
    Ok(present)
}

/// PID in a file name: `<session>.<name>.<pid>.json`, or the temporary form of it.
fn pid_of(file_name: &str) -> Option<u32> {
    let is_new = file_name.starts_with('.');
    let name = if is_new { file_name.strip_suffix(".new")? } else { file_name };
    name.strip_suffix(".json")?.rsplit_once('.')?.1.parse().ok()
}

fn read(directory: &PrivateDir, file_name: &str) -> Option<Presence> {
    let bytes = directory.read(file_name, 0, PRESENCE_BYTES_MAX).ok()??;
    serde_json::from_slice(&bytes).ok().filter(|presence: &Presence| presence.file_name() == file_name)
}

/// Removes the file of a killed agent and its socket. Failures are left to the next listing.
fn remove(directory: &PrivateDir, file_name: &str, presence: Option<&Presence>) {
    let socket = presence.and_then(|presence| presence.socket.as_deref());
    if let Some(socket) = socket.filter(|socket| socket.parent() == Some(directory.path())) {
        let _ = MessageSocket::remove_stale(socket);
    }
    let _ = directory.remove(file_name);
}
