//! `pal rm`: sessions go to the trash and come back; `pal gc` empties it.

use crate::program::{CommandOutput, TestHome};
use crate::stored_session::ImportedSession;

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    said.out
}

fn ids(home: &TestHome) -> Vec<String> {
    let list: serde_json::Value =
        serde_json::from_str(&good(home.run(&["sessions", "--all", "--json"]))).unwrap();
    list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_removed_session_is_gone_until_it_is_restored() {
    let stored = ImportedSession::new(2);
    let home = &stored.home;
    let before = ids(home);
    let [id] = before.as_slice() else { panic!("{before:?}") };
    let out = good(home.run(&["rm", &id[..13]]));
    assert!(out.contains("`pal rm --undo"), "{out}");
    assert_eq!(ids(home), [""; 0]);
    let found = good(home.run_in(&stored.project, &["recall", "question", "--json"]));
    assert_eq!(found.trim(), "[]", "a removed session does not answer");
    let listed = good(home.run(&["rm", "--list"]));
    assert!(listed.contains(&id[..13]) && listed.contains("30 days"), "{listed}");
    good(home.run(&["rm", "--undo"]));
    assert_eq!(ids(home), before);
    assert!(good(home.run(&["rm", "--list"])).contains("The trash is empty."));
    for (arguments, words) in [
        (&["rm", "nope"][..], "no session id starts with `nope`"),
        (&["rm", "--undo"], "the trash is empty"),
        (&["rm", "--undo", "nope"], "no session in the trash"),
        (&["rm", "/etc/hostname"], "not a session that pal stores"),
    ] {
        let said = home.run(arguments);
        assert!(said.code == 1 && said.err.contains(words), "{arguments:?}: {}", said.err);
    }
    assert_eq!(home.run(&["rm"]).code, 2);
}

#[test]
fn retention_moves_and_deletes_only_what_is_old_enough() {
    let stored = ImportedSession::new(2);
    let home = &stored.home;
    let kept = good(home.run(&["gc", "--yes"]));
    assert!(kept.contains("Nothing to remove"), "{kept}");
    let log = home.written().into_iter().find(|file| file.ends_with("log.jsonl")).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(10 * 24 * 3600);
    std::fs::File::options().append(true).open(&log).unwrap().set_modified(old).unwrap();
    let days = |days: &str, name: &'static str| vec![(name, days.to_owned())];
    let gc = |variables: &[(&str, String)], arguments: &[&str]| {
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        good(home.run_with_environment(&[&["gc"], arguments].concat(), &variables))
    };
    assert!(gc(&days("11", "PAL_KEEP_SESSIONS_DAYS"), &["--yes"]).contains("Nothing to remove"));
    let plan = gc(&days("10", "PAL_KEEP_SESSIONS_DAYS"), &[]);
    assert!(plan.contains("1 session without activity for 10 days") && log.exists(), "{plan}");
    let done = gc(&days("10", "PAL_KEEP_SESSIONS_DAYS"), &["--yes"]);
    assert!(done.contains("Moved 1 session to the trash") && !log.exists(), "{done}");
    assert!(gc(&days("1", "PAL_KEEP_TRASH_DAYS"), &["--yes"]).contains("Nothing to remove"));
    let done = gc(&days("0", "PAL_KEEP_TRASH_DAYS"), &["--yes"]);
    assert!(done.contains("Deleted 1 session for good"), "{done}");
    assert!(good(home.run(&["rm", "--list"])).contains("The trash is empty."));
}
