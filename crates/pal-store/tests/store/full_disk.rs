//! Full disks: by a file size limit (everywhere) and for real (where a small disk can be mounted).

use std::process::Command;

use pal_model::IdSource;
use pal_store::{AppendError, Log, LogReader};

use crate::test_log::{TestLog, child, lines, now, role, said};

/// Limits the file to 8 blocks of 512 bytes or 1 KiB, depending on the shell: the write that crosses the
/// limit is cut short, the next one fails.
#[test]
fn file_size_limit_leaves_the_log_unchanged() {
    const NAME: &str = "full_disk::file_size_limit_leaves_the_log_unchanged";
    if let Some(path) = role("limited") {
        return write_into_limit(&path);
    }
    let place = TestLog::new();
    drop(place.create());
    let program = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; ulimit -f 8; exec '{}' \"$@\"", program.display());
    let inner = child(NAME, "limited", &place.path);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]).args(inner.get_args());
    shell.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let opened = place.open();
    assert!(opened.torn.is_none() && opened.branch.problems.is_empty());
    assert!(opened.branch.entries.len() > 10);
    assert!(place.bytes().len() > 3_500);
}

/// Before each entry that fits, tries some that do not, so that the limit cuts them at varying positions.
fn write_into_limit(path: &std::path::Path) {
    let mut log = Log::open(path, IdSource::seeded(3)).unwrap().log;
    let long = "y".repeat(9_000);
    for number in 0.. {
        for drafts in [vec![said(&long)], vec![said("s"), said(&long)], vec![said(&long), said("s")]] {
            let (before, head) = (std::fs::read(path).unwrap(), log.head());
            let error = log.append_all(drafts, now()).unwrap_err();
            assert!(matches!(&error, AppendError::File(error) if error.is_full()), "{error}");
            assert!(error.to_string().ends_with("nothing was lost"), "{error}");
            assert!(std::fs::read(path).unwrap() == before && log.head() == head);
        }
        if log.append(said(&"s".repeat(number)), now()).is_err() {
            break;
        }
    }
}

#[test]
fn log_continues_after_a_full_disk_is_freed() {
    let place = TestLog::new();
    let disk = place.directory.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "none"])
        .arg(&disk)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        println!("skipped: no right to mount a small disk here");
        return;
    }
    let result = std::panic::catch_unwind(|| fill_and_free(&disk));
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    result.unwrap();
}

fn fill_and_free(disk: &std::path::Path) {
    let (path, ballast) = (disk.join("log.jsonl"), disk.join("ballast"));
    std::fs::write(&ballast, vec![0; 200 << 10]).unwrap();
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let mut written = Vec::new();
    let error = loop {
        match log.append(said(&"z".repeat(3_001)), now()) {
            Ok(entry) => written.push(entry),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    assert!(text.contains("free space on the disk that holds") && text.contains("log.jsonl"), "{text}");
    log.append(said(&"z".repeat(9_000)), now()).unwrap_err();
    assert_eq!(lines(&LogReader::open(&path).unwrap().whole_branch().unwrap().entries), lines(&written));
    std::fs::remove_file(&ballast).unwrap();
    written.push(log.append(said(&"z".repeat(9_000)), now()).unwrap());
    log.sync().unwrap();
    drop(log);

    // A torn tail that cannot be moved stays in place.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(&vec![b'{'; 60 << 10]);
    std::fs::write(&path, &bytes).unwrap();
    let free = 512 * 1024 - bytes.len().next_multiple_of(4096);
    std::fs::write(&ballast, vec![0; free - (8 << 10)]).unwrap();
    let error = Log::open(&path, IdSource::seeded(2)).err().unwrap().to_string();
    assert!(error.contains("free space") && error.contains("log.jsonl.torn"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    std::fs::remove_file(&ballast).unwrap();
    let opened = Log::open(&path, IdSource::seeded(2)).unwrap();
    assert_eq!(opened.torn.unwrap().bytes, 60 << 10);
    assert_eq!(lines(&opened.branch.entries), lines(&written));
}
