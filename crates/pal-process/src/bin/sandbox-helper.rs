//! Sandbox helper for tests: enters the sandbox and becomes the command, as `pal` itself does.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != pal_process::sandbox::HELPER_ARGUMENT) {
        eprintln!("sandbox-helper: expected the argument __sandbox; only a sandbox calls this program");
        return ExitCode::from(2);
    }
    eprintln!("{}", pal_process::sandbox::enter_and_exec(arguments));
    ExitCode::from(126)
}
