//! The machine and the place that a session works in.

use std::path::{Path, PathBuf};

use pal_prompt::Environment;

use crate::project::{real, repository_around};
use crate::reading::read_text;
use crate::words::shown;

/// Describes the machine and the place. The shell comes from whoever may read the environment.
pub fn environment(directory: &Path, added: &[PathBuf], shell: Option<&str>) -> Environment {
    let directory = real(directory);
    Environment {
        is_repository: repository_around(&directory).is_some(),
        directory: shown(&directory),
        added: added.iter().map(|added| shown(&real(added))).collect(),
        platform: std::env::consts::OS.to_owned(),
        platform_version: platform_version(),
        shell: shell.map(str::to_owned),
    }
}

/// The version of the operating system, where a file tells it.
fn platform_version() -> Option<String> {
    if cfg!(target_os = "macos") {
        let list = read_text(Path::new("/System/Library/CoreServices/SystemVersion.plist")).ok()?;
        let behind_key = list.split_once("<key>ProductVersion</key>")?.1;
        let value = behind_key.split_once("<string>")?.1.split_once("</string>")?.0;
        return Some(format!("macOS {value}"));
    }
    let release = read_text(Path::new("/proc/sys/kernel/osrelease")).ok()?;
    Some(format!("Linux {}", release.trim()))
}
