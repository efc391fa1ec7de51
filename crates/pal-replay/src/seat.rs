//! The session that is replayed into: a log on disk and its view, in step.

use std::path::Path;

use pal_model::{Boundary, Draft, Entry, EntryId, IdSource, Timestamp};
use pal_store::Log;
use pal_view::{Lens, Pushed, View};

use crate::ReplayError;

/// A log and its view.
pub(crate) struct Seat {
    log: Log,
    view: View,
}

impl Seat {
    /// A new session.
    pub(crate) fn create(path: &Path, lens: Lens) -> Result<Seat, ReplayError> {
        Ok(Seat { log: Log::create(path, IdSource::seeded(0))?, view: View::new(lens) })
    }

    /// What the model sees next.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Appends an entry.
    pub(crate) fn append(&mut self, draft: Draft, at: Timestamp) -> Result<EntryId, ReplayError> {
        let entry = self.log.append(draft, at)?;
        let id = entry.id;
        match self.view.push(entry) {
            Pushed::Added => Ok(id),
            Pushed::Repeated | Pushed::NeedsHistory => Err(ReplayError::OutOfOrder(id)),
        }
    }

    /// Appends an entry of another log.
    pub(crate) fn copy(&mut self, entry: &Entry) -> Result<EntryId, ReplayError> {
        self.append(Draft::copy_of(entry), entry.at)
    }

    /// Appends a boundary of another log. What it knows of its log is told anew: places and totals are others here.
    pub(crate) fn copy_boundary(
        &mut self,
        entry: &Entry,
        boundary: &Boundary,
    ) -> Result<EntryId, ReplayError> {
        let mut boundary = boundary.clone();
        boundary.snapshot = self.view.state().clone();
        if let Some(prefix) = &mut boundary.snapshot.prefix {
            prefix.offset = self.log.offset(prefix.id);
        }
        if let Some(preserved) = &mut boundary.preserved {
            preserved.offset = self.log.offset(preserved.head);
        }
        self.append(Draft::boundary(&boundary).with_id(entry.id), entry.at)
    }

    /// The same session for another model.
    pub(crate) fn look_through(&mut self, lens: Lens) {
        self.view = self.view.through(lens);
    }

    /// Lets go of everything and resumes from the file.
    pub(crate) fn reopen(self) -> Result<Seat, ReplayError> {
        let Seat { log, view } = self;
        let (path, lens) = (log.path().to_owned(), view.lens().clone());
        drop(log);
        let opened = Log::open(&path, IdSource::seeded(0))?;
        Ok(Seat { log: opened.log, view: View::of(lens, opened.branch.entries) })
    }
}
