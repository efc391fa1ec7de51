//! Shell script that runs a command and reports its final directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Path of bash; `/bin/sh` if it is missing.
pub(super) fn shell() -> PathBuf {
    shell_in(&std::env::var_os("PATH").unwrap_or_default())
}

fn shell_in(path: &OsStr) -> PathBuf {
    // A relative `PATH` entry could lie in the workspace, whose content is untrusted.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("bash")).find(|program| program.is_file());
    found.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// Wraps a command in a script that reports the final working directory.
///
/// The report goes through the pipe on the input ([`pal_process::CommandInput::Report`]), moved to another
/// descriptor. That descriptor is closed while the command runs, and no program inherits the pipe, so that
/// output is never taken for a report. A command that searches for it gains only what `cd` gives it. The trap
/// handles commands that exit the shell, the last lines those with a trap of their own; the last report
/// counts. A command that replaces the shell by another program reports nothing, and the directory stays.
pub(super) fn wrap_command(command: &str) -> String {
    let report = r#"{ command printf '%s\0' "$(command pwd -P)" >&9; } 2>/dev/null"#;
    let (quoted_report, command) = (quoted(report), quoted(command));
    format!(
        "exec 9>&0 </dev/null\ntrap {quoted_report} EXIT\neval {command} 9>&-\n\
         {{ set -- \"$?\"; }} 2>/dev/null\n{report}\n{{ exit \"$1\"; }} 2>/dev/null"
    )
}

/// Directory in the last complete report.
pub(super) fn parse_report(report: &[u8]) -> Option<PathBuf> {
    let reports = report.strip_suffix(b"\0")?;
    let last = reports.rsplit(|byte| *byte == 0).next()?;
    let path = PathBuf::from(OsStr::from_bytes(last));
    path.is_absolute().then_some(path)
}

/// Quotes a text as one shell word.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_path_entries_are_ignored() {
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
        assert_eq!(parse_report(b""), None);
        assert_eq!(parse_report(b"/a\0/b c\0"), Some("/b c".into()));
        assert_eq!(parse_report(b"/a\0/b"), None, "one that has no end is none");
        assert_eq!(parse_report(b"a\0"), None);
        assert_eq!(parse_report(b"/a\nb\0"), Some("/a\nb".into()));
    }
}
