//! `pal recall`: what was ever said, word for word.

mod page;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_recall::{Found, Place, Recall, SearchError, Wanted, project_and_session};
use serde_json::{Value, json};

use crate::arguments;
use crate::colour::{Colours, columns};
use crate::failure::Failure;
use crate::kept;
use crate::progress::BytesProgress;
use crate::settings::Settings;
use crate::stored::{find, now};
use crate::table::harmless;
use page::Page;

/// How long one search indexes what is new. What remains is searched by its bytes.
const INDEXING_MAX: Duration = Duration::from_millis(1_500);

pub(crate) fn recall(
    arguments: &arguments::Recall,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let query = arguments.query.join(" ");
    let Searched { mut recalls, session, where_ } = searched(arguments, settings)?;
    let mut telling = BytesProgress::new("indexing sessions");
    let mut found = Found::default();
    for recall in &mut recalls {
        let begun = Instant::now();
        let updated = recall
            .update(&mut |progress| {
                telling.tell(progress.done, progress.total) && begun.elapsed() < INDEXING_MAX
            })
            .map_err(|error| failure(&error))?;
        telling.end();
        for problem in &updated.unread {
            eprintln!("pal: {}", harmless(problem));
        }
        for damaged in &updated.damaged {
            eprintln!("pal: damaged log: {}", harmless(damaged));
        }
        if updated.is_behind {
            eprintln!(
                "pal: not all sessions are indexed yet: the rest of their logs is searched by its words, and indexed with the \
                 next searches"
            );
        }
        let wanted = Wanted {
            query: &query,
            session: session.as_deref(),
            most: arguments.limit,
            around: arguments.context,
            now: now(),
        };
        found.join(recall.search(&wanted).map_err(|error| failure(&error))?, arguments.limit);
        if updated.is_behind {
            found.join(recall.search_unindexed(&wanted).map_err(|error| failure(&error))?, arguments.limit);
        }
    }
    if arguments.json {
        let list: Vec<Value> = found.places.iter().map(|place| object(place, found.is_loose)).collect();
        writeln!(out, "{}", Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = Page {
        colours: Colours::of(arguments.colour),
        columns: columns(),
        now: now(),
        is_all: arguments.all,
    };
    match found.places.is_empty() {
        true => {
            writeln!(out, "Nothing in {where_} holds `{}`.", harmless(&query))?;
            let wider = if arguments.all { "" } else { ", or --all for every project" };
            writeln!(out, "Try fewer or other words: names, paths, words of an error message{wider}.")?;
        }
        false => page.write(&found, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The indexes that are searched, within which session, and how that is called.
struct Searched {
    recalls: Vec<Recall>,
    session: Option<String>,
    where_: String,
}

fn searched(arguments: &arguments::Recall, settings: &Settings) -> Result<Searched, Failure> {
    if let Some(name) = &arguments.session {
        return of_session(name, settings);
    }
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })?;
    let (sessions, where_) = match arguments.all {
        true => (kept::all(home), String::from("any session that is kept here")),
        false => {
            let directory = match &arguments.directory {
                Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error))?,
                None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
            };
            let (project, sessions) = kept::of_directory(home, &directory);
            (sessions, format!("the sessions of {}", harmless(&project.to_string_lossy())))
        }
    };
    let folders: BTreeSet<PathBuf> =
        sessions.iter().filter_map(|kept| Some(project_and_session(&kept.log)?.0)).collect();
    let recalls = folders.iter().map(|folder| Recall::of_project(folder)).collect();
    Ok(Searched { recalls, session: None, where_ })
}

fn of_session(name: &str, settings: &Settings) -> Result<Searched, Failure> {
    let log = find(name, settings)?;
    let log = log.canonicalize().map_err(|error| Failure::of_file(&log, &error))?;
    let where_ = String::from("this session");
    if let Some((project, session)) = project_and_session(&log) {
        return Ok(Searched { recalls: vec![Recall::of_project(&project)], session: Some(session), where_ });
    }
    match kept::beginning(&log) {
        Some(_) => Ok(Searched { recalls: vec![Recall::of_log(&log)], session: None, where_ }),
        None => Err(Failure::with_hint(
            format!("{}: only sessions of pal are searched", log.display()),
            format!("`pal import {}` takes it over; its id is searched then", log.display()),
        )),
    }
}

/// A place for programs.
fn object(place: &Place, is_loose: bool) -> Value {
    let passage = &place.passage;
    json!({
        "session": place.session, "title": place.about.title(), "directory": place.about.directory,
        "agent": place.agent, "who": place.who.name(), "said_by": place.who.to_string(), "at": place.at,
        "entry": place.entry.map(|entry| entry.to_string()), "file": place.file.to_string_lossy(),
        "line": place.line, "offset": place.offset, "text": passage.text, "text_line": passage.line,
        "text_character": passage.character, "cut_before": passage.is_cut_before, "cut_after": passage.is_cut_after,
        "marks": passage.marks.iter().map(|mark| [mark.start, mark.end]).collect::<Vec<_>>(),
        "words": place.words, "all_words": !is_loose, "score": place.score,
    })
}

fn failure(error: &SearchError) -> Failure {
    Failure::with_hint(
        error.to_string(),
        "try again; if it stays so, delete recall.db in the folder of the project",
    )
}
