//! `pal recall`: searches everything that was said in stored sessions.

mod passage_list;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_recall::{
    NearbyText, PassageHit, Recall, RecallQuery, RecallResults, SearchError, project_and_session, search_all,
};
use pal_report::sanitize;
use serde_json::{Value, json};

use crate::arguments;
use crate::failure::Failure;
use crate::open_session::now;
use crate::progress::BytesProgress;
use crate::session_lookup::find;
use crate::settings::Settings;
use crate::terminal_style::{columns, style_for};
use pal_report::stored_sessions;
use passage_list::PassageList;

/// Time limit for indexing new content per search; the rest is searched unindexed.
const INDEXING_MAX: Duration = Duration::from_millis(1_500);
/// Lines of context around a match.
const CONTEXT_LINES: usize = 2;

pub(crate) fn recall(
    arguments: &arguments::RecallArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let query = arguments.query.join(" ");
    let SearchScope { mut recalls, session, where_ } = search_scope(arguments, settings)?;
    let mut telling = BytesProgress::new("indexing sessions");
    let wanted = RecallQuery {
        query: &query,
        session: session.as_deref(),
        limit: arguments.limit,
        context_lines: arguments.context.unwrap_or(CONTEXT_LINES),
        now: now(),
        caller: None,
    };
    let mut unindexed = RecallResults::default();
    for recall in &mut recalls {
        let begun = Instant::now();
        let updated = recall
            .update(&mut |progress| {
                telling.show(progress.done, progress.total) && begun.elapsed() < INDEXING_MAX
            })
            .map_err(|error| failure(&error))?;
        telling.end();
        for problem in &updated.unreadable {
            eprintln!("pal: {}", sanitize(problem));
        }
        for damaged in &updated.damaged {
            eprintln!("pal: damaged log: {}", sanitize(damaged));
        }
        if updated.is_behind {
            eprintln!(
                "pal: indexing is not finished: the rest of the logs is searched without the index, and indexed by the \
                 next searches"
            );
        }
        if updated.is_behind {
            let more = recall.search_unindexed(&wanted).map_err(|error| failure(&error))?;
            unindexed.join(more, arguments.limit);
        }
    }
    let mut found = search_all(&mut recalls, &wanted).map_err(|error| failure(&error))?;
    found.join(unindexed, arguments.limit);
    if arguments.json {
        let list: Vec<Value> = found.passages.iter().map(passage_object).collect();
        writeln!(out, "{}", Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = PassageList {
        colors: style_for(arguments.color),
        columns: columns(),
        now: now(),
        is_all: arguments.all,
        is_full: arguments.full || arguments.context.is_some(),
    };
    match found.passages.is_empty() {
        true => {
            writeln!(out, "No matches for `{}` in {where_}.", sanitize(&query))?;
            if query.matches(['"', '“', '”']).count() > 1 {
                writeln!(
                    out,
                    "Text in double quotes must occur exactly as it is; search without the quotes for its words."
                )?;
            }
            let wider = if arguments.all { "" } else { ", or --all for every project" };
            writeln!(out, "Try fewer or different words: names, paths, parts of an error message{wider}.")?;
        }
        false => page.write(&found, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Indexes to search, the session to search in, and a name for the scope.
struct SearchScope {
    recalls: Vec<Recall>,
    session: Option<String>,
    where_: String,
}

fn search_scope(arguments: &arguments::RecallArgs, settings: &Settings) -> Result<SearchScope, Failure> {
    if let Some(name) = &arguments.session {
        return session_scope(name, settings);
    }
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })?;
    let (sessions, where_) = match arguments.all {
        true => (stored_sessions::list_sessions(home), String::from("any stored session")),
        false => {
            let directory = match &arguments.directory {
                Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error))?,
                None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
            };
            let (project, sessions) = stored_sessions::project_sessions(home, &directory);
            (sessions, format!("the sessions of {}", sanitize(&project.to_string_lossy())))
        }
    };
    let folders: BTreeSet<PathBuf> =
        sessions.iter().filter_map(|kept| Some(project_and_session(&kept.log)?.0)).collect();
    let recalls = folders.iter().map(|folder| Recall::of_project(folder)).collect();
    Ok(SearchScope { recalls, session: None, where_ })
}

fn session_scope(name: &str, settings: &Settings) -> Result<SearchScope, Failure> {
    let log = find(name, settings)?;
    let log = log.canonicalize().map_err(|error| Failure::of_file(&log, &error))?;
    let where_ = String::from("this session");
    if let Some((project, session)) = project_and_session(&log) {
        return Ok(SearchScope {
            recalls: vec![Recall::of_project(&project)],
            session: Some(session),
            where_,
        });
    }
    match pal_store::read_session_entry(&log) {
        Some(_) => Ok(SearchScope { recalls: vec![Recall::of_log(&log)], session: None, where_ }),
        None => Err(Failure::with_hint(
            format!("{}: only sessions of pal can be searched", log.display()),
            format!("import it with `pal import {}`, then search by its id", log.display()),
        )),
    }
}

/// Converts a match to JSON.
fn passage_object(place: &PassageHit) -> Value {
    let passage = &place.passage;
    let nearby = |nearby: &NearbyText| {
        json!({
            "who": nearby.speaker.name(), "at": nearby.at, "entry": nearby.entry.to_string(), "text": nearby.text,
            "cut_before": nearby.is_cut_before, "cut_after": nearby.is_cut_after,
        })
    };
    json!({
        "session": place.session, "title": place.description.title(), "directory": place.description.directory,
        "agent": place.agent, "who": place.speaker.name(), "said_by": place.speaker.to_string(), "at": place.at,
        "entry": place.entry.map(|entry| entry.to_string()), "file": place.file.to_string_lossy(),
        "line": place.line, "offset": place.offset, "text": passage.text, "text_line": passage.line,
        "text_character": passage.character, "cut_before": passage.is_cut_before, "cut_after": passage.is_cut_after,
        "marks": passage.marks.iter().map(|mark| [mark.start, mark.end]).collect::<Vec<_>>(),
        "before": place.nearby.before.as_ref().map(nearby), "after": place.nearby.after.as_ref().map(nearby),
        "words": place.words, "all_words": place.has_all_words, "score": place.score,
    })
}

fn failure(error: &SearchError) -> Failure {
    Failure::with_hint(
        error.to_string(),
        "try again; if it persists, delete recall.db in the project directory under PAL_HOME",
    )
}
