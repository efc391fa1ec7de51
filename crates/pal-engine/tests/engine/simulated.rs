//! A session on disk against the simulator: a tool loop with the program's own prompt, in virtual time.

use std::time::Duration;

use pal_context::{FileRead, FileWanted, Place, Policy, Question, Reply};
use pal_engine::{Answered, Asked, CacheSettings, Engine, Errands, Outcome, Outgoing, Sent, Session};
use pal_model::{
    Block, Card, Cards, Draft, IdSource, Origin, ResponseGot, Source, Text, Timestamp, escape_into,
};
use pal_prompt::{Assembly, assemble, built_in_tools};
use pal_sim::{Answer, Ask, CacheStory, Extractive, HttpRequest, Model, Said, Settings, Simulator};
use pal_view::{Estimator, Lens, Limits, Request, Scope, WindowSettings};
use pal_wire::{Decoder, Dialect, Event, Finished, messages_call_with};
use smol_str::SmolStr;

/// A model that calls a tool again and again, and sums up when it is asked to.
struct Worker {
    calls: u64,
}

impl Model for Worker {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let last = ask.messages.last().map(|message| message.blocks.concat()).unwrap_or_default();
        if ask.compaction.is_some() || last.contains("<summary>") {
            return Extractive.answer(ask);
        }
        self.calls += 1;
        let input = Text::from(format!(r#"{{"file_path":"src/part{}.rs"}}"#, self.calls));
        let blocks = vec![
            Said::Text(format!("Part {} is next.", self.calls)),
            Said::ToolUse { id: None, name: String::from("Read"), input },
        ];
        Answer { blocks, stop: None }
    }
}

/// The provider, and what it did.
pub(crate) struct Desk {
    simulator: Simulator,
    /// The usage of every answer, with what the cache did and what the provider says of it.
    pub(crate) answers: Vec<(Finished, CacheStory)>,
    /// The bodies that left.
    pub(crate) bodies: Vec<String>,
}

impl Desk {
    fn exchange(&mut self, request: &Request, betas: &[SmolStr], now: Timestamp) -> (Vec<Block>, Finished) {
        let call = messages_call_with(betas, request.parts(), true);
        let headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let body = call.body.joined();
        let http = HttpRequest { method: "POST", path: call.path, headers: &headers, body: body.as_bytes() };
        let reply = self.simulator.handle(now, &http);
        let story = reply.exchange.as_ref().map(|exchange| exchange.cache);
        let mut events = Vec::new();
        let mut decoder = Decoder::new(Dialect::Messages);
        reply.chunks.iter().for_each(|chunk| decoder.push(&chunk.bytes, &mut events));
        decoder.finish(&mut events);
        let mut blocks = Vec::new();
        let mut end = None;
        for event in events {
            match event {
                Event::Block { block, .. } => blocks.push(block),
                Event::Finished(finished) => end = Some(finished),
                Event::Failed(failure) => panic!("{}: {}", reply.status, failure.message),
                _ => {}
            }
        }
        let finished = end.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&reply.body())));
        self.answers.push((finished.clone(), story.unwrap()));
        self.bodies.push(body);
        (blocks, finished)
    }
}

impl Errands for Desk {
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Outcome {
        let previous = outgoing.previous.map_or("null".into(), |id| format!("\"{id}\""));
        let request = outgoing
            .request
            .clone()
            .with_member("diagnostics", &format!(r#"{{"previous_message_id":{previous}}}"#));
        let (blocks, finished) = self.exchange(&request, outgoing.betas, outgoing.now);
        let (cleared_tokens, cache_miss) = (finished.cleared_tokens(), finished.cache_miss());
        let Finished { response, model, usage, stop_reason, .. } = finished;
        Outcome::Answered(Answered {
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

    fn ask(&mut self, question: &Question, betas: &[SmolStr], now: Timestamp) -> Asked {
        let (blocks, finished) = self.exchange(&question.request, betas, now);
        let reply = Reply::of_answer(blocks, finished.stop_reason.as_deref());
        Asked { reply, answered: Some((finished.response, finished.usage, None)) }
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        FileRead { path: wanted.path.clone(), text: None, seen: None }
    }

    fn notice(&mut self, _line: &str) {}
}

/// A session and its provider.
pub(crate) struct Simulated {
    _folder: tempfile::TempDir,
    pub(crate) session: Option<Session>,
    pub(crate) engine: Engine,
    pub(crate) desk: Desk,
    pub(crate) now: Timestamp,
    restarts: u64,
}

impl Simulated {
    /// A session of a model, with the program's own prompt and tools and one message of its user.
    pub(crate) fn new(model: &str) -> Simulated {
        let card = Cards::shipped().find(model).card;
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_milliseconds(1_763_251_200_000);
        let log = folder.path().join("log.jsonl");
        let mut session = Session::create(&log, lens(&card), IdSource::seeded(1)).unwrap();
        let assembly = Assembly { tools: built_in_tools(), ..Assembly::bare(&card) };
        session.append(Draft::prefix(&assemble(&assembly).prefix), now).unwrap();
        session.append(Draft::user(Origin::Person, r#""Read every part of the program.""#), now).unwrap();
        let simulator = Simulator::new(Settings::plain(), Box::new(Worker { calls: 0 }));
        let desk = Desk { simulator, answers: Vec::new(), bodies: Vec::new() };
        let engine = engine(&card);
        Simulated { _folder: folder, session: Some(session), engine, desk, now, restarts: 0 }
    }

    pub(crate) fn session(&mut self) -> &mut Session {
        self.session.as_mut().unwrap()
    }

    /// Sends the next request and takes its answer into the log, with the results of what it calls.
    pub(crate) fn turn(&mut self) -> Sent {
        self.now = self.now.after(Duration::from_secs(20));
        let now = self.now;
        let session = self.session.as_mut().unwrap();
        let sent = session.send(&self.engine, now, &mut self.desk).unwrap();
        let answered = &sent.answered;
        let raw: Vec<&str> = answered.blocks.iter().map(|block| block.raw().as_str()).collect();
        let content = format!("[{}]", raw.join(","));
        let said = Draft::assistant(Some(&answered.response), Some(&answered.model), &content);
        session.append(said, now).unwrap();
        let got = ResponseGot {
            response: answered.response.clone(),
            source: Source::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: None,
            cache_break: sent.cache_break.clone(),
        };
        session.append(Draft::response(&got), now).unwrap();
        for id in answered.blocks.iter().filter_map(|block| block.tool_use_id()) {
            let text =
                format!("pub fn part() -> u64 {{\n    // {id}\n    {}\n}}\n", "1 + ".repeat(140) + "1");
            let mut content = String::new();
            escape_into(&mut content, &text);
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]"#);
            session.append(Draft::user(Origin::Tool, &result), now).unwrap();
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
        &self.desk.answers[at].0.usage
    }
}

fn lens(card: &Card) -> Lens {
    Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope: Scope::Current }
}

fn engine(card: &Card) -> Engine {
    Engine {
        policy: Policy::classic(),
        limits: Limits::new(card, &WindowSettings::STANDARD),
        place: Place { directory: String::from("session"), transcript: String::from("session/log.jsonl") },
        is_attended: true,
        ways: None,
        max_tokens: 8_000,
        cache: CacheSettings {
            betas: pal_wire::betas(card).into_iter().map(SmolStr::new_static).collect(),
            ..CacheSettings::default()
        },
        inputs: pal_engine::Inputs::default(),
    }
}
