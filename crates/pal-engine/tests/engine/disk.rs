//! **No decision refers to a file that is not there.** A text goes to disk before it is decided that the model sees less
//! of it; so a full disk leaves it whole, and a kill in between leaves an unused file.

use pal_model::{DecisionKind, EntryBody};

use crate::played_session::{PlayedSession, card, prose};

/// The files that decisions refer to.
fn spilled_to(played: &PlayedSession) -> Vec<String> {
    let paths = played.entries().into_iter().filter_map(|entry| match entry.body {
        EntryBody::Decision(decision) => match decision.kind {
            DecisionKind::Spill { path, .. } => Some(path),
            _ => None,
        },
        _ => None,
    });
    paths.collect()
}

fn began(log_bytes: usize) -> PlayedSession {
    let mut played = PlayedSession::new(card(200_000));
    played.say("Run it.");
    played.turn().unwrap();
    played.tool("log", "Bash", &prose(log_bytes));
    played
}

#[test]
fn result_that_cannot_be_spilled_stays_whole() {
    let mut played = began(90_000);
    let folder = played.log.parent().unwrap().join("tool-results");
    std::fs::write(&folder, "a file where the folder should be").unwrap();
    played.turn().unwrap();
    assert!(played.host.was_told("tool-results/log.txt cannot be written"), "{:?}", played.host.notices);
    assert!(spilled_to(&played).is_empty());
    let last_line = prose(90_000).lines().last().unwrap().to_owned();
    assert!(played.host.sent.last().unwrap().contains(&last_line), "the result is whole");
    // Once sent it stays as it is, though the disk has room again.
    std::fs::remove_file(&folder).unwrap();
    played.restart();
    let before = played.body();
    played.say("Go on.");
    played.turn().unwrap();
    assert!(spilled_to(&played).is_empty() && played.host.sent.last().unwrap().contains(&last_line));
    let messages =
        |body: &str| body.split("\"messages\":").nth(1).unwrap().chars().take(50_000).collect::<String>();
    assert_eq!(messages(&played.body()), messages(&before));
}

#[test]
fn a_paste_that_the_disk_does_not_take_stays_whole() {
    let mut played = PlayedSession::new(card(200_000));
    std::fs::write(played.log.parent().unwrap().join("tool-results"), "in the way").unwrap();
    let paste = prose(230_000);
    played.say(&paste);
    played.turn().unwrap();
    assert!(played.host.was_told("the text stays whole"), "{:?}", played.host.notices);
    assert!(spilled_to(&played).is_empty());
    assert!(played.host.sent.last().unwrap().contains(paste.lines().last().unwrap()));
}

#[test]
fn a_kill_between_the_file_and_the_decision_leaves_a_session_that_goes_on() {
    let mut played = began(90_000);
    // The file was written, and then the process was killed: the log knows nothing of it.
    let folder = played.log.parent().unwrap().join("tool-results");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("log.txt"), "half of").unwrap();
    std::fs::write(folder.join("log.part"), "what was being written").unwrap();
    played.restart();
    assert!(spilled_to(&played).is_empty());
    played.turn().unwrap();
    assert_eq!(spilled_to(&played), ["tool-results/log.txt"]);
    assert_eq!(std::fs::read_to_string(folder.join("log.txt")).unwrap(), prose(90_000), "it is whole now");
    assert!(!folder.join("log.part").exists());
    let body = played.body();
    played.restart();
    assert_eq!(played.body(), body);
}

#[test]
fn a_kill_while_a_boundary_is_written_leaves_the_view_before_it() {
    use crate::played_session::by_hand;
    use pal_context::{CompactionRange, SummaryMethod};
    let mut played = began(9_000);
    for number in 0..8 {
        played.turn().unwrap();
        played.say(&format!("Question {number}"));
        played.tool(&format!("t{number}"), "Edit", &prose(9_000));
    }
    played.turn().unwrap();
    played.say("And now?");
    let before = played.body();
    let length = std::fs::metadata(&played.log).unwrap().len();
    played.compact(by_hand(CompactionRange::Whole, Some(SummaryMethod::Extractive)));
    assert_ne!(played.body(), before);
    let whole = std::fs::read(&played.log).unwrap();
    // Cut inside of the boundary's line.
    let cut = length as usize + (whole.len() - length as usize) / 2;
    let copy = played.log.with_file_name("cut.jsonl");
    std::fs::write(&copy, &whole[..cut]).unwrap();
    let lens = played.view().lens().clone();
    let session = pal_engine::Session::open(&copy, lens, pal_model::IdSource::seeded(9)).unwrap();
    assert_eq!(session.view().render(crate::played_session::OPTIONS).body(), before);
}
