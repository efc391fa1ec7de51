//! Conversations as logs of a project, and questions asked of them.

use std::collections::HashMap;

use pal_model::{EntryDraft, EntryId, IdSource, MessageOrigin, Timestamp, escape_into};
use pal_recall::{NearbyText, PassageHit, Recall, RecallQuery};
use pal_store::{Log, log_path};

use crate::conversations::Conversation;
use crate::scores::RankedResult;

/// Passages asked for.
const LIMIT: usize = 50;

/// A project directory with one log per session.
pub(crate) struct ProjectLogs {
    folder: tempfile::TempDir,
    /// Turn of each entry.
    turns: HashMap<EntryId, usize>,
    /// Texts of the turns.
    texts: Vec<String>,
    now: Timestamp,
}

impl ProjectLogs {
    /// Writes each session as a log: one entry per turn, with its time. Messages of the first speaker are prompts.
    pub(crate) fn of_conversation(conversation: &Conversation) -> ProjectLogs {
        let folder = tempfile::tempdir().unwrap();
        let mut logs: HashMap<&str, Log> = HashMap::new();
        let mut turns = HashMap::new();
        for (at, turn) in conversation.turns.iter().enumerate() {
            let count = logs.len() as u64;
            let log = logs.entry(&turn.session).or_insert_with(|| {
                let session = folder.path().join("sessions").join(format!("session-{:0>4}", turn.session));
                std::fs::create_dir_all(&session).unwrap();
                Log::create(&log_path(&session), IdSource::seeded(count + 1)).unwrap()
            });
            let mut content = String::new();
            escape_into(&mut content, &turn.text);
            let draft = match turn.is_first_speaker {
                true => EntryDraft::user(MessageOrigin::Person, &content),
                false => {
                    EntryDraft::assistant(None, None, &format!(r#"[{{"type":"text","text":{content}}}]"#))
                }
            };
            turns.insert(log.append(draft, turn.at).unwrap().id, at);
        }
        let texts = conversation.turns.iter().map(|turn| turn.text.clone()).collect();
        ProjectLogs { folder, turns, texts, now: conversation.end() }
    }

    /// Writes logs as sessions of a project.
    pub(crate) fn of_logs(logs: &[String]) -> ProjectLogs {
        let folder = tempfile::tempdir().unwrap();
        for (at, log) in logs.iter().enumerate() {
            let session = folder.path().join("sessions").join(format!("session-{at:04}"));
            std::fs::create_dir_all(&session).unwrap();
            std::fs::write(log_path(&session), log).unwrap();
        }
        // After all recorded sessions.
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        ProjectLogs { folder, turns: HashMap::new(), texts: Vec::new(), now }
    }

    /// Indexed recall over the logs.
    pub(crate) fn recall(&self) -> Recall {
        let mut recall = Recall::of_project(self.folder.path());
        let updated = recall.update(&mut |_| true).unwrap();
        assert!(updated.unreadable.is_empty() && !updated.is_behind, "{updated:?}");
        recall
    }

    /// Asks a question; returns what is shown for it.
    pub(crate) fn ask(&self, recall: &mut Recall, question: &str) -> Vec<RankedResult> {
        self.search(recall, question).iter().map(|hit| self.shown(hit)).collect()
    }

    /// Asks a question; returns the texts that are shown for it.
    pub(crate) fn ask_for_texts(&self, recall: &mut Recall, question: &str) -> Vec<String> {
        let texts = |hit: &PassageHit| {
            let text = |nearby: &Option<NearbyText>| nearby.as_ref().map(|nearby| nearby.text.clone());
            let nearby = [text(&hit.nearby.before), Some(hit.passage.text.clone()), text(&hit.nearby.after)];
            nearby.into_iter().flatten().collect::<Vec<_>>().join("\n")
        };
        self.search(recall, question).iter().map(texts).collect()
    }

    fn search(&self, recall: &mut Recall, question: &str) -> Vec<PassageHit> {
        let query = RecallQuery {
            query: question,
            session: None,
            limit: LIMIT,
            context_lines: 2,
            now: self.now,
            caller: None,
        };
        recall.search(&query).unwrap().passages
    }

    /// Turns that a passage shows whole, and its characters.
    fn shown(&self, hit: &PassageHit) -> RankedResult {
        let nearby = [&hit.nearby.before, &hit.nearby.after].into_iter().flatten();
        let nearby = nearby.map(|nearby| (Some(nearby.entry), nearby.text.as_str()));
        let shown: Vec<_> = std::iter::once((hit.entry, hit.passage.text.as_str())).chain(nearby).collect();
        let is_whole = |(entry, text): &(Option<EntryId>, &str)| {
            let turn = *self.turns.get(entry.as_ref()?)?;
            text.contains(self.texts[turn].trim()).then_some(turn)
        };
        RankedResult {
            turns: shown.iter().filter_map(is_whole).collect(),
            characters: shown.iter().map(|(_, text)| text.chars().count() + 1).sum(),
        }
    }
}
