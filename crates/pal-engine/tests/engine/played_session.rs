//! A session on disk that is played against a small provider: it checks every request, counts it, refuses what is
//! longer than its window, and otherwise does what the test tells it.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use pal_context::{
    CompactionRange, CompactionRequest, CompactionTrigger, ContextPolicy, FileRequest, RestoreSources,
    RestoredFile, SummaryMethod, SummaryQuestion, SummaryReply,
};
use pal_engine::{
    CompactionFollowUp, CompactionObserver, CompactionResult, EngineError, FileReader, GuessedWindow,
    ModelClient, ModelResponse, Notifier, OutgoingRequest, RequestOutcome, RequestResult, Session,
    SessionConfig, SummaryExchange, TimeSource,
};
use pal_model::{
    ContentBlock, ContextOverflow, EntryBody, EntryDraft, IdSource, LogEntry, MediaKind, MessageOrigin,
    ModelCard, ModelCatalog, PromptPrefix, RequestSource, ResponseId, ResponseRecord, Timestamp, Usage,
    escape_into,
};
use pal_store::LogReader;
use pal_view::{Estimator, Lens, RenderOptions, Request, View, ViewScope, WindowLimits, WindowSettings};
use pal_wire::{BetaSet, RequestRules, check_request};
use smol_str::SmolStr;

pub(crate) const OPTIONS: RenderOptions =
    RenderOptions { max_tokens: 1_000, stream: true, spell_out_unseen: true };

/// Behavior of the provider for requests of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProviderMood {
    /// Answers what fits.
    Answers,
    /// Finds everything too long.
    TooLong,
    /// Refuses every request because of an image.
    RefusesMedia,
    /// Takes no pictures.
    RefusesPictures,
}

/// Behavior of the model for summary requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SummaryQuality {
    /// A summary in form.
    Good,
    /// There is no answer.
    Errors,
    /// An empty answer.
    Empty,
    /// It will not.
    Refuses,
    /// A tool call.
    CallsATool,
    /// The request is too long.
    FindsTooLong,
    /// A summary that is longer than what it stands for.
    Endless,
}

/// A server with a window and a tokenizer of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerWindow {
    /// Tokens of prompt and answer together, in its own count.
    pub(crate) tokens: u64,
    /// Its tokens for one of ours.
    pub(crate) ratio: f64,
    /// Content of its refusals.
    pub(crate) refusal: RefusalStyle,
}

/// Content of a refusal because of length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RefusalStyle {
    /// The prompt's tokens and the limit, for the prompt alone.
    PromptAndWindow,
    /// The prompt's tokens, those of the answer, and the limit for both.
    PromptAnswerAndWindow,
    /// The limit alone.
    WindowOnly,
    /// No figures.
    Silent,
}

impl RefusalStyle {
    pub(crate) const ALL: [RefusalStyle; 4] = [
        RefusalStyle::PromptAndWindow,
        RefusalStyle::PromptAnswerAndWindow,
        RefusalStyle::WindowOnly,
        RefusalStyle::Silent,
    ];
}

impl ServerWindow {
    /// Refuses what is too long.
    fn check(&self, prompt: u64, output: u64) -> Result<(), ContextOverflow> {
        let counts_answer = self.refusal == RefusalStyle::PromptAnswerAndWindow;
        if prompt + if counts_answer { output } else { 0 } <= self.tokens {
            return Ok(());
        }
        let window = Some(self.tokens);
        Err(match self.refusal {
            RefusalStyle::PromptAndWindow => {
                ContextOverflow { prompt: Some(prompt), window, ..ContextOverflow::UNKNOWN }
            }
            RefusalStyle::PromptAnswerAndWindow => {
                ContextOverflow { prompt: Some(prompt), window, output: Some(output), output_limit: None }
            }
            RefusalStyle::WindowOnly => ContextOverflow { window, ..ContextOverflow::UNKNOWN },
            RefusalStyle::Silent => ContextOverflow::UNKNOWN,
        })
    }
}

/// The provider, and what it saw.
pub(crate) struct PlayedHost {
    card: ModelCard,
    /// Real limits of the server, if they are not those of the card.
    pub(crate) server: Option<ServerWindow>,
    /// Tokens of each request that was refused, in the server's count.
    pub(crate) refused: Vec<u64>,
    /// Windows that the session learned.
    pub(crate) learned: Vec<u64>,
    /// Windows that the session guessed.
    pub(crate) guessed: Vec<GuessedWindow>,
    /// Prefix for windows below 40,000 tokens, until it is in use.
    pub(crate) lean_prefix: Option<PromptPrefix>,
    pub(crate) mood: ProviderMood,
    pub(crate) summaries: SummaryQuality,
    /// Bodies of the conversation's requests that were answered or refused.
    pub(crate) sent: Vec<String>,
    /// Ways by which a model was asked for a summary.
    pub(crate) asked: Vec<SummaryMethod>,
    pub(crate) notices: Vec<String>,
    /// Announcement after a compaction.
    pub(crate) announcement: Option<pal_engine::PendingAnnouncement>,
}

impl PlayedHost {
    /// Checks a request as the provider does and counts its tokens.
    fn checked(&self, request: &Request) -> (String, u64) {
        let body = request.body();
        let rules = RequestRules { betas: BetaSet::public(), ..RequestRules::from(&self.card) };
        if let Err(error) = check_request(body.as_bytes(), &rules) {
            panic!("{}\n{}", error.message, &body[..body.floor_char_boundary(4_000)]);
        }
        let estimator = Estimator::shipped(self.card.generation);
        // A picture has as many tokens as it has pixels, not bytes.
        let count = |block: &str| match block.contains("\"image/png\"") {
            true => 1_500.0,
            false => estimator.json(block),
        };
        let opening = request.system_blocks().iter().chain(request.tools()).map(|text| estimator.json(text));
        let tokens = opening.chain(request.pieces().map(|(_, block, _)| count(block))).sum::<f64>();
        (body, estimator.total(tokens))
    }

    pub(crate) fn was_told(&self, words: &str) -> bool {
        self.notices.iter().any(|notice| notice.contains(words))
    }
}

impl ModelClient for PlayedHost {
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        let (body, tokens) = self.checked(outgoing.request);
        self.sent.push(body);
        let ratio = self.server.map_or(1.0, |server| server.ratio);
        let tokens = (tokens as f64 * ratio) as u64;
        if let Some(Err(overflow)) =
            self.server.map(|server| server.check(tokens, outgoing.request.max_tokens()))
        {
            self.refused.push(tokens);
            return RequestOutcome::TooLong { overflow, message: String::from("prompt is too long") };
        }
        if self.mood == ProviderMood::TooLong || tokens > self.card.window {
            let message = format!("prompt is too long: {tokens} tokens");
            return RequestOutcome::TooLong {
                overflow: ContextOverflow { prompt: Some(tokens), ..ContextOverflow::UNKNOWN },
                message,
            };
        }
        let has_picture = self.sent.last().is_some_and(|body| body.contains("image/png"));
        if self.mood == ProviderMood::RefusesMedia
            || (self.mood == ProviderMood::RefusesPictures && has_picture)
        {
            return RequestOutcome::MediaRefused {
                media: vec![MediaKind::Image],
                message: String::from("image exceeds 5 MB maximum"),
            };
        }
        RequestOutcome::Answered(ModelResponse {
            response: ResponseId::from(format!("msg_{}", self.sent.len()).as_str()),
            model: self.card.model.clone(),
            blocks: vec![ContentBlock::text("Understood.")],
            usage: Usage { input_tokens: tokens, output_tokens: 10, ..Usage::default() },
            cost: None,
            stop_reason: Some("end_turn".into()),
            cleared_tokens: 0,
            cache_miss: None,
        })
    }

    fn learn_window(&mut self, window: u64) {
        self.learned.push(window);
    }

    fn learn_guessed_window(&mut self, window: &GuessedWindow) {
        self.guessed.push(*window);
    }

    fn ask(&mut self, question: &SummaryQuestion, _betas: &[SmolStr], _now: Timestamp) -> SummaryExchange {
        let (_, tokens) = self.checked(&question.request);
        assert!(tokens < self.card.window, "a question of {tokens} tokens");
        if let Some(server) = self.server
            && let Err(overflow) =
                server.check((tokens as f64 * server.ratio) as u64, question.request.max_tokens())
        {
            return SummaryExchange { reply: SummaryReply::TooLong(overflow), answered: None };
        }
        self.asked.push(question.method);
        let said = |text: &str| SummaryReply::Response(vec![ContentBlock::text(text)]);
        let reply = match self.summaries {
            SummaryQuality::Good => said("<summary>\n1. Request and intent\nWork goes on.\n</summary>"),
            SummaryQuality::Errors => SummaryReply::Failed(String::from("overloaded")),
            SummaryQuality::Empty => SummaryReply::Response(Vec::new()),
            SummaryQuality::Refuses => said("I cannot help with that."),
            SummaryQuality::CallsATool => {
                let call = r#"{"type":"tool_use","id":"x","name":"Read","input":{}}"#;
                SummaryReply::Response(
                    pal_model::Content::parse(&format!("[{call}]").into()).blocks().to_vec(),
                )
            }
            SummaryQuality::FindsTooLong => SummaryReply::TooLong(ContextOverflow::UNKNOWN),
            SummaryQuality::Endless => {
                said(&format!("<summary>\n{}\n</summary>", "One more thing. ".repeat(60_000)))
            }
        };
        SummaryExchange { reply, answered: None }
    }
}

impl FileReader for PlayedHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for PlayedHost {
    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }
}

impl TimeSource for PlayedHost {}

impl CompactionObserver for PlayedHost {
    fn smaller_prefix(&mut self, _view: &View, window: u64) -> Option<PromptPrefix> {
        if window < 40_000 { self.lean_prefix.take() } else { None }
    }

    fn after_compaction(&mut self, _boundary: &pal_model::Boundary, _view: &View) -> CompactionFollowUp {
        CompactionFollowUp { announcement: self.announcement.clone(), ..CompactionFollowUp::default() }
    }
}

/// A session that is being played.
pub(crate) struct PlayedSession {
    _folder: tempfile::TempDir,
    pub(crate) log: PathBuf,
    session: Option<Session>,
    pub(crate) engine: SessionConfig,
    pub(crate) host: PlayedHost,
    now: Timestamp,
    restarts: u64,
}

/// A prompt prefix of this many bytes.
pub(crate) fn prefix(bytes: usize) -> PromptPrefix {
    PromptPrefix {
        system: format!("[{}]", ContentBlock::text(&prose(bytes)).raw()).into(),
        tools: "[]".into(),
        context: pal_model::Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    }
}

/// A model with a window of this many tokens that does not bind its thinking.
pub(crate) fn card(window: u64) -> ModelCard {
    ModelCard { window, ..ModelCatalog::built_in().find("claude-opus-4-6").card }
}

impl PlayedSession {
    pub(crate) fn new(card: ModelCard) -> PlayedSession {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let lens = Lens {
            estimator: Estimator::shipped(card.generation),
            card: card.clone(),
            scope: ViewScope::Current,
        };
        let engine = SessionConfig::for_log(
            Path::new("session/log.jsonl"),
            ContextPolicy::threshold(),
            WindowLimits::new(&card, &WindowSettings::STANDARD),
            8_000,
        );
        let session = Some(Session::create(&log, lens, IdSource::seeded(0)).unwrap());
        let host = PlayedHost {
            card,
            server: None,
            refused: Vec::new(),
            learned: Vec::new(),
            guessed: Vec::new(),
            lean_prefix: None,
            mood: ProviderMood::Answers,
            summaries: SummaryQuality::Good,
            sent: Vec::new(),
            asked: Vec::new(),
            notices: Vec::new(),
            announcement: None,
        };
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        PlayedSession { _folder: folder, log, session, engine, host, now, restarts: 0 }
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        self.session.as_mut().unwrap()
    }

    pub(crate) fn view(&self) -> &View {
        self.session.as_ref().unwrap().view()
    }

    /// A request of the view as it stands.
    pub(crate) fn body(&self) -> String {
        self.view().render(OPTIONS).body()
    }

    pub(crate) fn append(&mut self, draft: EntryDraft) -> LogEntry {
        self.now = self.now.after(Duration::from_secs(1));
        let now = self.now;
        self.session().append(draft, now).unwrap()
    }

    pub(crate) fn say(&mut self, words: &str) -> LogEntry {
        self.append(EntryDraft::user(
            MessageOrigin::Person,
            &format!("[{}]", ContentBlock::text(words).raw()),
        ))
    }

    /// The model calls a tool, and the tool returns a text.
    pub(crate) fn tool(&mut self, id: &str, name: &str, returns: &str) -> LogEntry {
        let call = format!(
            r#"[{{"type":"tool_use","id":"{id}","name":"{name}","input":{{"file_path":"/src/{id}.rs"}}}}]"#
        );
        let response = ResponseId::from(format!("msg_of_{id}").as_str());
        let model = self.host.card.model.clone();
        self.append(EntryDraft::assistant(Some(&response), Some(&model), &call));
        let mut text = String::new();
        escape_into(&mut text, returns);
        let result = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{text}}}]"#);
        self.append(EntryDraft::user(MessageOrigin::Tool, &result))
    }

    /// The model calls a tool several times in one response, and each call returns the text.
    pub(crate) fn parallel_tools(&mut self, response: &str, count: usize, returns: &str) {
        let ids: Vec<String> = (0..count).map(|number| format!("{response}_{number}")).collect();
        let calls: Vec<String> = ids
            .iter()
            .map(|id| {
                format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{id}"}}}}"#)
            })
            .collect();
        let model = self.host.card.model.clone();
        let content = format!("[{}]", calls.join(","));
        self.append(EntryDraft::assistant(Some(&ResponseId::from(response)), Some(&model), &content));
        let mut text = String::new();
        escape_into(&mut text, returns);
        for id in ids {
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{text}}}]"#);
            self.append(EntryDraft::user(MessageOrigin::Tool, &result));
        }
    }

    /// Sends a request and appends what came back.
    pub(crate) fn turn(&mut self) -> Result<RequestResult, EngineError> {
        self.now = self.now.after(Duration::from_secs(1));
        let PlayedSession { session, engine, host, now, .. } = self;
        let sent = session.as_mut().unwrap().send(engine, *now, host)?;
        let answered = &sent.answered;
        let blocks: Vec<&str> = answered.blocks.iter().map(|block| block.raw().as_str()).collect();
        let content = format!("[{}]", blocks.join(","));
        self.append(EntryDraft::assistant(Some(&answered.response), Some(&answered.model), &content));
        self.append(EntryDraft::response(&ResponseRecord {
            response: answered.response.clone(),
            source: RequestSource::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: None,
            cache_break: None,
        }));
        Ok(sent)
    }

    pub(crate) fn compact(&mut self, order: CompactionRequest) -> CompactionResult {
        self.now = self.now.after(Duration::from_secs(1));
        let PlayedSession { session, engine, host, now, .. } = self;
        session.as_mut().unwrap().compact(order, engine, *now, host).unwrap()
    }

    /// Takes the last compaction back.
    pub(crate) fn uncompact(&mut self) -> Result<(), EngineError> {
        self.session().sync().unwrap();
        let whole = self.whole();
        let PlayedSession { session, engine, now, .. } = self;
        session.as_mut().unwrap().uncompact(engine, &whole, *now).map(|_| ())
    }

    /// All entries of the log, read from the disk.
    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        let branch = LogReader::open(&self.log).unwrap().whole_branch().unwrap();
        assert!(branch.problems.is_empty(), "{:?}", branch.problems);
        branch.entries
    }

    /// The view of the whole log.
    pub(crate) fn whole(&self) -> View {
        View::from_branch(self.view().lens().clone(), self.entries())
    }

    /// The process is killed, and the session resumed from its log.
    pub(crate) fn restart(&mut self) {
        self.restarts += 1;
        let session = self.session.take().unwrap();
        self.session = Some(session.reopen(IdSource::seeded(self.restarts)).unwrap());
        assert!(self.session().problems().is_empty());
    }

    pub(crate) fn boundaries(&self) -> usize {
        self.entries().iter().filter(|entry| matches!(entry.body, EntryBody::Boundary(_))).count()
    }
}

/// A compaction by hand.
pub(crate) fn by_hand(reach: CompactionRange, only: Option<SummaryMethod>) -> CompactionRequest {
    CompactionRequest {
        reason: None,
        trigger: CompactionTrigger::Manual,
        range: reach,
        source: RequestSource::main(),
        instructions: None,
        hook_instructions: None,
        notes: None,
        methods: only.map(|how| vec![how]),
        is_attended: true,
        sources: RestoreSources::default(),
        params: Default::default(),
    }
}

/// Returns `bytes` bytes of text that no condenser shortens.
pub(crate) fn prose(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 60);
    let mut number = 7_u64;
    while text.len() < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("fn part_{:x}() -> u32 {{ {} }}\n", number >> 40, number >> 50));
    }
    text
}
