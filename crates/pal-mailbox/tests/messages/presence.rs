//! Presence files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use pal_mailbox::{Presence, ProcessIdentity, list_presences};

use super::{name, now};

fn presence(agent: &str, process: ProcessIdentity) -> Presence {
    let session = name("01890000-0000-7000-8000-000000000001");
    Presence { name: name(agent), session, process, socket: None, started: now(), doing: "starting".into() }
}

#[test]
fn running_agent_is_listed_with_its_activity() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("agents");
    assert!(list_presences(&place).unwrap().is_empty());
    assert!(!place.exists(), "looking makes nothing");
    let mut lead = presence("lead", ProcessIdentity::current()).announce(&place).unwrap();
    let scout = presence("scout", ProcessIdentity::current()).announce(&place).unwrap();
    lead.update("reading the parser").unwrap();
    let listed = list_presences(&place).unwrap();
    assert_eq!(listed, [lead.presence().clone(), scout.presence().clone()]);
    assert_eq!(listed[0].doing, "reading the parser");
    let file = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    drop(lead);
    assert_eq!(list_presences(&place).unwrap().len(), 1);
    drop(scout);
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

#[test]
fn stale_presence_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("agents");
    let _alive = presence("alive", ProcessIdentity::current()).announce(&place).unwrap();
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    let process = ProcessIdentity::of(child.id()).unwrap();
    let mut killed = presence("killed", process.clone());
    killed.socket = Some(place.join("killed.sock"));
    std::mem::forget(killed.announce(&place).unwrap());
    drop(UnixListener::bind(place.join("killed.sock")).unwrap());
    let part = place.join(format!(".s.part.{}.json.new", child.id()));
    fs::write(&part, "{").unwrap();
    fs::write(place.join("notes.txt"), "of somebody else").unwrap();
    assert_eq!(list_presences(&place).unwrap().len(), 2, "both run");
    assert!(part.exists(), "it may just be being written");
    child.kill().unwrap();
    while process.is_alive() {
        std::thread::yield_now();
    }
    let names =
        |listed: Vec<Presence>| -> Vec<String> { listed.iter().map(|each| each.name.to_string()).collect() };
    assert_eq!(names(list_presences(&place).unwrap()), ["alive"], "not even before somebody waited for it");
    child.wait().unwrap();
    let other = ProcessIdentity { began: String::from("1@another"), ..ProcessIdentity::current() };
    std::mem::forget(presence("reborn", other).announce(&place).unwrap());
    assert_eq!(names(list_presences(&place).unwrap()), ["alive"], "its number was given to another process");
    let mut left: Vec<String> = fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[1], "notes.txt");
}
