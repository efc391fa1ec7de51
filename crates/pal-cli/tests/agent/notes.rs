//! Notes of a session: written aside by a fork that may touch nothing else, and taken for a summary when the window is full.

use pal_sim::{Ask, Extractive, Model};
use serde_json::{Value, json};

use crate::provider::{Made, calls, says};
use crate::world::{World, finish, log_lines};

/// A window that is full after some twenty rounds; nothing is cleared before that.
const CARDS: &str =
    "[models.claude-opus-5-5]\nlike = \"claude-opus-5-5\"\nwindow = 110_000\nmax_output = 16_000\n";

/// Whether a request is of the fork that writes notes.
fn is_fork(ask: &Ask<'_>) -> bool {
    ask.messages
        .iter()
        .rev()
        .take(8)
        .any(|message| message.blocks.concat().contains("Update the session notes in"))
}

/// A conversation of so many rounds; notes are written by the simulator, word for word from what it was sent.
fn rounds(most: usize, mut aside: impl FnMut(&Ask<'_>) -> Option<pal_sim::Answer> + Send + 'static) -> Made {
    let mut at = 0;
    Made::answers(move |_, ask| {
        if is_fork(ask) {
            return aside(ask).unwrap_or_else(|| Extractive.answer(ask));
        }
        at += 1;
        // Words are neither cleared nor shortened: only a compaction makes room.
        let words = |word: usize| {
            format!("{at}.{word}: the {} is not the {}. ", word * 7_919 % 1_009, word * at % 97)
        };
        let thought: String = (0..250).map(words).collect();
        match at > most {
            true => says("All parts are read."),
            false => calls(&thought, &[("Bash", json!({"command": "true"}))]),
        }
    })
}

fn run(world: &World) -> crate::world::Said {
    let mut command = world.command(&[
        "-p",
        "--verbose",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        "Read all parts, and mind the tests.",
    ]);
    finish(command.env("PAL_NOTES", "fork").spawn().unwrap())
}

#[test]
fn a_full_window_takes_the_notes_and_asks_no_model() {
    let record = tempfile::tempdir().unwrap();
    let made =
        Made { cards: CARDS.to_owned(), record: Some(record.path().to_owned()), ..rounds(30, |_| None) };
    let world = World::new(made);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let log = world.log();
    let boundaries: Vec<&Value> = log.iter().filter(|line| line["kind"] == "boundary").collect();
    assert!(!boundaries.is_empty(), "the window was full");
    for boundary in &boundaries {
        assert_eq!(boundary["how"], "notes", "{}", said.err);
        assert!(
            boundary["summary"].to_string().contains("mind the tests"),
            "what the user said stands in it"
        );
    }
    let asked = |source: &str| {
        log.iter().filter(|line| line["kind"] == "response" && line["source"] == source).collect::<Vec<_>>()
    };
    assert!(asked("compact").is_empty(), "nobody was asked for a summary");
    let forks = asked("notes");
    assert!((2..=60).contains(&forks.len()), "{} requests of forks", forks.len());
    let tokens = |key: &str| forks.iter().map(|line| line["usage"][key].as_u64().unwrap_or(0)).sum::<u64>();
    let read = tokens("cache_read_input_tokens");
    let all = read + tokens("input_tokens") + tokens("cache_creation_input_tokens");
    let cost = |lines: &[&Value]| lines.iter().map(|line| line["cost"].as_f64().unwrap_or(0.0)).sum::<f64>();
    println!(
        "{} requests of forks read {:.1} % of their input from the cache and cost {:.1} % of the session",
        forks.len(),
        100.0 * read as f64 / all as f64,
        100.0 * cost(&forks) / cost(&asked("main")),
    );
    let folder = world.logs()[0].parent().unwrap().join("notes");
    let notes = std::fs::read_to_string(folder.join("notes.md")).unwrap();
    assert_eq!(notes.lines().filter(|line| line.starts_with("# ")).count(), 10, "{notes}");
    assert!(notes.contains("- ran `true`"), "{notes}");
}

#[test]
fn the_fork_that_writes_notes_reaches_nothing_else() {
    let mut tried = false;
    let aside = move |_: &Ask<'_>| {
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
    let world = World::new(Made { cards: CARDS.to_owned(), ..rounds(14, aside) });
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
