//! Notes of a session: written aside by a fork that may touch nothing else, and taken for a summary when the window is full.

use pal_sim::{ExtractiveModel, ModelPrompt, SimulatedModel};
use serde_json::{Value, json};

use crate::test_world::{TestWorld, finish, log_lines};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// A window that is full after some twenty rounds; nothing is cleared before that.
const CARDS: &str =
    "[models.claude-opus-5-5]\nlike = \"claude-opus-5-5\"\nwindow = 110_000\nmax_output = 16_000\n";

/// Is true for requests of the note fork.
fn is_fork(ask: &ModelPrompt<'_>) -> bool {
    ask.messages
        .iter()
        .rev()
        .take(8)
        .any(|message| message.blocks.concat().contains("Update the session notes in"))
}

/// A conversation of N rounds; the simulator extracts notes word for word from the request.
fn rounds(
    most: usize,
    mut aside: impl FnMut(&ModelPrompt<'_>) -> Option<pal_sim::ModelOutput> + Send + 'static,
) -> ProviderSetup {
    let mut at = 0;
    ProviderSetup::answers(move |_, ask| {
        if is_fork(ask) {
            return aside(ask).unwrap_or_else(|| ExtractiveModel.answer(ask));
        }
        at += 1;
        // Words are neither cleared nor shortened: only a compaction makes room.
        let words = |word: usize| {
            format!("{at}.{word}: the {} is not the {}. ", word * 7_919 % 1_009, word * at % 97)
        };
        let thought: String = (0..250).map(words).collect();
        match at > most {
            true => says("All parts are read."),
            false => calls(&thought, &[("Bash", json!({"command": format!("true {at}")}))]),
        }
    })
}

fn run(world: &TestWorld) -> crate::test_world::RunOutput {
    finish(by_fork(world).spawn().unwrap())
}

/// The program, with notes by a fork.
fn by_fork(world: &TestWorld) -> std::process::Command {
    let mut command = world.command(&[
        "-p",
        "--verbose",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        "Read all parts, and mind the tests.",
    ]);
    command.env("PAL_NOTES", "fork");
    command
}

/// Responses in the log to requests of a source.
fn asked<'a>(log: &'a [Value], source: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["kind"] == "response" && line["source"] == source).collect()
}

/// Checks that every full window used the notes and asked no model for a summary.
fn assert_by_notes(log: &[Value], err: &str) {
    let boundaries: Vec<&Value> = log.iter().filter(|line| line["kind"] == "boundary").collect();
    assert!(!boundaries.is_empty(), "the window was full");
    for boundary in &boundaries {
        assert_eq!(boundary["how"], "notes", "{err}");
    }
    assert!(asked(log, "compact").is_empty(), "nobody was asked for a summary");
}

/// The path of the notes, as a directive names it in the newest messages.
fn path_in(ask: &ModelPrompt<'_>, before: &str, after: &str) -> Option<String> {
    let newest = ask.messages.iter().rev().take(2).map(|message| message.blocks.concat());
    newest.into_iter().find_map(|text| {
        let (_, rest) = text.split_once(before)?;
        Some(rest.split_once(after)?.0.to_owned())
    })
}

#[test]
fn a_full_window_uses_the_notes_and_asks_no_model() {
    let record = tempfile::tempdir().unwrap();
    let made = ProviderSetup {
        cards: CARDS.to_owned(),
        record: Some(record.path().to_owned()),
        ..rounds(30, |_| None)
    };
    let world = TestWorld::new(made);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let log = world.log();
    let boundaries: Vec<&Value> = log.iter().filter(|line| line["kind"] == "boundary").collect();
    assert!(!boundaries.is_empty(), "the window was full");
    for boundary in &boundaries {
        assert!(
            boundary["summary"].to_string().contains("mind the tests"),
            "what the user said stands in it"
        );
    }
    assert_by_notes(&log, &said.err);
    let forks = asked(&log, "notes");
    assert!((2..=60).contains(&forks.len()), "{} requests of forks", forks.len());
    let tokens = |key: &str| forks.iter().map(|line| line["usage"][key].as_u64().unwrap_or(0)).sum::<u64>();
    let read = tokens("cache_read_input_tokens");
    let all = read + tokens("input_tokens") + tokens("cache_creation_input_tokens");
    let cost = |lines: &[&Value]| lines.iter().map(|line| line["cost"].as_f64().unwrap_or(0.0)).sum::<f64>();
    println!(
        "{} requests of forks read {:.1} % of their input from the cache and cost {:.1} % of the session",
        forks.len(),
        100.0 * read as f64 / all as f64,
        100.0 * cost(&forks) / cost(&asked(&log, "main")),
    );
    let folder = world.logs()[0].parent().unwrap().join("notes");
    let notes = std::fs::read_to_string(folder.join("notes.md")).unwrap();
    assert_eq!(notes.lines().filter(|line| line.starts_with("# ")).count(), 10, "{notes}");
    assert!(notes.contains("- ran `true "), "{notes}");
    let ledger = finish(world.command(&["memory", "ledger", "--json"]).spawn().unwrap());
    let ledger: Value = serde_json::from_str(&ledger.out).unwrap();
    let row = &ledger["rows"][0];
    let figure = |key: &str| row[key].as_u64().unwrap();
    assert_eq!((row["source"].as_str(), figure("requests")), (Some("notes"), forks.len() as u64), "{ledger}");
    assert_eq!(figure("cached"), read, "as the log has it");
    assert!(figure("runs") >= 2 && ledger["today"].as_u64().unwrap() < figure("prompt"), "{ledger}");
    assert!((row["cost_usd"].as_f64().unwrap() - cost(&forks)).abs() < 1e-9, "{ledger}");
    assert!(row["wrote"][0].as_str().unwrap().ends_with("notes/notes.md"), "{ledger}");
    let told = finish(world.command(&["memory", "ledger", "--runs"]).spawn().unwrap());
    assert_eq!(told.out.lines().filter(|line| line.contains(" notes ")).count(), figure("runs") as usize);
}

#[test]
fn user_templates_replace_the_built_in_ones() {
    let aside = |ask: &ModelPrompt<'_>| {
        let file = path_in(ask, "Update the session notes in ", " in verse.")?;
        let (old, new) = ("_Now._", "_Now._\nAll is well and half is read.");
        Some(calls("", &[("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))]))
    };
    let world = TestWorld::new(ProviderSetup { cards: CARDS.to_owned(), ..rounds(30, aside) });
    let own = world.pal().join("notes");
    std::fs::create_dir_all(&own).unwrap();
    let template = "# Where we are\n_Now._\n\n# What was wanted\n_By the user._\n";
    std::fs::write(own.join("template.md"), template).unwrap();
    let directive = "Update the session notes in {path} in verse.\n{sections}<notes>\n{notes}\n</notes>\n";
    std::fs::write(own.join("directive.md"), directive).unwrap();
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let log = world.log();
    assert_by_notes(&log, &said.err);
    let boundary = log.iter().find(|line| line["kind"] == "boundary").unwrap();
    assert!(boundary["summary"].to_string().contains("All is well and half is read."), "{boundary}");
    let notes = std::fs::read_to_string(world.logs()[0].parent().unwrap().join("notes/notes.md")).unwrap();
    let headings: Vec<&str> = notes.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(headings, ["# Where we are", "# What was wanted"]);
}

#[test]
fn notes_of_a_killed_session_are_continued() {
    let world = TestWorld::new(ProviderSetup { cards: CARDS.to_owned(), ..rounds(30, |_| None) });
    let mut child = by_fork(&world).spawn().unwrap();
    let begun = std::time::Instant::now();
    let state = || Some(world.logs().first()?.parent()?.join("notes/state.json"));
    while !state().is_some_and(|state| state.exists()) {
        assert!(begun.elapsed() < crate::test_world::PATIENCE, "no notes were written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = std::fs::read_to_string(state().unwrap().with_file_name("notes.md")).unwrap();
    assert!(before.contains("mind the tests"), "{before}");
    let mut command = world.command(&[
        "-p",
        "--continue",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        "Go on with the parts.",
    ]);
    let said = finish(command.env("PAL_NOTES", "fork").spawn().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let log = world.log();
    assert_by_notes(&log, &said.err);
    let boundary = log.iter().find(|line| line["kind"] == "boundary").unwrap();
    let summary = boundary["summary"].to_string();
    assert!(summary.contains("mind the tests") && summary.contains("Go on with the parts."), "{summary}");
}

#[test]
fn the_agent_writes_notes_itself_and_nothing_else() {
    let mut at = 0;
    let made = ProviderSetup::answers(move |_, ask| {
        at += 1;
        let words = |word: usize| {
            format!("{at}.{word}: the {} is not the {}. ", word * 7_919 % 1_009, word * at % 97)
        };
        let thought: String = (0..250).map(words).collect();
        let work = ("Read", json!({"file_path": "README.md"}));
        // The last reminder is still followed.
        let Some(file) = path_in(ask, "They are kept in ", ", and after this") else {
            return if at > 30 { says("All parts are read.") } else { calls(&thought, &[work]) };
        };
        let line = "_Step by step, one short line each: what was done._";
        let edit = |file: &str, new: &str| json!({"file_path": file, "old_string": line, "new_string": format!("{line}\n{new}")});
        let state = file.replace("notes.md", "state.json");
        calls(
            &thought,
            &[
                work,
                ("Edit", edit(&file, &format!("- part {at} was read"))),
                ("Edit", edit(&file, &format!("- the tests were minded after part {at}"))),
                ("Write", json!({"file_path": state, "content": "{}"})),
            ],
        )
    });
    let world = TestWorld::new(ProviderSetup { cards: CARDS.to_owned(), ..made });
    // There is no user to ask, and no rule allows more than the defaults.
    let mut command = world.command(&["-p", "--verbose", "Read all parts, and mind the tests."]);
    let said = finish(command.env("PAL_NOTES", "main").spawn().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let log = world.log();
    assert_by_notes(&log, &said.err);
    assert!(asked(&log, "notes").is_empty(), "no request is made for them");
    let folder = world.logs()[0].parent().unwrap().join("notes");
    let notes = std::fs::read_to_string(folder.join("notes.md")).unwrap();
    let reminders = log.iter().filter(|line| line["kind"] == "attachment" && line["what"] == "notes").count();
    // Behind a compaction the file may have to be read before it can be edited again.
    let compactions = log.iter().filter(|line| line["kind"] == "boundary").count();
    let written = notes.matches("was read").count();
    assert!(written >= 2 && (reminders - compactions..=reminders).contains(&written), "{reminders}: {notes}");
    assert_eq!(notes.matches("the tests were minded").count(), written, "{notes}");
    let boundary = log.iter().find(|line| line["kind"] == "boundary").unwrap();
    assert!(boundary["summary"].to_string().contains("the tests were minded after part"), "{boundary}");
    let state = std::fs::read_to_string(folder.join("state.json")).unwrap();
    assert!(state.contains("tokens"), "nothing else of the program's own was touched: {state}");
    let is_refusal =
        |line: &&Value| line["kind"] == "user" && line.to_string().contains("belongs to the program itself");
    let refused = log.iter().filter(is_refusal).count();
    assert_eq!(refused, reminders);
    let heard = world.provider.heard();
    let heads: std::collections::BTreeSet<_> = heard.asked.iter().map(|asked| &asked.head).collect();
    assert_eq!(heads.len(), 1, "neither the tools nor the system prompt changed");
}

#[test]
fn the_note_fork_can_write_only_notes() {
    let mut tried = false;
    let aside = move |_: &ModelPrompt<'_>| {
        (!std::mem::replace(&mut tried, true)).then(|| {
            calls(
                "",
                &[
                    ("Write", json!({"file_path": "stolen.txt", "content": "x"})),
                    ("Bash", json!({"command": "touch ran.txt"})),
                    ("Read", json!({"file_path": "README.md"})),
                    ("Agent", json!({"description": "x", "prompt": "y"})),
                ],
            )
        })
    };
    let world = TestWorld::new(ProviderSetup { cards: CARDS.to_owned(), ..rounds(14, aside) });
    world.file("README.md", "a secret word: xyzzy\n");
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.repository().join("stolen.txt").exists() && !world.repository().join("ran.txt").exists());
    let heard = world.provider.heard();
    let after = heard.asked.iter().find(|asked| asked.text().contains("can be edited here")).unwrap();
    assert!(!after.text().contains("xyzzy"), "{}", after.text());
    drop(heard);
    let log = log_lines(&world.logs()[0]);
    assert!(
        !log.iter().any(|line| line.to_string().contains("Update the session notes")),
        "nothing of it is in the log"
    );
}
