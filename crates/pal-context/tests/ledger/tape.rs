//! A log, written turn by turn.

use pal_context::Ledger;
use pal_model::{
    Block, Boundary, CacheBreak, CacheCreation, Cards, Cost, Decision, DecisionKind, Draft, Entry, EntryId,
    IdSource, LayerReport, Origin, Prefix, RequestSent, ResponseGot, Source, Text, Timestamp, Usage,
};

pub(crate) const MODEL: &str = "claude-fable-5";

pub(crate) struct Tape {
    ids: IdSource,
    entries: Vec<Entry>,
    parent: Option<EntryId>,
    now: i64,
    pub(crate) model: &'static str,
    pub(crate) source: &'static str,
    /// Whether its requests are rendered by us.
    pub(crate) is_ours: bool,
    /// What the next request says of the layers.
    pub(crate) layers: Vec<LayerReport>,
    /// The verdict that the next response carries.
    pub(crate) verdict: Option<CacheBreak>,
}

/// What a response reports: tokens read, written for five minutes, uncached; and a hundred of output.
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
        iterations: None,
    }
}

/// The same, written for an hour.
pub(crate) fn used_for_an_hour(read: u64, written: u64) -> Usage {
    let creation = CacheCreation { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: written };
    Usage { cache_creation: Some(creation), ..used(read, written, 0) }
}

pub(crate) fn cleared() -> DecisionKind {
    DecisionKind::Clear { tool_use_ids: vec!["call".into()], text: "[gone]".into() }
}

impl Tape {
    pub(crate) fn new() -> Tape {
        Tape {
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

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::of(&self.entries, &Cards::shipped())
    }

    pub(crate) fn append(&mut self, draft: Draft) -> EntryId {
        let at = Timestamp::from_milliseconds(self.now);
        let id = self.ids.next_id(at);
        self.entries.push(Entry::parse(Text::from(draft.into_line(id, self.parent, at, None))).unwrap());
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
        self.append(Draft::user(Origin::Person, &format!("[{}]", Block::text(text).raw())))
    }

    /// A person says something, a request leaves so many seconds after the last one, and a response comes at once.
    pub(crate) fn turn(&mut self, seconds: i64, usage: Usage) {
        self.say("go on");
        self.ask(seconds);
        self.answer(usage);
    }

    /// A request leaves, and nothing was said before it.
    pub(crate) fn ask(&mut self, seconds: i64) {
        self.now += 1_000 * seconds;
        let request = RequestSent {
            fingerprint: self.is_ours.then(|| String::from("f")),
            layers: std::mem::take(&mut self.layers),
            ..RequestSent::plain(Source::named(self.source), self.parent, self.model.into())
        };
        self.append(Draft::request(&request));
    }

    pub(crate) fn answer(&mut self, usage: Usage) {
        let response = format!("msg_{}", self.entries.len()).as_str().into();
        if self.source == "main" {
            let content = format!("[{}]", Block::text("so be it").raw());
            self.append(Draft::assistant(Some(&response), Some(self.model), &content));
        }
        let got = ResponseGot {
            response,
            source: Source::named(self.source),
            model: self.model.into(),
            usage,
            stop_reason: None,
            cost: None,
            cache_break: self.verdict.take(),
        };
        self.append(Draft::response(&got));
    }

    pub(crate) fn decide(&mut self, kind: DecisionKind, tokens_freed: u64) -> EntryId {
        let cost = Cost { tokens_freed, ..Cost::default() };
        self.append(Draft::decision(&Decision { kind, reason: "a test".into(), cost }))
    }

    pub(crate) fn undo(&mut self, target: EntryId) {
        self.decide(DecisionKind::Undo { target }, 0);
    }

    pub(crate) fn boundary(&mut self, summary: &str) {
        let summary = [Block::text(summary)].into_iter().collect();
        self.append(Draft::boundary(&Boundary { how: "fork".into(), summary, ..Boundary::default() }));
    }

    /// What stands before the messages is known.
    pub(crate) fn prefix(&mut self, system: &str) {
        self.append(Draft::prefix(&Prefix {
            system: Text::from(format!("[{}]", Block::text(system).raw())),
            tools: Text::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
            context: Default::default(),
            unseen_tokens: 0,
            notes: Default::default(),
        }));
    }

    /// A tool is called and answers.
    pub(crate) fn result(&mut self) {
        let call = r#"[{"type":"tool_use","id":"call","name":"Read","input":{}}]"#;
        self.append(Draft::assistant(Some(&"msg_call".into()), Some(self.model), call));
        let result = r#"[{"type":"tool_result","tool_use_id":"call","content":"a long text"}]"#;
        self.append(Draft::user(Origin::Tool, result));
    }
}
