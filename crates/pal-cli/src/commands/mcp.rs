//! `pal mcp`: memory and recall for other agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_mcp_server::Offer;
use pal_memory::Place;
use pal_recall::project_and_session;
use pal_sources::project_of;

use crate::arguments;
use crate::failure::Failure;
use crate::kept;
use crate::settings::Settings;
use crate::surroundings::with_embeddings;

pub(crate) fn mcp(arguments: &arguments::Mcp, settings: &Settings) -> Result<ExitCode, Failure> {
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })?;
    let directory = match &arguments.project {
        Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error))?,
        None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
    };
    let project = project_of(&directory);
    let (_, sessions) = kept::of_directory(home, &directory);
    let mut projects: BTreeSet<PathBuf> =
        sessions.iter().filter_map(|kept| Some(project_and_session(&kept.log)?.0)).collect();
    // Its first session may still come.
    projects.insert(pal_store::project_directory(home, &project));
    let offer = Offer {
        memory: with_embeddings(Place::of_project(home, &project), settings),
        projects: projects.into_iter().collect(),
        is_read_only: arguments.read_only,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    pal_mcp_server::serve(offer).map_err(|why| {
        Failure::with_hint(why, "other agents start this server themselves: `pal mcp --help` shows how")
    })?;
    Ok(ExitCode::SUCCESS)
}
