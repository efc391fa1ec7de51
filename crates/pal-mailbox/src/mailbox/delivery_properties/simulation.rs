//! Simulated disk that can stop at any step, with senders and a reader.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use pal_model::{EntryId, Timestamp};

use super::super::mailbox_disk::MailboxDisk;
use super::super::spool_reader::SpoolReader;
use super::super::spool_writer::SpoolWriter;
use super::super::{Limits, PostError, PostOutcome};
use crate::envelope::{Envelope, EnvelopeDraft, MessageId};

/// Files shared by all processes.
#[derive(Default)]
pub(super) struct SimulatedFiles {
    pub(super) spool: RefCell<Option<Vec<u8>>>,
    cursor: RefCell<Option<Vec<u8>>>,
    is_locked: Cell<bool>,
    stamps: Cell<u64>,
}

/// Action of another process at a step.
pub(super) type StepHook = Rc<RefCell<dyn FnMut()>>;

/// One process's view of the files, and its remaining life.
#[derive(Clone, Default)]
pub(super) struct SimulatedDisk {
    files: Rc<SimulatedFiles>,
    /// Remaining steps; none for a process that is not killed.
    pub(super) life: Rc<Cell<Option<u32>>>,
    /// Part of an append, in 256ths, that is written before a kill.
    pub(super) cut: Rc<Cell<u8>>,
    pub(super) meanwhile: Option<StepHook>,
}

pub(super) struct SimulatedLock(Rc<SimulatedFiles>);

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

impl SimulatedDisk {
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

impl MailboxDisk for SimulatedDisk {
    type Lock = SimulatedLock;

    fn lock(&mut self, _limit: Duration) -> io::Result<Option<SimulatedLock>> {
        self.step()?;
        Ok((!self.files.is_locked.replace(true)).then(|| SimulatedLock(Rc::clone(&self.files))))
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

/// A sender of numbered messages that posts again after a kill.
pub(super) struct TestSender {
    pub(super) disk: SimulatedDisk,
    pub(super) poster: Option<SpoolWriter<SimulatedDisk>>,
    name: String,
    next: u64,
    pub(super) pending: Option<Envelope>,
    pub(super) acknowledged: Vec<Envelope>,
    pub(super) refused: usize,
}

/// The reader and the messages that it stored durably.
pub(super) struct TestReader {
    pub(super) disk: SimulatedDisk,
    pub(super) taker: Option<SpoolReader<SimulatedDisk>>,
    pub(super) kept: Vec<Envelope>,
}

/// Message ids that grow over all senders.
#[derive(Default)]
pub(super) struct IdSequence(Cell<u128>);

impl IdSequence {
    fn next(&self) -> MessageId {
        self.0.set(self.0.get() + 1);
        EntryId::from_bits(self.0.get()).into()
    }
}

impl TestSender {
    fn new(files: &Rc<SimulatedFiles>, name: &str) -> TestSender {
        let disk = SimulatedDisk { files: Rc::clone(files), ..SimulatedDisk::default() };
        let (poster, pending, acknowledged) = (None, None, Vec::new());
        TestSender { disk, poster, name: name.into(), next: 0, pending, acknowledged, refused: 0 }
    }

    /// Posts the next message, or the one that a kill left in doubt.
    pub(super) fn post(&mut self, ids: &IdSequence, limits: Limits) {
        let message = self.pending.take().unwrap_or_else(|| {
            self.next += 1;
            let (from, to) = (self.name.parse().unwrap(), "reader".parse::<crate::AgentName>().unwrap());
            let draft = EnvelopeDraft::text(from, to, "", &self.next.to_string());
            draft.seal(ids.next(), Timestamp::default()).unwrap()
        });
        let poster = self.poster.get_or_insert_with(|| SpoolWriter::new(self.disk.clone(), limits));
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

    /// Posts an acknowledged message again.
    pub(super) fn repeat(&mut self, which: usize, limits: Limits) {
        let Some(message) = self.acknowledged.get(which % self.acknowledged.len().max(1)) else { return };
        let poster = self.poster.get_or_insert_with(|| SpoolWriter::new(self.disk.clone(), limits));
        let again = poster.post(message, Duration::ZERO);
        assert!(
            !matches!(again, Ok(PostOutcome::Added) | Err(PostError::Folder(_))),
            "{} was posted twice: {again:?}",
            message.id
        );
    }
}

impl TestReader {
    fn new(files: &Rc<SimulatedFiles>) -> TestReader {
        let disk = SimulatedDisk { files: Rc::clone(files), ..SimulatedDisk::default() };
        TestReader { disk, taker: None, kept: Vec::new() }
    }

    /// Takes, stores and confirms; a kill can end it anywhere, also between two stored messages.
    pub(super) fn read(&mut self, limits: Limits, confirms: bool) {
        if self.try_read(limits, confirms).is_err() {
            self.taker = None;
            self.disk.life.set(None);
        }
    }

    fn try_read(&mut self, limits: Limits, confirms: bool) -> Result<(), Box<dyn std::error::Error>> {
        let taker = match &mut self.taker {
            Some(taker) => taker,
            None => self.taker.insert(SpoolReader::new(self.disk.clone(), limits)?),
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

/// All processes on one disk.
pub(super) struct MailboxWorld {
    pub(super) files: Rc<SimulatedFiles>,
    pub(super) ids: Rc<IdSequence>,
    pub(super) limits: Limits,
    pub(super) senders: Vec<Rc<RefCell<TestSender>>>,
    pub(super) reader: Rc<RefCell<TestReader>>,
}

impl MailboxWorld {
    pub(super) fn new(senders: usize, limits: Limits) -> MailboxWorld {
        let files = Rc::new(SimulatedFiles::default());
        let sender =
            |number: usize| Rc::new(RefCell::new(TestSender::new(&files, &format!("sender-{number}"))));
        let senders = (0..senders).map(sender).collect();
        let reader = Rc::new(RefCell::new(TestReader::new(&files)));
        MailboxWorld { files, ids: Rc::default(), limits, senders, reader }
    }

    /// Lets all processes finish, and checks the stored messages.
    pub(super) fn check(&self) {
        for _ in 0..2 {
            self.reader.borrow_mut().read(self.limits, true);
            for sender in &self.senders {
                let mut sender = sender.borrow_mut();
                // The first attempt may find the mailbox full.
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
                // A message refused as forgotten may have been posted before a kill.
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
