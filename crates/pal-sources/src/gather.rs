//! Everything around a session, gathered at once: git in a thread of its own while the files are read.

use std::thread;
use std::time::{Duration, Instant};

use pal_prompt::{Environment, Git};

use crate::discover::{Discovered, discover};
use crate::environment::environment;
use crate::git::git_snapshot;
use crate::search::Search;

/// What to gather.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where instruction files are looked for, and where the session works.
    pub search: Search,
    /// How long git may take; nothing if it shall not be asked.
    pub git_time: Option<Duration>,
    /// The user's shell, where known.
    pub shell: Option<String>,
}

/// What is around a session.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The repository.
    pub git: Git,
    /// The instruction files.
    pub instructions: Discovered,
    /// The machine and the place.
    pub environment: Environment,
    /// How long files and machine took.
    pub took: Duration,
    /// How long it took until git was in, too.
    pub took_with_git: Duration,
}

/// Gathers what is around a session.
pub fn gather(request: &Request) -> Gathered {
    let begin = Instant::now();
    let search = &request.search;
    thread::scope(|scope| {
        let git = request.git_time.map(|limit| scope.spawn(move || git_snapshot(&search.directory, limit)));
        let instructions = discover(search);
        let environment = environment(&search.directory, &search.added, request.shell.as_deref());
        let took = begin.elapsed();
        let git = match git {
            None => Git::Absent("switched off".to_owned()),
            Some(git) => git.join().unwrap_or_else(|_| Git::Absent("git could not be asked".to_owned())),
        };
        Gathered { git, instructions, environment, took, took_with_git: begin.elapsed() }
    })
}
