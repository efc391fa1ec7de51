//! The user's command for the status line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pal_process::{CancelToken, CaptureLimits, CommandInput, CommandSpec, Program, StreamMode, run_command};
use pal_tui::StatusCommandFn;

use crate::settings::Settings;

/// Time limit of one run.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum bytes of its output.
const OUTPUT_BYTES_MAX: usize = 4_096;

/// The command of the setting `status_line`: it gets a JSON object on standard input and prints a line.
pub(super) fn status_command(settings: &Settings, directory: &Path) -> Option<StatusCommandFn> {
    let line = settings.terminal.status_line.clone()?;
    let (directory, hidden) = (directory.to_owned(), settings.secret_variables.clone());
    Some(Arc::new(move |input| {
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), line.clone().into()],
            directory: directory.clone(),
            environment: removed_variables(&hidden),
            thread_setup: None,
        };
        let spec = CommandSpec {
            program,
            input: CommandInput::Bytes(input.as_bytes().to_vec()),
            streams: StreamMode::Separate,
            keep: CaptureLimits::up_to(OUTPUT_BYTES_MAX),
            limit: Some(TIME_MAX),
        };
        let done = run_command(spec, &CancelToken::new(), &|_| {}).ok()?;
        // A failing command shows nothing rather than half a line.
        let is_success = done.status.is_success() && done.stopped.is_none();
        is_success.then(|| String::from_utf8_lossy(&done.output.head).into_owned())
    }))
}

/// Removal of the variables that hold secrets.
fn removed_variables(hidden: &[String]) -> Vec<(OsString, Option<OsString>)> {
    let visible: BTreeSet<OsString> =
        pal_tools::visible_variables(hidden).into_iter().map(|(name, _)| name).collect();
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| !visible.contains(name)).map(|name| (name, None)).collect()
}

#[cfg(test)]
mod tests {
    use pal_settings::SettingsInput;

    use super::*;

    fn shown(command: &str, input: &str) -> Option<String> {
        let given = Some(format!("status_line = {command:?}\n"));
        let settings = Settings::read(SettingsInput { given, ..SettingsInput::default() }).unwrap();
        status_command(&settings, Path::new("/")).unwrap()(input)
    }

    #[test]
    fn the_command_reads_the_status_and_its_output_is_shown() {
        assert_eq!(shown("cat; pwd", "{}").as_deref(), Some("{}/\n"));
        assert_eq!(shown("echo half; exit 1", "{}"), None);
        let settings = Settings::read(SettingsInput::default()).unwrap();
        assert!(status_command(&settings, Path::new("/")).is_none());
    }
}
