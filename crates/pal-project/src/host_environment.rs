//! Operating system, shell and directory of a session.

use std::path::{Path, PathBuf};

use pal_prompt::HostEnvironment;

use crate::display_text::display_path;
use crate::project_bounds::{find_repository, resolve_links};
use crate::text_reader::read_text;

/// Describes the machine and the directory. The caller, which reads the environment, names the shell.
pub fn read_environment(directory: &Path, added: &[PathBuf], shell: Option<&str>) -> HostEnvironment {
    let directory = resolve_links(directory);
    HostEnvironment {
        is_repository: find_repository(&directory).is_some(),
        directory: display_path(&directory),
        added: added.iter().map(|added| display_path(&resolve_links(added))).collect(),
        platform: std::env::consts::OS.to_owned(),
        platform_version: platform_version(),
        shell: shell.map(str::to_owned),
    }
}

/// Version of the operating system, read from a file if there is one.
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
