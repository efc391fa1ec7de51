//! A command line with a report of where it ended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The shell that commands are written for; a plainer one where it is missing.
pub(super) fn shell() -> PathBuf {
    shell_in(&std::env::var_os("PATH").unwrap_or_default())
}

fn shell_in(path: &OsStr) -> PathBuf {
    // A relative folder there could lie in the workspace, which anybody may have filled.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("bash")).find(|program| program.is_file());
    found.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// The command in a frame that reports the working directory when it is over.
///
/// The report goes through the pipe that stands on the input ([`pal_process::Input::Report`]), moved to another number.
/// That number is closed while the command runs, and no program inherits where the shell keeps the pipe meanwhile, so
/// that nothing that is printed is taken for a report. A line that goes looking for it gets what `cd` would give it. The trap is for commands that exit the shell, the lines
/// at the end for those that have a trap of their own; the last report counts. A command that replaces the shell by
/// another program reports nothing, and the directory stays as it was.
pub(super) fn framed(command: &str) -> String {
    let report = r#"{ command printf '%s\0' "$(command pwd -P)" >&9; } 2>/dev/null"#;
    let (quoted_report, command) = (quoted(report), quoted(command));
    format!(
        "exec 9>&0 </dev/null\ntrap {quoted_report} EXIT\neval {command} 9>&-\n\
         {{ set -- \"$?\"; }} 2>/dev/null\n{report}\n{{ exit \"$1\"; }} 2>/dev/null"
    )
}

/// The directory that the last whole report names.
pub(super) fn reported(report: &[u8]) -> Option<PathBuf> {
    let reports = report.strip_suffix(b"\0")?;
    let last = reports.rsplit(|byte| *byte == 0).next()?;
    let path = PathBuf::from(OsStr::from_bytes(last));
    path.is_absolute().then_some(path)
}

/// A text as one word of a command line.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_of_no_relative_folder() {
        let folder = tempfile::tempdir_in(".").unwrap();
        std::fs::write(folder.path().join("bash"), "").unwrap();
        let name = folder.path().file_name().unwrap();
        let whole = std::path::absolute(name).unwrap();
        assert_eq!(shell_in(name), PathBuf::from("/bin/sh"));
        assert_eq!(
            shell_in(&std::env::join_paths([OsStr::new(""), name]).unwrap()),
            PathBuf::from("/bin/sh")
        );
        assert_eq!(shell_in(whole.as_os_str()), whole.join("bash"));
    }

    #[test]
    fn the_last_report_counts() {
        assert_eq!(reported(b""), None);
        assert_eq!(reported(b"/a\0/b c\0"), Some("/b c".into()));
        assert_eq!(reported(b"/a\0/b"), None, "one that has no end is none");
        assert_eq!(reported(b"a\0"), None);
        assert_eq!(reported(b"/a\nb\0"), Some("/a\nb".into()));
    }
}
