//! Automation of the workspace.

mod calibrate;
mod fit;
mod readme;
mod tidy;

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    match arguments.split_first() {
        Some((task, rest)) if task == "calibrate" => calibrate::run(rest),
        Some((task, rest)) if task == "fit" => fit::run(rest),
        Some((task, rest)) if task == "readme" => readme::run(rest),
        Some((task, rest)) if task == "tidy" => tidy::run(rest),
        Some((task, _)) => {
            Err(format!("unknown task {task}; the tasks are tidy, readme, calibrate and fit").into())
        }
        None => Err(
            "give a task: tidy [CRATE…], readme [PAL], calibrate [--data DIR] [--write], fit [--data DIR]"
                .into(),
        ),
    }
}
