//! Lock of a dream (§7.6): its content names the holder, its modification time is that of the last dream.
//!
//! It is taken by writing, reading back and comparing under a file lock. It is released by emptying the
//! content; a failed run also restores the time. After a kill, the next run finds a dead holder in the content,
//! with the time of the last dream and the runs to undo.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use pal_mailbox::ProcessIdentity;
use pal_model::Timestamp;
use pal_store::{LockedFile, OwnDirectoryError, open_own_directory, open_regular_file};
use rustix::fs::{CWD, OFlags};

/// Lock file in a memory directory.
const FILE: &str = ".consolidate-lock";

/// Holding time after which the user is warned.
const LONG: Duration = Duration::from_secs(3_600);

/// Maximum wait for the file lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum bytes of the content.
const BODY_BYTES_MAX: u64 = 64 << 10;

/// Checks whether a process is alive; tests replace it.
pub(super) type ProcessCheck<'a> = &'a dyn Fn(&ProcessIdentity) -> bool;

/// The held lock.
pub(crate) struct DreamLock {
    memory: PathBuf,
    body: LockFile,
    /// Time of taking; it becomes the time of the last dream on success.
    taken: Timestamp,
}

/// Another holder of the lock.
#[derive(Clone, Debug)]
pub(crate) struct LockHolder {
    by: ProcessIdentity,
    since: Option<Timestamp>,
}

impl LockHolder {
    /// Describes the holder.
    pub(crate) fn told(&self, now: Timestamp) -> String {
        let passed =
            self.since.and_then(|since| u64::try_from(now.milliseconds() - since.milliseconds()).ok());
        let lasted = passed.map(Duration::from_millis);
        let minutes = lasted.map_or(String::new(), |lasted| format!(" for {} min", lasted.as_secs() / 60));
        let long = match lasted {
            Some(lasted) if lasted > LONG => ", which is long: look whether it hangs, and end it if it does",
            _ => "",
        };
        format!("process {} puts memories in order{minutes}{long}", self.by.pid)
    }
}

/// Content of the file.
#[derive(Clone, PartialEq, Debug)]
struct LockFile {
    holder: ProcessIdentity,
    /// Time of the previous dream; none if there was none.
    before: Option<Timestamp>,
    /// This run, followed by runs of dead holders that are not undone yet.
    runs: Vec<String>,
}

impl LockFile {
    fn text(&self) -> String {
        let before = self.before.map_or(0, Timestamp::milliseconds);
        format!("{} {}\nbefore {before}\nruns {}\n", self.holder.pid, self.holder.began, self.runs.join(" "))
    }

    /// Parses the content; none without a holder.
    fn read(text: &str) -> Option<LockFile> {
        let mut lines = text.lines();
        let (pid, began) = lines.next()?.split_once(' ')?;
        let before: i64 = lines.next()?.strip_prefix("before ")?.parse().ok()?;
        let runs = lines.next()?.strip_prefix("runs ")?.split_whitespace().map(str::to_owned).collect();
        Some(LockFile {
            holder: ProcessIdentity { pid: pid.parse().ok()?, began: began.to_owned() },
            before: (before != 0).then(|| Timestamp::from_milliseconds(before)),
            runs,
        })
    }
}

/// Takes the lock unless a live process holds it. Also returns the runs of dead holders, to be undone.
pub(crate) fn acquire(
    memory: &Path,
    me: &ProcessIdentity,
    run: &str,
    is_alive: ProcessCheck<'_>,
    now: Timestamp,
) -> io::Result<Result<(DreamLock, Vec<String>), LockHolder>> {
    let file = locked(memory)?;
    let found = read(&file)?;
    let last = time_of(&file)?;
    let (before, abandoned) = match found {
        Some(body) if is_alive(&body.holder) => return Ok(Err(LockHolder { by: body.holder, since: last })),
        Some(body) => (body.before, body.runs),
        None => (last, Vec::new()),
    };
    let runs = std::iter::once(run.to_owned()).chain(abandoned.iter().cloned()).collect();
    let body = LockFile { holder: me.clone(), before, runs };
    write(&file, &body.text(), Some(now))?;
    // The content read back decides.
    match read(&file)? {
        Some(there) if there == body => {
            Ok(Ok((DreamLock { memory: memory.to_owned(), body, taken: now }, abandoned)))
        }
        Some(there) => Ok(Err(LockHolder { by: there.holder, since: time_of(&file)? })),
        None => Err(io::Error::other("the lock does not hold what was written to it")),
    }
}

impl DreamLock {
    /// Releases the lock after success; its time is that of this dream.
    pub(crate) fn succeed(self) -> io::Result<()> {
        self.give_back(Some(self.taken))
    }

    /// Releases the lock after a failure and restores its time.
    pub(crate) fn fail(self) -> io::Result<()> {
        self.give_back(self.body.before)
    }

    fn give_back(&self, time: Option<Timestamp>) -> io::Result<()> {
        let file = locked(&self.memory)?;
        match read(&file)? {
            Some(body) if body == self.body => write(&file, "", time),
            // Another process took over the lock.
            _ => Ok(()),
        }
    }
}

/// Time of the last dream; none if never.
pub(super) fn last(memory: &Path, is_alive: ProcessCheck<'_>) -> Option<Timestamp> {
    let file = opened(memory, OFlags::RDONLY).ok()?;
    match read(&file).ok()? {
        Some(body) if !is_alive(&body.holder) => body.before,
        _ => time_of(&file).ok()?,
    }
}

/// Returns true if the process that holds the lock is dead.
pub(super) fn is_abandoned(memory: &Path, is_alive: ProcessCheck<'_>) -> bool {
    let body = opened(memory, OFlags::RDONLY).and_then(|file| read(&file));
    body.is_ok_and(|body| body.is_some_and(|body| !is_alive(&body.holder)))
}

/// Current live holder, if any.
pub(crate) fn holder(memory: &Path, is_alive: ProcessCheck<'_>) -> Option<LockHolder> {
    let file = opened(memory, OFlags::RDONLY).ok()?;
    let body = read(&file).ok()??;
    let since = time_of(&file).ok()?;
    is_alive(&body.holder).then_some(LockHolder { by: body.holder, since })
}

fn opened(memory: &Path, flags: OFlags) -> io::Result<File> {
    let directory = open_own_directory(CWD, memory).map_err(|error| match error {
        OwnDirectoryError::NotOwned(what) => io::Error::other(what),
        OwnDirectoryError::Io(error) => error,
    })?;
    let directory = directory.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    open_regular_file(&directory, FILE, flags)
}

/// Opens the file under its file lock.
fn locked(memory: &Path) -> io::Result<LockedFile> {
    let file = match opened(memory, OFlags::RDWR) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(memory)?;
            opened(memory, OFlags::RDWR)?
        }
        file => file?,
    };
    let locked = LockedFile::lock_until(file, Instant::now() + PATIENCE)?;
    locked.ok_or_else(|| io::Error::other("another process looks at the lock and does not end"))
}

/// Creates the file with the time that means never.
fn make(memory: &Path) -> io::Result<()> {
    let name = format!("{FILE}-{}-{:?}", std::process::id(), std::thread::current().id());
    let part = memory.join(name.replace(['(', ')'], ""));
    pal_store::replace_private_file(&part, b"")?;
    File::options().write(true).open(&part)?.set_modified(SystemTime::UNIX_EPOCH)?;
    let made = std::fs::hard_link(&part, memory.join(FILE));
    std::fs::remove_file(&part)?;
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn read(mut file: &File) -> io::Result<Option<LockFile>> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    let read = file.take(BODY_BYTES_MAX).read_to_string(&mut text);
    // Invalid text was not written by this program.
    Ok(read.ok().and_then(|_| LockFile::read(&text)))
}

fn write(mut file: &File, text: &str, time: Option<Timestamp>) -> io::Result<()> {
    // After a kill, complete lines remain; the rest is ignored.
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.set_modified(time.map_or(SystemTime::UNIX_EPOCH, system_time))?;
    file.sync_all()
}

/// Modification time; none for the epoch, which means never.
fn time_of(file: &File) -> io::Result<Option<Timestamp>> {
    let metadata = file.metadata()?;
    let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Ok((time != 0).then(|| Timestamp::from_milliseconds(time)))
}

/// Converts a timestamp to a file time.
pub(super) fn system_time(time: Timestamp) -> SystemTime {
    let since = u64::try_from(time.milliseconds()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000).after(Duration::from_secs(seconds))
    }

    fn process(pid: u32, began: &str) -> ProcessIdentity {
        ProcessIdentity { pid, began: began.to_owned() }
    }

    fn memory() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn body(folder: &tempfile::TempDir) -> String {
        std::fs::read_to_string(folder.path().join(FILE)).unwrap()
    }

    #[test]
    fn success_empties_the_body_and_keeps_the_time_and_failure_puts_it_back() {
        let (folder, me) = (memory(), process(7, "100@boot"));
        assert_eq!(last(folder.path(), &|_| true), None);
        let (held, abandoned) = acquire(folder.path(), &me, "one", &|_| true, at(10)).unwrap().unwrap();
        assert!(abandoned.is_empty() && body(&folder).starts_with("7 100@boot\n"), "{}", body(&folder));
        held.fail().unwrap();
        assert_eq!(
            (body(&folder).as_str(), last(folder.path(), &|_| true)),
            ("", None),
            "never before, never now"
        );
        let (held, _) = acquire(folder.path(), &me, "two", &|_| true, at(20)).unwrap().unwrap();
        held.succeed().unwrap();
        assert_eq!((body(&folder).as_str(), last(folder.path(), &|_| true)), ("", Some(at(20))));
        let (held, _) = acquire(folder.path(), &me, "three", &|_| true, at(90)).unwrap().unwrap();
        held.fail().unwrap();
        assert_eq!(last(folder.path(), &|_| true), Some(at(20)));
    }

    #[test]
    fn a_lock_is_taken_over_from_dead_holders_only() {
        let (folder, me) = (memory(), process(7, "100@boot"));
        let (done, _) = acquire(folder.path(), &me, "zero", &|_| true, at(5)).unwrap().unwrap();
        done.succeed().unwrap();
        drop(acquire(folder.path(), &me, "one", &|_| true, at(10)).unwrap().unwrap());
        let other = process(8, "200@boot");
        let refused = acquire(folder.path(), &other, "two", &|_| true, at(20)).unwrap();
        let told = refused.err().unwrap().told(at(20));
        assert!(told.contains("process 7") && !told.contains("long"), "{told}");
        let told = holder(folder.path(), &|_| true).unwrap().told(at(10 + 3_601));
        assert!(told.contains("for 60 min") && told.contains("which is long"), "{told}");
        // The pid now belongs to another process.
        let now_running = [process(7, "999@boot"), other.clone()];
        let is_alive = |process: &ProcessIdentity| now_running.contains(process);
        assert_eq!(last(folder.path(), &is_alive), Some(at(5)), "what was killed does not count");
        let (held, abandoned) = acquire(folder.path(), &other, "two", &is_alive, at(30)).unwrap().unwrap();
        assert_eq!(abandoned, ["one"]);
        // The second process is killed before it undoes anything.
        drop(held);
        let third = process(9, "300@boot");
        let (held, abandoned) = acquire(folder.path(), &third, "three", &|_| false, at(40)).unwrap().unwrap();
        assert_eq!(abandoned, ["two", "one"]);
        held.fail().unwrap();
        assert_eq!(
            last(folder.path(), &|_| false),
            Some(at(5)),
            "the time is what it was before all of them"
        );
    }

    #[test]
    fn a_holder_presumed_dead_cannot_release_the_lock_of_another() {
        let folder = memory();
        let (slow, quick) = (process(7, "100@boot"), process(8, "200@boot"));
        let (lost, _) = acquire(folder.path(), &slow, "one", &|_| true, at(10)).unwrap().unwrap();
        let (held, _) = acquire(folder.path(), &quick, "two", &|_| false, at(20)).unwrap().unwrap();
        lost.succeed().unwrap();
        assert!(body(&folder).starts_with("8 200@boot\n"), "{}", body(&folder));
        held.succeed().unwrap();
        assert_eq!(last(folder.path(), &|_| true), Some(at(20)));
    }

    #[test]
    fn a_lock_file_with_any_content_can_be_acquired() {
        let folder = memory();
        for junk in [&b"junk"[..], b"7\n", b"x y\nbefore z\n", &[0xff, 0xfe], b"7 b\nbefore 5\n"] {
            std::fs::write(folder.path().join(FILE), junk).unwrap();
            let me = process(7, "100@boot");
            let (held, _) = acquire(folder.path(), &me, "one", &|_| true, at(10)).unwrap().unwrap();
            held.succeed().unwrap();
            assert_eq!(last(folder.path(), &|_| true), Some(at(10)));
        }
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(FILE)).unwrap();
        let refused = acquire(folder.path(), &process(7, "1"), "one", &|_| true, at(10));
        assert!(refused.is_err(), "a link is no lock");
    }

    #[test]
    fn one_of_many_contenders_gets_the_lock() {
        let folder = memory();
        for round in 0..20 {
            let barrier = std::sync::Barrier::new(8);
            let taken: Vec<bool> = std::thread::scope(|scope| {
                let take = |number: u32| {
                    let (barrier, path) = (&barrier, folder.path());
                    scope.spawn(move || {
                        let me = process(number, "1@boot");
                        barrier.wait();
                        acquire(path, &me, "run", &|_| true, at(round)).unwrap().is_ok()
                    })
                };
                let threads: Vec<_> = (1..=8).map(take).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(taken.iter().filter(|is_taken| **is_taken).count(), 1, "round {round}");
            std::fs::remove_file(folder.path().join(FILE)).unwrap();
        }
    }
}
