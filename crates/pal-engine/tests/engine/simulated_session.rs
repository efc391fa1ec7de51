//! A session on disk against the simulator: a tool loop with the program's own prompt, in virtual time.

use std::path::Path;
use std::time::Duration;

use pal_context::{ContextPolicy, FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_engine::{
    CacheSettings, CompactionObserver, FileReader, ModelClient, ModelResponse, Notifier, OutgoingRequest,
    RequestOutcome, RequestResult, Session, SessionConfig, SummaryExchange, TimeSource,
};
use pal_model::{
    ContentBlock, EntryDraft, IdSource, MessageOrigin, ModelCard, ModelCatalog, RequestSource,
    ResponseRecord, SharedText, Timestamp, escape_into,
};
use pal_prompt::{PrefixInputs, assemble, built_in_tools};
use pal_sim::{
    CacheOutcome, ExtractiveModel, HttpRequest, ModelOutput, ModelPrompt, OutputBlock, SimSettings,
    SimulatedModel, SimulatedProvider,
};
use pal_view::{Estimator, Lens, Request, ViewScope, WindowLimits, WindowSettings};
use pal_wire::{Dialect, ResponseDecoder, ResponseEnd, ResponseEvent, messages_call};
use smol_str::SmolStr;

/// A model that calls a tool again and again, and sums up when it is asked to.
struct WorkingModel {
    calls: u64,
}

impl SimulatedModel for WorkingModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let last = ask.messages.last().map(|message| message.blocks.concat()).unwrap_or_default();
        if ask.compaction.is_some() || last.contains("<summary>") {
            return ExtractiveModel.answer(ask);
        }
        self.calls += 1;
        let input = SharedText::from(format!(r#"{{"file_path":"src/part{}.rs"}}"#, self.calls));
        let blocks = vec![
            OutputBlock::Text(format!("Part {} is next.", self.calls)),
            OutputBlock::ToolUse { id: None, name: String::from("Read"), input },
        ];
        ModelOutput { blocks, stop: None }
    }
}

/// The provider, and what it did.
pub(crate) struct SimulatedHost {
    simulator: SimulatedProvider,
    /// The usage of every answer, with what the cache did and what the provider says of it.
    pub(crate) answers: Vec<(ResponseEnd, CacheOutcome)>,
    /// The bodies that left.
    pub(crate) bodies: Vec<String>,
}

impl SimulatedHost {
    fn exchange(
        &mut self,
        request: &Request,
        betas: &[SmolStr],
        now: Timestamp,
    ) -> (Vec<ContentBlock>, ResponseEnd) {
        let call = messages_call(betas, request.parts(), true);
        let headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let body = call.body.to_joined_string();
        let http = HttpRequest { method: "POST", path: call.path, headers: &headers, body: body.as_bytes() };
        let reply = self.simulator.handle(now, &http);
        let story = reply.exchange.as_ref().map(|exchange| exchange.cache);
        let mut events = Vec::new();
        let mut decoder = ResponseDecoder::new(Dialect::Messages);
        reply.chunks.iter().for_each(|chunk| decoder.push(&chunk.bytes, &mut events));
        decoder.finish(&mut events);
        let mut blocks = Vec::new();
        let mut end = None;
        for event in events {
            match event {
                ResponseEvent::Block { block, .. } => blocks.push(block),
                ResponseEvent::Finished(finished) => end = Some(finished),
                ResponseEvent::Failed(failure) => panic!("{}: {}", reply.status, failure.message),
                _ => {}
            }
        }
        let finished = end.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&reply.body())));
        self.answers.push((finished.clone(), story.unwrap()));
        self.bodies.push(body);
        (blocks, finished)
    }
}

impl ModelClient for SimulatedHost {
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        let previous = outgoing.previous.map_or("null".into(), |id| format!("\"{id}\""));
        let request = outgoing
            .request
            .clone()
            .with_member("diagnostics", &format!(r#"{{"previous_message_id":{previous}}}"#));
        let (blocks, finished) = self.exchange(&request, outgoing.betas, outgoing.now);
        let (cleared_tokens, cache_miss) = (finished.cleared_tokens(), finished.cache_miss());
        let ResponseEnd { response, model, usage, stop_reason, .. } = finished;
        RequestOutcome::Answered(ModelResponse {
            response,
            model,
            blocks,
            usage,
            cost: None,
            stop_reason,
            cleared_tokens,
            cache_miss,
        })
    }

    fn ask(&mut self, question: &SummaryQuestion, betas: &[SmolStr], now: Timestamp) -> SummaryExchange {
        let (blocks, finished) = self.exchange(&question.request, betas, now);
        let reply = SummaryReply::of_answer(blocks, finished.stop_reason.as_deref());
        SummaryExchange { reply, answered: Some((finished.response, finished.usage, None)) }
    }
}

impl FileReader for SimulatedHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for SimulatedHost {
    fn notice(&mut self, _line: &str) {}
}

impl TimeSource for SimulatedHost {}

impl CompactionObserver for SimulatedHost {}

/// A session and its provider.
pub(crate) struct SimulatedSession {
    _folder: tempfile::TempDir,
    pub(crate) session: Option<Session>,
    pub(crate) engine: SessionConfig,
    pub(crate) host: SimulatedHost,
    pub(crate) now: Timestamp,
    restarts: u64,
}

impl SimulatedSession {
    /// A session of a model, with the program's own prompt and tools and one message of its user.
    pub(crate) fn new(model: &str) -> SimulatedSession {
        let card = ModelCatalog::built_in().find(model).card;
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_milliseconds(1_763_251_200_000);
        let log = folder.path().join("log.jsonl");
        let mut session = Session::create(&log, lens(&card), IdSource::seeded(1)).unwrap();
        let assembly = PrefixInputs { tools: built_in_tools(), ..PrefixInputs::for_card(&card) };
        session.append(EntryDraft::prefix(&assemble(&assembly).prefix), now).unwrap();
        session
            .append(EntryDraft::user(MessageOrigin::Person, r#""Read every part of the program.""#), now)
            .unwrap();
        let simulator = SimulatedProvider::new(SimSettings::plain(), Box::new(WorkingModel { calls: 0 }));
        let host = SimulatedHost { simulator, answers: Vec::new(), bodies: Vec::new() };
        let engine = engine(&card);
        SimulatedSession { _folder: folder, session: Some(session), engine, host, now, restarts: 0 }
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        self.session.as_mut().unwrap()
    }

    /// Sends the next request and takes its answer into the log, with the results of what it calls.
    pub(crate) fn turn(&mut self) -> RequestResult {
        self.now = self.now.after(Duration::from_secs(20));
        let now = self.now;
        let session = self.session.as_mut().unwrap();
        let sent = session.send(&mut self.engine, now, &mut self.host).unwrap();
        let answered = &sent.answered;
        let raw: Vec<&str> = answered.blocks.iter().map(|block| block.raw().as_str()).collect();
        let content = format!("[{}]", raw.join(","));
        let said = EntryDraft::assistant(Some(&answered.response), Some(&answered.model), &content);
        session.append(said, now).unwrap();
        let got = ResponseRecord {
            response: answered.response.clone(),
            source: RequestSource::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: None,
            cache_break: sent.cache_break.clone(),
        };
        session.append(EntryDraft::response(&got), now).unwrap();
        for id in answered.blocks.iter().filter_map(|block| block.tool_use_id()) {
            let text =
                format!("pub fn part() -> u64 {{\n    // {id}\n    {}\n}}\n", "1 + ".repeat(140) + "1");
            let mut content = String::new();
            escape_into(&mut content, &text);
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]"#);
            session.append(EntryDraft::user(MessageOrigin::Tool, &result), now).unwrap();
        }
        sent
    }

    /// Closes the session and opens it again from its log.
    pub(crate) fn restart(&mut self) {
        self.restarts += 1;
        let session = self.session.take().unwrap();
        self.session = Some(session.reopen(IdSource::seeded(1 + self.restarts)).unwrap());
    }

    pub(crate) fn usage(&self, at: usize) -> &pal_model::Usage {
        &self.host.answers[at].0.usage
    }
}

fn lens(card: &ModelCard) -> Lens {
    Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope: ViewScope::Current }
}

fn engine(card: &ModelCard) -> SessionConfig {
    let cache = CacheSettings {
        betas: pal_wire::beta_headers(card).into_iter().map(SmolStr::new_static).collect(),
        ..CacheSettings::default()
    };
    let limits = WindowLimits::new(card, &WindowSettings::STANDARD);
    SessionConfig::for_log(Path::new("session/log.jsonl"), ContextPolicy::threshold(), limits, 8_000)
        .with_cache(cache)
}
