//! Who runs: a file for each agent, in a directory of all sessions.
//!
//! A file is written whole by a rename, and removed when its agent ends. An agent that was killed leaves its file; it
//! is known by its process, which is gone or began at another time, and whoever lists the directory removes it.

mod process;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use pal_store::create_private_directory;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::private::{Directory, FolderError};
use crate::socket::Socket;

pub use process::Process;

/// The largest file that is read.
const PRESENCE_BYTES_MAX: u64 = 64 * 1024;

/// An agent that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Presence {
    /// Its name.
    pub name: Name,
    /// The id of its session.
    pub session: Name,
    /// The process that it runs in.
    pub process: Process,
    /// Where it can be written to.
    pub socket: Option<PathBuf>,
    /// Since when it runs.
    pub started: Timestamp,
    /// What it does, in a few words.
    pub doing: String,
}

/// A presence that others see, until this is dropped.
pub struct Announcement {
    presence: Presence,
    directory: Directory,
}

impl Presence {
    /// Lets others see it in `dir`, which is made if need be.
    pub fn announce(self, dir: &Path) -> Result<Announcement, FolderError> {
        create_private_directory(dir)?;
        let announcement = Announcement { directory: Directory::open(dir)?, presence: self };
        announcement.write()?;
        Ok(announcement)
    }

    /// With the process, so that nobody removes the file of a later one.
    fn file_name(&self) -> String {
        format!("{}.{}.{}.json", self.session, self.name, self.process.pid)
    }
}

impl Announcement {
    /// What others see.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Tells what the agent does now.
    pub fn update(&mut self, doing: &str) -> Result<(), FolderError> {
        if self.presence.doing == doing {
            return Ok(());
        }
        doing.clone_into(&mut self.presence.doing);
        self.write()
    }

    fn write(&self) -> Result<(), FolderError> {
        let bytes = serde_json::to_vec(&self.presence).map_err(io::Error::from);
        let written =
            bytes.and_then(|bytes| self.directory.replace(&self.presence.file_name(), &bytes, false));
        written.map_err(|error| FolderError::new("write", self.directory.path(), error))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // What stays is removed by whoever lists next, once this process has ended.
        let _ = self.directory.remove(&self.presence.file_name());
    }
}

/// The agents that run, in the order that they started in. What killed ones left in `dir` is removed; a directory that
/// is not there holds nobody.
pub fn list(dir: &Path) -> Result<Vec<Presence>, FolderError> {
    let failed = |error| FolderError::new("read", dir, error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let directory = Directory::open(dir)?;
    let mut present = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(file_name) = entry.file_name().into_string() else { continue };
        let Some(pid) = pid_of(&file_name) else { continue };
        match read(&directory, &file_name) {
            Some(presence) if presence.process.is_alive() => present.push(presence),
            // Of a later version, or just being written.
            None if Process::of(pid).is_some() => {}
            presence => remove(&directory, &file_name, presence.as_ref()),
        }
    }
    present.sort_by(|one, other| (one.started, &one.name).cmp(&(other.started, &other.name)));
    Ok(present)
}

/// The process that a file is of, by its name: `<session>.<name>.<pid>.json`, or that with what a rename needs.
fn pid_of(file_name: &str) -> Option<u32> {
    let is_new = file_name.starts_with('.');
    let name = if is_new { file_name.strip_suffix(".new")? } else { file_name };
    name.strip_suffix(".json")?.rsplit_once('.')?.1.parse().ok()
}

fn read(directory: &Directory, file_name: &str) -> Option<Presence> {
    let bytes = directory.read(file_name, 0, PRESENCE_BYTES_MAX).ok()??;
    serde_json::from_slice(&bytes).ok().filter(|presence: &Presence| presence.file_name() == file_name)
}

/// Removes the file of a killed agent and the socket that lies beside it. What fails is left for the next.
fn remove(directory: &Directory, file_name: &str, presence: Option<&Presence>) {
    let socket = presence.and_then(|presence| presence.socket.as_deref());
    if let Some(socket) = socket.filter(|socket| socket.parent() == Some(directory.path())) {
        let _ = Socket::remove_stale(socket);
    }
    let _ = directory.remove(file_name);
}
