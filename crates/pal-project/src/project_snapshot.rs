//! Collects the project context of a session: git runs on its own thread while instruction files are read.

use std::thread;
use std::time::{Duration, Instant};

use pal_prompt::{GitState, HostEnvironment};

use crate::git_snapshot::take_git_snapshot;
use crate::host_environment::read_environment;
use crate::instruction_discovery::{InstructionSet, discover_instructions};
use crate::instruction_locations::InstructionSearch;

/// Inputs of the gathering.
#[derive(Clone, Debug)]
pub struct ProjectQuery {
    /// Locations of instruction files, and the working directory.
    pub search: InstructionSearch,
    /// Timeout for git; none to skip git.
    pub git_time: Option<Duration>,
    /// The user's shell, where known.
    pub shell: Option<String>,
}

/// Instruction files, git and machine around a session.
#[derive(Clone, Debug)]
pub struct ProjectSnapshot {
    /// The repository.
    pub git: GitState,
    /// The instruction files.
    pub instructions: InstructionSet,
    /// The machine and the place.
    pub environment: HostEnvironment,
    /// Time for files and machine.
    pub took: Duration,
    /// Time until git had answered too.
    pub took_with_git: Duration,
}

/// Collects the project context of a session.
pub fn take_project_snapshot(request: &ProjectQuery) -> ProjectSnapshot {
    let begin = Instant::now();
    let search = &request.search;
    thread::scope(|scope| {
        let git =
            request.git_time.map(|limit| scope.spawn(move || take_git_snapshot(&search.directory, limit)));
        let instructions = discover_instructions(search);
        let environment = read_environment(&search.directory, &search.added, request.shell.as_deref());
        let took = begin.elapsed();
        let git = match git {
            None => GitState::Absent("switched off".to_owned()),
            Some(git) => git.join().unwrap_or_else(|_| GitState::Absent("git could not be asked".to_owned())),
        };
        ProjectSnapshot { git, instructions, environment, took, took_with_git: begin.elapsed() }
    })
}
