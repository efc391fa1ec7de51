//! A host without a model and without files.

use pal_context::{FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_model::Timestamp;
use smol_str::SmolStr;

use crate::model_client::{ModelClient, OutgoingRequest, RequestOutcome, SummaryExchange};
use crate::session_host::{CompactionObserver, FileReader, Notifier, TimeSource};

/// Host for programs that send requests themselves: compactions are extractive, files are not restored, and notices are kept.
#[derive(Clone, Debug, Default)]
pub struct OfflineHost {
    /// Notices for the user, oldest first.
    pub notices: Vec<String>,
}

impl ModelClient for OfflineHost {
    fn send(&mut self, _: &OutgoingRequest<'_>) -> RequestOutcome {
        RequestOutcome::Failed("this host sends no requests".to_owned())
    }

    fn ask(&mut self, _: &SummaryQuestion, _: &[SmolStr], _: Timestamp) -> SummaryExchange {
        SummaryExchange { reply: SummaryReply::Failed("this host has no model".to_owned()), answered: None }
    }
}

impl FileReader for OfflineHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for OfflineHost {
    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }
}

impl TimeSource for OfflineHost {}

impl CompactionObserver for OfflineHost {}
