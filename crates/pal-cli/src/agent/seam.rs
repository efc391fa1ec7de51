//! Where the agent is joined to the command line.

use super::Show;
use crate::arguments::Print;
use crate::failure::Failure;
use crate::settings::Settings;

/// What the agent shall do.
pub(crate) enum Task {
    /// One prompt.
    Prompt(String),
    /// The lines of standard input, as long as it is open: [`super::listen`] reads them.
    Lines,
}

/// Lets the agent work on a task and tells everything that happens to `show`; the exit code follows from the last
/// [`pal_agent::Ended`] that it was told.
pub(crate) fn work(
    task: &Task,
    print: &Print,
    settings: &Settings,
    show: &mut dyn Show,
) -> Result<(), Failure> {
    let _ = (task, print, settings, show);
    Err(Failure::with_hint(
        "this build of pal has no agent in it",
        "`pal ask` puts a question to a model; `pal --help` lists the other commands",
    ))
}
