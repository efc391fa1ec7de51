//! `xtask calibrate`: fits the token estimators to real data and says how well they do on what they have not seen.
//!
//! Prints the held-out errors; with `--write` it also fits on everything and rewrites the estimators' table.
//! The same data give the same bytes.

mod calibration_rows;
mod evaluate;
mod fit;
mod models;
mod table;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::{Path, PathBuf};

use calibration_rows::Data;

const TABLE: &str = "crates/pal-view/src/estimate/weight_table.rs";

/// Runs the task with the arguments behind its name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let options = Options::parse(arguments)?;
    let data = Data::load(&options.data)?;
    let report = evaluate::report(&data);
    print!("{report}");
    if options.write {
        let path = workspace_root().join(TABLE);
        std::fs::write(&path, table::render(&models::fit_all(&data), &report))?;
        println!("wrote {TABLE}");
    }
    Ok(())
}

struct Options {
    data: PathBuf,
    write: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, Box<dyn Error>> {
        let mut options = Options { data: default_data(), write: false };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--write" => options.write = true,
                "--data" => options.data = arguments.next().ok_or("--data needs a folder")?.into(),
                other => return Err(format!("calibrate: unknown argument {other}").into()),
            }
        }
        Ok(options)
    }
}

fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// The real data lie beside the workspace.
fn default_data() -> PathBuf {
    workspace_root().join("../shared/data")
}
