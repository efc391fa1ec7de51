//! Runs a command behind the fence: what `pal` itself does when it is the last step before a command. For tests, which
//! have no `pal` at hand.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != pal_sandbox::HELPER_ARGUMENT) {
        eprintln!("pal-fenced is called by a fence");
        return ExitCode::from(2);
    }
    eprintln!("{}", pal_sandbox::enter_and_exec(arguments));
    ExitCode::from(126)
}
