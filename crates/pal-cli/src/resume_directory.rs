//! The directory in which a session is continued: a session never continues silently in another one than its own.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use pal_agent::{is_same_directory, session_directory};

use crate::arguments::AgentArgs;
use crate::failure::Failure;
use crate::session_lookup::find;
use crate::session_lookup::{no_sessions, project_logs};
use crate::settings::Settings;

/// A session that belongs to another directory than the one it would be continued in.
#[derive(Debug)]
pub(crate) struct DirectoryMismatch {
    log: PathBuf,
    /// Directory of the session.
    pub(crate) session: PathBuf,
    current: PathBuf,
}

/// Answer of the user to a mismatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DirectoryChoice {
    /// Work in the session's directory.
    Enter,
    /// Fork the session into the current directory.
    Fork,
    Cancel,
}

/// Works in the directory of `--cd`. A teammate is started where it works and gets the flags of its lead.
pub(crate) fn enter_directory(args: &AgentArgs) -> Result<(), Failure> {
    match &args.session.directory {
        Some(directory) if !args.is_teammate => std::env::set_current_dir(directory).map_err(|error| {
            Failure::usage_error(format!("--cd {}: {error}", directory.display()), "check the path")
        }),
        _ => Ok(()),
    }
}

/// The log that the arguments continue; none for a new session.
pub(crate) fn continued_log(args: &AgentArgs, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    match &args.session.resume {
        Some(name) => find(name, settings).map(Some),
        None if args.session.is_continued => newest_of_directory(settings).map(Some),
        None => Ok(None),
    }
}

/// Log of the newest session that belongs to the current directory itself; if there is none, the newest of the project.
fn newest_of_directory(settings: &Settings) -> Result<PathBuf, Failure> {
    let (current, sessions) = project_logs(settings)?;
    let own = sessions.iter().find(|log| find_mismatch(log, &current).is_none());
    own.or(sessions.first()).cloned().ok_or_else(|| no_sessions(&current))
}

/// Compares the directory of a session with the one to continue it in.
pub(crate) fn find_mismatch(log: &Path, current: &Path) -> Option<DirectoryMismatch> {
    // A log that cannot be read is reported when it is opened.
    let session = session_directory(log).ok().flatten()?;
    let is_other = session.is_absolute() && !is_same_directory(&session, current);
    is_other.then(|| DirectoryMismatch { log: log.to_owned(), session, current: current.to_owned() })
}

impl DirectoryMismatch {
    /// The refusal, with the ways to continue.
    pub(crate) fn failure(&self) -> Failure {
        let DirectoryMismatch { session, current, .. } = self;
        let what = format!(
            "the session belongs to {}, and you are in {}: its relative paths would name other files here",
            session.display(),
            current.display()
        );
        let fork = "--fork-session continues it here in a new session";
        Failure::with_hint(
            what,
            match session.is_dir() {
                true => format!("--cd {} continues it there, {fork}", quoted(session)),
                false => format!("{} no longer exists; {fork}", session.display()),
            },
        )
    }

    /// Name of the session in commands.
    fn name(&self) -> String {
        let folder = self.log.parent().and_then(Path::file_name);
        folder.map_or_else(|| self.log.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// The command that continues the session where it belongs; none if that directory is gone.
    pub(crate) fn command(&self) -> Option<String> {
        let directory = self.session.is_dir().then(|| quoted(&self.session))?;
        Some(format!("pal --cd {directory} --resume {}", self.name()))
    }
}

/// Asks where to continue a session of another directory, and changes the arguments and the current directory
/// accordingly. Returns whether the directory changed: then settings have to be read again.
pub(crate) fn ask_directory(args: &mut AgentArgs, settings: &Settings) -> Result<bool, Failure> {
    let is_chosen_later = args.session.resume.as_deref() == Some("");
    if args.session.fork_session || is_chosen_later {
        return Ok(false);
    }
    let Some(log) = continued_log(args, settings)? else { return Ok(false) };
    let current = std::env::current_dir();
    let current = current.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    let Some(mismatch) = find_mismatch(&log, &current) else { return Ok(false) };
    match ask(&mismatch, &mut std::io::stdin().lock(), &mut std::io::stderr())? {
        DirectoryChoice::Enter => {
            // The name may have been relative, or the newest session here.
            args.session.resume = Some(std::path::absolute(&log).unwrap_or(log).display().to_string());
            args.session.is_continued = false;
            std::env::set_current_dir(&mismatch.session)
                .map_err(|error| Failure::of_file(&mismatch.session, &error))?;
            Ok(true)
        }
        DirectoryChoice::Fork => {
            args.session.fork_session = true;
            Ok(false)
        }
        DirectoryChoice::Cancel => Err(mismatch.failure()),
    }
}

fn ask(
    mismatch: &DirectoryMismatch,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> std::io::Result<DirectoryChoice> {
    let DirectoryMismatch { session, current, .. } = mismatch;
    writeln!(out, "This session belongs to {}.", session.display())?;
    writeln!(out, "You are in {}.", current.display())?;
    if session.is_dir() {
        writeln!(out, "  1  continue it in {}", session.display())?;
    }
    writeln!(out, "  2  fork it: continue here in a new session")?;
    write!(out, "Anything else cancels: ")?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(match answer.trim() {
        "1" if session.is_dir() => DirectoryChoice::Enter,
        "2" => DirectoryChoice::Fork,
        _ => DirectoryChoice::Cancel,
    })
}

/// A path as one word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@%".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_another_directory_is_asked_about() {
        let folder = tempfile::tempdir().unwrap();
        let check = |session: &Path, answer: &str| {
            let mismatch = DirectoryMismatch {
                log: PathBuf::from("/sessions/one/log.jsonl"),
                session: session.to_owned(),
                current: PathBuf::from("/here"),
            };
            let mut out = Vec::new();
            let choice = ask(&mismatch, &mut answer.as_bytes(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains(&session.display().to_string()) && text.contains("/here"), "{text}");
            choice
        };
        assert_eq!(check(folder.path(), "1\n"), DirectoryChoice::Enter);
        assert_eq!(check(folder.path(), " 2 \n"), DirectoryChoice::Fork);
        assert_eq!(check(folder.path(), "\n"), DirectoryChoice::Cancel);
        assert_eq!(check(folder.path(), ""), DirectoryChoice::Cancel);
        assert_eq!(check(Path::new("/gone"), "1\n"), DirectoryChoice::Cancel, "nothing is left to enter");
    }

    #[test]
    fn a_refusal_gives_commands_that_can_be_pasted() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("it's here");
        std::fs::create_dir(&odd).unwrap();
        let mismatch = |session: PathBuf| DirectoryMismatch {
            log: PathBuf::from("/sessions/0199/log.jsonl"),
            session,
            current: PathBuf::from("/here"),
        };
        let command = mismatch(odd).command().unwrap();
        assert!(command.ends_with("/it'\\''s here' --resume 0199"), "{command}");
        let gone = mismatch(PathBuf::from("/gone"));
        assert_eq!(gone.command(), None);
        let text = gone.failure().to_string();
        assert!(text.contains("--fork-session") && !text.contains("--cd"), "{text}");
    }
}
