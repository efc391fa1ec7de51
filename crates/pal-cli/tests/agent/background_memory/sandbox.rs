//! Ways out that were tried: nothing but memories is written, nothing that does more than look is run, and every attempt is
//! told of.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{is_dream, memory, turns};
use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// Commands that do more than look, or look where nothing is to be seen.
const COMMANDS: [&str; 62] = [
    "touch ran",
    "mkdir made",
    "echo x > out",
    "echo x >> src/lib.rs",
    "echo x >| out",
    "> README.md",
    ": > README.md",
    "cat README.md | tee out",
    "cat <<END > out\nx\nEND",
    "cat <<END | sh\ntouch ran\nEND",
    "sed -i s/a/b/ README.md",
    "sed -n 'w out' README.md",
    "sed --in-place=.old s/a/b/ README.md",
    "sort -o out README.md",
    "sort --output=out README.md",
    "uniq README.md out",
    "find . -exec touch ran \\;",
    "find . -name '*.md' -execdir rm {} +",
    "find . -delete",
    "find . -fprintf out x",
    "find . -ok rm {} \\;",
    "ls | xargs touch",
    "xargs rm < README.md",
    "ls $(touch ran)",
    "ls `touch ran`",
    "(touch ran)",
    "{ touch ran; }",
    "ls; rm README.md",
    "ls && mv README.md gone",
    "ls || touch ran",
    "ls & touch ran",
    "bash -c 'touch ran'",
    "sh -c \"touch ran\"",
    "eval touch ran",
    "env touch ran",
    "nice touch ran",
    "command touch ran",
    "T=touch; $T ran",
    "tou''ch ran",
    "$'\\x74ouch' ran",
    "ls\ntouch ran",
    "function ls { touch ran; }; ls",
    "diff README.md <(touch ran)",
    "cat README.md > >(sh)",
    "git config alias.x '!touch ran'",
    "git -c alias.x='!touch ran' x",
    "git -c core.pager='touch ran' log",
    "git log --output=out",
    "git checkout .",
    "git commit --allow-empty -m x",
    "awk 'BEGIN { system(\"touch ran\") }'",
    "python3 -c 'open(\"ran\", \"w\")'",
    "rg --pre 'touch ran' x",
    "cp README.md copy",
    "ln -s / everything",
    "dd if=README.md of=out",
    "tar cf out .",
    "curl http://127.0.0.1:1/",
    "cat /etc/passwd",
    "cat /proc/self/environ",
    "cat .env",
    "cd / && cat etc/passwd",
];

/// Files that are no memories, by how they are named from the memory directory and from the project.
fn paths(place: &Path, outside: &Path, sessions: &Path) -> Vec<String> {
    let in_memory = [
        "../escaped.md",
        "../../escaped.md",
        "folder/escaped.md",
        "folder/../../escaped.md",
        "link.md",
        "dangling.md",
        ".consolidate-lock",
        ".versions/journal.jsonl",
        ".versions/escaped.md",
        "MEMORY.md",
        "memory.md",
        "Memory.md",
        "notes.txt",
        "no-end",
        ".hidden.md",
        ".md",
        "%2e%2e/escaped.md",
        "..\\/escaped.md",
        "new/escaped.md",
    ];
    let elsewhere = [
        "escaped.md",
        "./src/../escaped.md",
        "~/escaped.md",
        "/proc/self/cwd/escaped.md",
        "/proc/self/root/tmp/escaped.md",
        "/dev/shm/escaped.md",
        "file:///tmp/escaped.md",
        "",
        "/",
    ];
    let mut paths: Vec<String> = in_memory.iter().map(|name| format!("{}/{name}", place.display())).collect();
    paths.extend(elsewhere.iter().map(|path| (*path).to_owned()));
    paths.push(outside.join("target.md").display().to_string());
    paths.push(sessions.join("log.jsonl").display().to_string());
    paths
}

/// Everything below a folder: what files hold, where links lead.
fn everything(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            into.insert(
                path.clone(),
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            );
        } else if kind.is_dir() {
            everything(&path, into);
        } else {
            into.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
        }
    }
}

#[test]
fn background_agents_only_read_and_write_memories() {
    let tried: Arc<Mutex<Vec<(&'static str, Value)>>> = Arc::default();
    let attempts = Arc::clone(&tried);
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        assert!(is_dream(ask));
        match turns(ask) {
            // Maximum calls of one answer.
            at @ 0..4 => calls("", attempts.lock().unwrap().chunks(40).nth(at).unwrap_or_default()),
            _ => says("I could not."),
        }
    }));
    let (place, outside) = (world.memory(), world.repository().parent().unwrap().join("outside"));
    let session = place.parent().unwrap().join("sessions").join("one");
    for folder in [&outside, &session] {
        std::fs::create_dir_all(folder).unwrap();
    }
    world.remember("kept", "This stays.");
    world.file(".env", "KEY=xyzzy-of-the-env\n");
    std::fs::write(session.join("log.jsonl"), "xyzzy-of-the-session\n").unwrap();
    std::fs::write(outside.join("target.md"), "xyzzy-of-outside\n").unwrap();
    symlink(outside.join("target.md"), place.join("link.md")).unwrap();
    symlink(outside.join("new.md"), place.join("dangling.md")).unwrap();
    symlink(&outside, place.join("folder")).unwrap();
    symlink(outside.join("target.md"), world.repository().join("way-out.md")).unwrap();

    let content = memory("escaped", "project", "escaped");
    let named = paths(&place, &outside, &session);
    let mut refused: Vec<(&'static str, Value)> = Vec::new();
    for path in &named {
        refused.push(("Write", json!({"file_path": path, "content": content})));
        refused.push(("Edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})));
    }
    refused.extend(COMMANDS.iter().map(|command| ("Bash", json!({"command": command}))));
    for path in [
        outside.join("target.md"),
        session.join("log.jsonl"),
        place.join("link.md"),
        PathBuf::from(".env"),
        PathBuf::from("way-out.md"),
    ] {
        refused.push(("Read", json!({"file_path": path})));
    }
    refused.push(("Grep", json!({"pattern": "xyzzy", "path": session.parent().unwrap()})));
    refused.push(("Glob", json!({"pattern": "*", "path": outside})));
    refused.push(("Agent", json!({"description": "x", "prompt": "y"})));
    refused.push(("WebFetch", json!({"url": "http://127.0.0.1:1/", "prompt": "y"})));
    refused.push(("mcp__files__write", json!({"path": "x"})));
    tried.lock().unwrap().clone_from(&refused);

    let mut before = BTreeMap::new();
    [&world.repository(), &outside, &place].into_iter().for_each(|folder| everything(folder, &mut before));
    let mut command = world.dreaming(&["--now", "--json"]);
    let log = world.pal().join("told.log");
    let said = finish(command.env("PAL_LOG", "warn").env("PAL_LOG_FILE", &log).spawn().unwrap());
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let run = serde_json::from_str::<Value>(&said.out).unwrap()["run"].take();
    let turns = run["turns"].as_array().unwrap().iter();
    let told: Vec<&str> =
        turns.flat_map(|turn| turn["calls"].as_array().unwrap()).filter_map(Value::as_str).collect();
    assert_eq!(told.len(), refused.len(), "all of them were tried");
    let carried_out: Vec<&&str> = told.iter().filter(|call| !call.ends_with("(not carried out)")).collect();
    assert!(carried_out.is_empty(), "{carried_out:#?}");
    let n_refused = run["refused"].as_array().unwrap().len();
    assert_eq!(n_refused, refused.len(), "every attempt is told of: {:#?}", run["refused"]);
    assert!(n_refused >= 120, "{n_refused}");
    let logged = std::fs::read_to_string(&log).unwrap_or_default() + &said.err;
    assert_eq!(logged.matches("out of reach for a dream").count(), n_refused, "{logged}");
    let mut after = BTreeMap::new();
    [&world.repository(), &outside, &place].into_iter().for_each(|folder| everything(folder, &mut after));
    // When it was, and when sessions were counted.
    let is_lock = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".consolidate-"))
    };
    let changed: Vec<&PathBuf> = after
        .keys()
        .chain(before.keys())
        .filter(|path| before.get(*path) != after.get(*path) && !is_lock(path))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    let heard = world.provider.heard();
    assert!(!heard.asked.last().unwrap().text().contains("xyzzy-of"), "nothing of it was seen");
    println!("{n_refused} attempts were refused");
}

#[test]
fn allowed_commands_change_nothing_outside() {
    let place: Arc<Mutex<PathBuf>> = Arc::default();
    let there = Arc::clone(&place);
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        let there = there.lock().unwrap().clone();
        let content = memory("hard", "project", "rewritten");
        let write = |name: &str| ("Write", json!({"file_path": there.join(name), "content": content}));
        match turns(ask) {
            0 => calls(
                "",
                &[
                    write("hard.md"),
                    // Names that only look like others, or that no memory can have.
                    write("\u{ff2d}\u{ff25}\u{ff2d}\u{ff2f}\u{ff32}\u{ff39}.md"),
                    write("..\u{2215}escaped.md"),
                    write("-rf.md"),
                    write("zero\u{0}.md"),
                    ("Bash", json!({"command": "ls", "run_in_background": true})),
                ],
            ),
            _ => says("Done."),
        }
    }));
    place.lock().unwrap().push(world.memory());
    world.remember("kept", "This stays.");
    let outside = world.repository().join("outside.md");
    std::fs::write(&outside, memory("hard", "project", "outside")).unwrap();
    std::fs::hard_link(&outside, world.memory().join("hard.md")).unwrap();
    let said = world.dream(&["--now"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(
        std::fs::read_to_string(&outside).unwrap().ends_with("outside\n"),
        "the other name of the file is safe"
    );
    let names: Vec<String> = world.memories().into_keys().collect();
    assert_eq!(names, ["MEMORY.md", "hard.md", "kept.md"]);
    assert!(world.memories()["hard.md"].ends_with("rewritten\n"));
}
