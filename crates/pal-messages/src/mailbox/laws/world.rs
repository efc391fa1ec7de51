//! A disk that stops at any step, those who post to it and the one who reads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use pal_model::{EntryId, Timestamp};

use super::super::disk::Disk;
use super::super::poster::Poster;
use super::super::taker::Taker;
use super::super::{Limits, PostError, Posted};
use crate::message::{Draft, Message, MessageId};

/// What all processes share.
#[derive(Default)]
pub(super) struct Files {
    pub(super) spool: RefCell<Option<Vec<u8>>>,
    cursor: RefCell<Option<Vec<u8>>>,
    is_locked: Cell<bool>,
    stamps: Cell<u64>,
}

/// What somebody else does at a step.
pub(super) type Meanwhile = Rc<RefCell<dyn FnMut()>>;

/// One process's view of the files, and when it is killed.
#[derive(Clone, Default)]
pub(super) struct Simulated {
    files: Rc<Files>,
    /// How many steps are left; none for a process that lives on.
    pub(super) life: Rc<Cell<Option<u32>>>,
    /// At which part of an append a kill in its middle comes, of 256.
    pub(super) cut: Rc<Cell<u8>>,
    pub(super) meanwhile: Option<Meanwhile>,
}

pub(super) struct Held(Rc<Files>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

impl Simulated {
    fn step(&self) -> io::Result<()> {
        if let Some(meanwhile) = &self.meanwhile
            && let Ok(mut meanwhile) = meanwhile.try_borrow_mut()
        {
            meanwhile();
        }
        match self.life.get() {
            Some(0) => Err(io::Error::other("killed")),
            Some(steps) => {
                self.life.set(Some(steps - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn replace(&self, file: &RefCell<Option<Vec<u8>>>, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        file.replace(Some(bytes.to_vec()));
        self.step()
    }
}

impl Disk for Simulated {
    type Lock = Held;

    fn lock(&mut self, _limit: Duration) -> io::Result<Option<Held>> {
        self.step()?;
        Ok((!self.files.is_locked.replace(true)).then(|| Held(Rc::clone(&self.files))))
    }

    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        self.step()?;
        let spool = self.files.spool.borrow();
        let rest = spool.as_ref().map(|spool| spool.get(from as usize..).unwrap_or_default());
        Ok(rest.map(|rest| rest.iter().copied().take(bytes_max as usize).collect()))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.files.is_locked.get(), "appends are made under the lock");
        let append = |part: &[u8]| {
            self.files.spool.borrow_mut().as_mut().expect("there is a spool").extend_from_slice(part)
        };
        let (first, rest) = bytes.split_at(bytes.len() * usize::from(self.cut.get()) / 256);
        self.step()?;
        append(first);
        self.step()?;
        append(rest);
        self.step()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step()
    }

    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.files.is_locked.get(), "a spool is replaced under the lock");
        self.replace(&self.files.spool, bytes)
    }

    fn cursor(&self) -> io::Result<Option<Vec<u8>>> {
        self.step()?;
        Ok(self.files.cursor.borrow().clone())
    }

    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.replace(&self.files.cursor, bytes)
    }

    fn stamp(&mut self) -> u64 {
        self.files.stamps.set(self.files.stamps.get() + 1);
        self.files.stamps.get()
    }

    fn path(&self) -> &Path {
        Path::new("mailbox")
    }
}

/// One who posts numbered messages, and after a kill posts the same again.
pub(super) struct Sender {
    pub(super) disk: Simulated,
    pub(super) poster: Option<Poster<Simulated>>,
    name: String,
    next: u64,
    pub(super) pending: Option<Message>,
    pub(super) acknowledged: Vec<Message>,
    pub(super) refused: usize,
}

/// The one who reads, and what it keeps: that lasts, as its log would.
pub(super) struct Reader {
    pub(super) disk: Simulated,
    pub(super) taker: Option<Taker<Simulated>>,
    pub(super) kept: Vec<Message>,
}

/// Ids grow over all senders, as times do.
#[derive(Default)]
pub(super) struct Ids(Cell<u128>);

impl Ids {
    fn next(&self) -> MessageId {
        self.0.set(self.0.get() + 1);
        EntryId::from_bits(self.0.get()).into()
    }
}

impl Sender {
    fn new(files: &Rc<Files>, name: &str) -> Sender {
        let disk = Simulated { files: Rc::clone(files), ..Simulated::default() };
        let (poster, pending, acknowledged) = (None, None, Vec::new());
        Sender { disk, poster, name: name.into(), next: 0, pending, acknowledged, refused: 0 }
    }

    /// Posts the next message, or the one that a kill left in doubt.
    pub(super) fn post(&mut self, ids: &Ids, limits: Limits) {
        let message = self.pending.take().unwrap_or_else(|| {
            self.next += 1;
            let (from, to) = (self.name.parse().unwrap(), "reader".parse::<crate::Name>().unwrap());
            let draft = Draft::text(from, to, "", &self.next.to_string());
            draft.seal(ids.next(), Timestamp::default()).unwrap()
        });
        let poster = self.poster.get_or_insert_with(|| Poster::new(self.disk.clone(), limits));
        match poster.post(&message, Duration::ZERO) {
            Ok(_) => self.acknowledged.push(message),
            Err(PostError::Forgotten { .. }) => self.refused += 1,
            Err(PostError::Busy { .. } | PostError::Full { .. }) => self.pending = Some(message),
            Err(PostError::Folder(_)) => {
                (self.pending, self.poster) = (Some(message), None);
                self.disk.life.set(None);
            }
        }
    }

    /// Posts once more what was acknowledged long ago.
    pub(super) fn repeat(&mut self, which: usize, limits: Limits) {
        let Some(message) = self.acknowledged.get(which % self.acknowledged.len().max(1)) else { return };
        let poster = self.poster.get_or_insert_with(|| Poster::new(self.disk.clone(), limits));
        let again = poster.post(message, Duration::ZERO);
        assert!(
            !matches!(again, Ok(Posted::Now) | Err(PostError::Folder(_))),
            "{} was posted twice: {again:?}",
            message.id
        );
    }
}

impl Reader {
    fn new(files: &Rc<Files>) -> Reader {
        let disk = Simulated { files: Rc::clone(files), ..Simulated::default() };
        Reader { disk, taker: None, kept: Vec::new() }
    }

    /// Takes, keeps and confirms; a kill ends it anywhere, also between two that it keeps.
    pub(super) fn read(&mut self, limits: Limits, confirms: bool) {
        if self.try_read(limits, confirms).is_err() {
            self.taker = None;
            self.disk.life.set(None);
        }
    }

    fn try_read(&mut self, limits: Limits, confirms: bool) -> Result<(), Box<dyn std::error::Error>> {
        let taker = match &mut self.taker {
            Some(taker) => taker,
            None => self.taker.insert(Taker::new(self.disk.clone(), limits)?),
        };
        for delivery in taker.take()? {
            self.disk.step()?;
            let is_kept = self.kept.iter().any(|kept| kept.id == delivery.message.id);
            assert!(delivery.perhaps_seen || !is_kept, "{} came twice, unmarked", delivery.message.id);
            if !is_kept {
                self.kept.push(delivery.message);
            }
        }
        if confirms {
            taker.confirm()?;
        }
        Ok(())
    }
}

/// Everybody, on one disk.
pub(super) struct World {
    pub(super) files: Rc<Files>,
    pub(super) ids: Rc<Ids>,
    pub(super) limits: Limits,
    pub(super) senders: Vec<Rc<RefCell<Sender>>>,
    pub(super) reader: Rc<RefCell<Reader>>,
}

impl World {
    pub(super) fn new(senders: usize, limits: Limits) -> World {
        let files = Rc::new(Files::default());
        let sender = |number: usize| Rc::new(RefCell::new(Sender::new(&files, &format!("sender-{number}"))));
        let senders = (0..senders).map(sender).collect();
        let reader = Rc::new(RefCell::new(Reader::new(&files)));
        World { files, ids: Rc::default(), limits, senders, reader }
    }

    /// Lets everybody finish, and looks at what was kept.
    pub(super) fn check(&self) {
        for _ in 0..2 {
            self.reader.borrow_mut().read(self.limits, true);
            for sender in &self.senders {
                let mut sender = sender.borrow_mut();
                // Once may find the mailbox full; the reader makes room.
                for _ in 0..3 {
                    if sender.pending.is_some() {
                        sender.post(&self.ids, self.limits);
                    }
                    self.reader.borrow_mut().read(self.limits, true);
                }
                assert!(sender.pending.is_none(), "{} never gets through", sender.name);
            }
        }
        let reader = self.reader.borrow();
        let mut kept: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for message in &reader.kept {
            kept.entry(message.from.as_str()).or_default().push(message.text.parse().unwrap());
        }
        for sender in &self.senders {
            let sender = sender.borrow();
            let mut kept: VecDeque<u64> = kept.remove(sender.name.as_str()).unwrap_or_default().into();
            for message in &sender.acknowledged {
                let number = message.text.parse().unwrap();
                // One that was refused as forgotten may be among them: it was posted before a kill.
                while sender.refused > 0 && kept.front().is_some_and(|first| *first < number) {
                    kept.pop_front();
                }
                assert_eq!(kept.pop_front(), Some(number), "of {}, once and in order", sender.name);
            }
            assert!(kept.len() <= sender.refused, "{} never posted {kept:?}", sender.name);
        }
        let spool = self.files.spool.borrow();
        let length = spool.as_ref().map_or(0, Vec::len) as u64;
        assert!(length <= self.limits.spool_bytes_max, "the spool stays bounded");
    }
}
