//! `pal trust`: shows a project's settings and MCP servers, and records that the user trusts them.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use pal_settings::{TRUSTED_FILES, record_trust};

use crate::arguments::TrustArgs;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::setup::visible_text;

pub(crate) fn trust(
    arguments: &TrustArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let (Some(project), Some(home)) = (settings.project.top.clone(), pal_store::home_from_environment())
    else {
        return Err(Failure::usage_error(
            String::from("not in a project"),
            "change to the project directory first",
        ));
    };
    let mut n_files = 0;
    for name in TRUSTED_FILES {
        let path = project.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                n_files += 1;
                // The user sees everything they approve, with control characters made visible.
                writeln!(out, "--- {}\n{}\n", path.display(), visible_text(text.trim_end()))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::of_file(&path, &error)),
        }
    }
    if n_files == 0 {
        writeln!(out, "{} has no settings and no MCP servers of its own.", project.display())?;
    }
    out.flush()?;
    if !arguments.yes {
        if !std::io::stdin().is_terminal() {
            let hint = "run it in a terminal, or add --yes once you have read the files above";
            return Err(Failure::usage_error(
                String::from("cannot ask for confirmation: standard input is not a terminal"),
                hint,
            ));
        }
        eprint!(
            "Trust {}? Its settings and MCP servers may then run commands as you. [y/N] ",
            project.display()
        );
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            writeln!(out, "Not trusted: nothing changed.")?;
            return Ok(ExitCode::from(crate::exit_codes::ERROR));
        }
    }
    std::fs::create_dir_all(&home)?;
    record_trust(&home, &project)?;
    writeln!(out, "Trusted: {}. If one of these files changes, you are asked again.", project.display())?;
    Ok(ExitCode::SUCCESS)
}
