//! A log, written turn by turn.

use pal_context::CostLedger;
use pal_model::{
    Boundary, CacheBreak, CacheCreation, ContentBlock, Decision, DecisionCost, DecisionKind, EntryDraft,
    EntryId, IdSource, LayerReport, LogEntry, MessageOrigin, ModelCatalog, PromptPrefix, RequestRecord,
    RequestSource, ResponseRecord, SharedText, Timestamp, Usage,
};

pub(crate) const MODEL: &str = "claude-fable-5";

pub(crate) struct LogTape {
    ids: IdSource,
    entries: Vec<LogEntry>,
    parent: Option<EntryId>,
    now: i64,
    pub(crate) model: &'static str,
    pub(crate) source: &'static str,
    /// True if its requests have our fingerprint.
    pub(crate) is_ours: bool,
    /// Layer reports of the next request.
    pub(crate) layers: Vec<LayerReport>,
    /// Recorded cause of the next response.
    pub(crate) verdict: Option<CacheBreak>,
}

/// Usage with these tokens read, written for five minutes and uncached, and 100 output tokens.
pub(crate) fn used(read: u64, written: u64, uncached: u64) -> Usage {
    Usage {
        input_tokens: uncached,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: read,
        output_tokens: 100,
        cache_creation: Some(CacheCreation {
            ephemeral_5m_input_tokens: written,
            ephemeral_1h_input_tokens: 0,
        }),
        ..Usage::default()
    }
}

/// Usage with tokens written for an hour.
pub(crate) fn used_for_an_hour(read: u64, written: u64) -> Usage {
    let creation = CacheCreation { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: written };
    Usage { cache_creation: Some(creation), ..used(read, written, 0) }
}

pub(crate) fn cleared() -> DecisionKind {
    DecisionKind::Clear { tool_use_ids: vec!["call".into()], text: "[gone]".into() }
}

impl LogTape {
    pub(crate) fn new() -> LogTape {
        LogTape {
            ids: IdSource::seeded(9),
            entries: Vec::new(),
            parent: None,
            now: 1_800_000_000_000,
            model: MODEL,
            source: "main",
            is_ours: true,
            layers: Vec::new(),
            verdict: None,
        }
    }

    pub(crate) fn ledger(&self) -> CostLedger {
        CostLedger::from_entries(&self.entries, &ModelCatalog::built_in())
    }

    pub(crate) fn append(&mut self, draft: EntryDraft) -> EntryId {
        let at = Timestamp::from_milliseconds(self.now);
        let id = self.ids.next_id(at);
        self.entries
            .push(LogEntry::parse(SharedText::from(draft.into_line(id, self.parent, at, None))).unwrap());
        self.parent = Some(id);
        id
    }

    pub(crate) fn newest(&self) -> EntryId {
        self.parent.unwrap()
    }

    pub(crate) fn rewind(&mut self, to: EntryId) {
        self.parent = Some(to);
    }

    pub(crate) fn say(&mut self, text: &str) -> EntryId {
        self.append(EntryDraft::user(MessageOrigin::Person, &format!("[{}]", ContentBlock::text(text).raw())))
    }

    /// Adds a user message, a request `seconds` after the last one, and its response.
    pub(crate) fn turn(&mut self, seconds: i64, usage: Usage) {
        self.say("go on");
        self.ask(seconds);
        self.answer(usage);
    }

    /// Adds a request without a new message.
    pub(crate) fn ask(&mut self, seconds: i64) {
        self.now += 1_000 * seconds;
        let request = RequestRecord {
            fingerprint: self.is_ours.then(|| String::from("f")),
            layers: std::mem::take(&mut self.layers),
            ..RequestRecord::new(RequestSource::from_name(self.source), self.parent, self.model.into())
        };
        self.append(EntryDraft::request(&request));
    }

    pub(crate) fn answer(&mut self, usage: Usage) {
        let response = format!("msg_{}", self.entries.len()).as_str().into();
        if self.source == "main" {
            let content = format!("[{}]", ContentBlock::text("so be it").raw());
            self.append(EntryDraft::assistant(Some(&response), Some(self.model), &content));
        }
        let got = ResponseRecord {
            response,
            source: RequestSource::from_name(self.source),
            model: self.model.into(),
            usage,
            stop_reason: None,
            cost: None,
            cache_break: self.verdict.take(),
        };
        self.append(EntryDraft::response(&got));
    }

    pub(crate) fn decide(&mut self, kind: DecisionKind, tokens_freed: u64) -> EntryId {
        let cost = DecisionCost { tokens_freed, ..DecisionCost::default() };
        self.append(EntryDraft::decision(&Decision { kind, reason: "a test".into(), cost }))
    }

    pub(crate) fn undo(&mut self, target: EntryId) {
        self.decide(DecisionKind::Undo { target }, 0);
    }

    pub(crate) fn boundary(&mut self, summary: &str) {
        let summary = [ContentBlock::text(summary)].into_iter().collect();
        self.append(EntryDraft::boundary(&Boundary {
            method: "fork".into(),
            summary,
            ..Boundary::default()
        }));
    }

    /// Adds a known prefix.
    pub(crate) fn prefix(&mut self, system: &str) {
        self.append(EntryDraft::prefix(&PromptPrefix {
            system: SharedText::from(format!("[{}]", ContentBlock::text(system).raw())),
            tools: SharedText::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
            context: Default::default(),
            unseen_tokens: 0,
            notes: Default::default(),
        }));
    }

    /// A tool is called and answers.
    pub(crate) fn result(&mut self) {
        let call = r#"[{"type":"tool_use","id":"call","name":"Read","input":{}}]"#;
        self.append(EntryDraft::assistant(Some(&"msg_call".into()), Some(self.model), call));
        let result = r#"[{"type":"tool_result","tool_use_id":"call","content":"a long text"}]"#;
        self.append(EntryDraft::user(MessageOrigin::Tool, result));
    }
}
