//! `pal` on a terminal: the agent works on a thread of its own, the terminal talks on this one.

mod asking;
mod listing;
mod prompts;
mod running;
mod sessions;
mod signals;
mod slash;
mod worker;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

use pal_tui::{Origin, Start, Told, run, run_plain};

use crate::arguments::{ColourName, Print};
use crate::colour::Colours;
use crate::failure::Failure;
use crate::settings::Settings;
use running::Running;
use slash::Slash;

/// Whether there is somebody to talk with.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Tells the terminal that nothing more comes, however the agent's thread ends.
struct LastWord(Sender<Told>);

impl Drop for LastWord {
    fn drop(&mut self) {
        let _ = self.0.send(Told::Left(Some(String::from("the agent broke down; the session is kept"))));
    }
}

/// Talks with the user until they leave.
pub(crate) fn talk(print: &Print, settings: &Settings) -> Result<ExitCode, Failure> {
    let directory = std::env::current_dir().and_then(|directory| directory.canonicalize());
    let directory = directory.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    // A session that is not named is chosen from a list, before one is begun.
    let is_chosen = print.resume.as_deref() == Some("");
    let (told, news) = channel();
    signals::tell(told.clone());
    let (wishes, wished) = channel();
    let running = Running::default();
    let history = settings.home.as_ref().map(|home| home.join("prompts.jsonl"));
    let start = Start {
        is_coloured: Colours::of(ColourName::Auto).is_on(),
        directory: directory.clone(),
        history,
        prompt: print.prompt.clone(),
        command: is_chosen.then(|| String::from("resume")),
        commands: Box::new(Slash::new(settings.clone(), &directory, running.clone())),
        suspend: signals::suspend,
    };
    let print_then = Print { resume: print.resume.clone().filter(|name| !name.is_empty()), ..print.clone() };
    let left = std::thread::scope(|scope| {
        let last = LastWord(told.clone());
        let worker = scope.spawn(move || {
            let _last = last;
            worker::work(print_then, settings, &running, &wished, &told, is_chosen);
        });
        let talking = if print.plain { run_plain } else { run };
        let left = talking(start, Origin { told: news, wishes });
        // Whatever is under way was told to stop; what it leaves is written.
        drop(worker.join());
        left
    });
    match left {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(why)) => Err(Failure::new(why)),
        Err(error) => Err(Failure::new(format!("the terminal: {error}"))),
    }
}
