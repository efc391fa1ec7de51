//! A session on disk that is played against a small provider: it checks every request, counts it, refuses what is
//! longer than its window, and otherwise does what the test tells it.

use std::path::PathBuf;
use std::time::Duration;

use pal_context::{FileRead, FileWanted, How, Order, Place, Policy, Question, Reach, Reply, Trigger, World};
use pal_engine::{
    AfterCompaction, Answered, Asked, Compacted, Engine, EngineError, Errands, Outcome, Outgoing, Sent,
    Session,
};
use pal_model::{
    Block, Body, Card, Cards, Draft, Entry, IdSource, Origin, ResponseGot, ResponseId, Source, Timestamp,
    Usage, escape_into,
};
use pal_store::Reader;
use pal_view::{Estimator, Lens, Limits, RenderOptions, Request, Scope, View, WindowSettings};
use pal_wire::{Betas, Rules, check_request};
use smol_str::SmolStr;

pub(crate) const OPTIONS: RenderOptions =
    RenderOptions { max_tokens: 1_000, stream: true, spell_out_unseen: true };

/// What the provider says to requests of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// Answers what fits.
    Answers,
    /// Finds everything too long.
    TooLong,
    /// Takes no pictures.
    RefusesPictures,
}

/// What the model says when it is asked for a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Summaries {
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

/// The provider, and what it saw.
pub(crate) struct Desk {
    card: Card,
    pub(crate) mood: Mood,
    pub(crate) summaries: Summaries,
    /// Bodies of the conversation's requests that were answered or refused.
    pub(crate) sent: Vec<String>,
    /// Ways by which a model was asked for a summary.
    pub(crate) asked: Vec<How>,
    pub(crate) notices: Vec<String>,
    /// What is announced behind a compaction.
    pub(crate) announcement: Option<pal_engine::Announced>,
}

impl Desk {
    /// Checks a request as the provider does and counts its tokens.
    fn checked(&self, request: &Request) -> (String, u64) {
        let body = request.body();
        let rules = Rules { betas: Betas::public(), ..Rules::from(&self.card) };
        if let Err(error) = check_request(body.as_bytes(), &rules) {
            panic!("{}\n{}", error.message, &body[..body.floor_char_boundary(4_000)]);
        }
        let estimator = Estimator::shipped(self.card.generation);
        // A picture has as many tokens as it has pixels, not bytes.
        let count = |block: &str| match block.contains("\"image/png\"") {
            true => 1_500.0,
            false => estimator.json(block),
        };
        let opening = request.system().iter().chain(request.tools()).map(|text| estimator.json(text));
        let tokens = opening.chain(request.pieces().map(|(_, block, _)| count(block))).sum::<f64>();
        (body, estimator.total(tokens))
    }

    pub(crate) fn was_told(&self, words: &str) -> bool {
        self.notices.iter().any(|notice| notice.contains(words))
    }
}

impl Errands for Desk {
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Outcome {
        let (body, tokens) = self.checked(outgoing.request);
        self.sent.push(body);
        if self.mood == Mood::TooLong || tokens > self.card.window {
            let message = format!("prompt is too long: {tokens} tokens");
            return Outcome::TooLong { have: Some(tokens), limit: None, message };
        }
        if self.mood == Mood::RefusesPictures
            && self.sent.last().is_some_and(|body| body.contains("image/png"))
        {
            return Outcome::MediaRefused(String::from("image exceeds 5 MB maximum"));
        }
        Outcome::Answered(Answered {
            response: ResponseId::from(format!("msg_{}", self.sent.len()).as_str()),
            model: self.card.model.clone(),
            blocks: vec![Block::text("Understood.")],
            usage: Usage { input_tokens: tokens, output_tokens: 10, ..Usage::default() },
            cost: None,
            stop_reason: Some("end_turn".into()),
            cleared_tokens: 0,
            cache_miss: None,
        })
    }

    fn ask(&mut self, question: &Question, _betas: &[SmolStr], _now: Timestamp) -> Asked {
        let (_, tokens) = self.checked(&question.request);
        assert!(tokens < self.card.window, "a question of {tokens} tokens");
        self.asked.push(question.how);
        let said = |text: &str| Reply::Said(vec![Block::text(text)]);
        let reply = match self.summaries {
            Summaries::Good => said("<summary>\n1. Request and intent\nWork goes on.\n</summary>"),
            Summaries::Errors => Reply::Failed(String::from("overloaded")),
            Summaries::Empty => Reply::Said(Vec::new()),
            Summaries::Refuses => said("I cannot help with that."),
            Summaries::CallsATool => {
                let call = r#"{"type":"tool_use","id":"x","name":"Read","input":{}}"#;
                Reply::Said(pal_model::Content::parse(&format!("[{call}]").into()).blocks().to_vec())
            }
            Summaries::FindsTooLong => Reply::TooLong { have: None, limit: None },
            Summaries::Endless => {
                said(&format!("<summary>\n{}\n</summary>", "One more thing. ".repeat(60_000)))
            }
        };
        Asked { reply, answered: None }
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        FileRead { path: wanted.path.clone(), text: None, seen: None }
    }

    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }

    fn after_compaction(&mut self, _boundary: &pal_model::Boundary, _view: &View) -> AfterCompaction {
        AfterCompaction { announcement: self.announcement.clone(), ..AfterCompaction::default() }
    }
}

/// A session that is being played.
pub(crate) struct Played {
    _folder: tempfile::TempDir,
    pub(crate) log: PathBuf,
    session: Option<Session>,
    pub(crate) engine: Engine,
    pub(crate) desk: Desk,
    now: Timestamp,
    restarts: u64,
}

/// A model with a window of this many tokens that does not bind its thinking.
pub(crate) fn card(window: u64) -> Card {
    Card { window, ..Cards::shipped().find("claude-opus-4-6").card }
}

impl Played {
    pub(crate) fn new(card: Card) -> Played {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let lens = Lens {
            estimator: Estimator::shipped(card.generation),
            card: card.clone(),
            scope: Scope::Current,
        };
        let engine = Engine {
            policy: Policy::classic(),
            limits: Limits::new(&card, &WindowSettings::STANDARD),
            place: Place {
                directory: String::from("session"),
                transcript: String::from("session/log.jsonl"),
            },
            is_attended: true,
            ways: None,
            max_tokens: 8_000,
            cache: Default::default(),
            inputs: pal_engine::Inputs::default(),
        };
        let session = Some(Session::create(&log, lens, IdSource::seeded(0)).unwrap());
        let desk = Desk {
            card,
            mood: Mood::Answers,
            summaries: Summaries::Good,
            sent: Vec::new(),
            asked: Vec::new(),
            notices: Vec::new(),
            announcement: None,
        };
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        Played { _folder: folder, log, session, engine, desk, now, restarts: 0 }
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

    pub(crate) fn append(&mut self, draft: Draft) -> Entry {
        self.now = self.now.after(Duration::from_secs(1));
        let now = self.now;
        self.session().append(draft, now).unwrap()
    }

    pub(crate) fn say(&mut self, words: &str) -> Entry {
        self.append(Draft::user(Origin::Person, &format!("[{}]", Block::text(words).raw())))
    }

    /// The model calls a tool, and the tool returns a text.
    pub(crate) fn tool(&mut self, id: &str, name: &str, returns: &str) -> Entry {
        let call = format!(
            r#"[{{"type":"tool_use","id":"{id}","name":"{name}","input":{{"file_path":"/src/{id}.rs"}}}}]"#
        );
        let response = ResponseId::from(format!("msg_of_{id}").as_str());
        let model = self.desk.card.model.clone();
        self.append(Draft::assistant(Some(&response), Some(&model), &call));
        let mut text = String::new();
        escape_into(&mut text, returns);
        let result = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{text}}}]"#);
        self.append(Draft::user(Origin::Tool, &result))
    }

    /// Sends a request and appends what came back.
    pub(crate) fn turn(&mut self) -> Result<Sent, EngineError> {
        self.now = self.now.after(Duration::from_secs(1));
        let Played { session, engine, desk, now, .. } = self;
        let sent = session.as_mut().unwrap().send(engine, *now, desk)?;
        let answered = &sent.answered;
        let blocks: Vec<&str> = answered.blocks.iter().map(|block| block.raw().as_str()).collect();
        let content = format!("[{}]", blocks.join(","));
        self.append(Draft::assistant(Some(&answered.response), Some(&answered.model), &content));
        self.append(Draft::response(&ResponseGot {
            response: answered.response.clone(),
            source: Source::main(),
            model: answered.model.clone(),
            usage: answered.usage.clone(),
            stop_reason: answered.stop_reason.clone(),
            cost: None,
            cache_break: None,
        }));
        Ok(sent)
    }

    pub(crate) fn compact(&mut self, order: Order) -> Compacted {
        self.now = self.now.after(Duration::from_secs(1));
        let Played { session, engine, desk, now, .. } = self;
        session.as_mut().unwrap().compact(order, engine, *now, desk).unwrap()
    }

    /// Takes the last compaction back.
    pub(crate) fn uncompact(&mut self) -> Result<(), EngineError> {
        self.session().sync().unwrap();
        let whole = self.whole();
        let Played { session, engine, now, .. } = self;
        session.as_mut().unwrap().uncompact(engine, &whole, *now).map(|_| ())
    }

    /// All entries of the log, read from the disk.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let branch = Reader::open(&self.log).unwrap().whole_branch().unwrap();
        assert!(branch.problems.is_empty(), "{:?}", branch.problems);
        branch.entries
    }

    /// The view of the whole log.
    pub(crate) fn whole(&self) -> View {
        View::of(self.view().lens().clone(), self.entries())
    }

    /// The process is killed, and the session resumed from its log.
    pub(crate) fn restart(&mut self) {
        self.restarts += 1;
        let session = self.session.take().unwrap();
        self.session = Some(session.reopen(IdSource::seeded(self.restarts)).unwrap());
        assert!(self.session().problems().is_empty());
    }

    pub(crate) fn boundaries(&self) -> usize {
        self.entries().iter().filter(|entry| matches!(entry.body, Body::Boundary(_))).count()
    }
}

/// A compaction by hand.
pub(crate) fn by_hand(reach: Reach, only: Option<How>) -> Order {
    Order {
        trigger: Trigger::Manual,
        reach,
        source: Source::main(),
        instructions: None,
        hook_instructions: None,
        notes: None,
        only: only.map(|how| vec![how]),
        is_attended: true,
        world: World::default(),
        standing: Default::default(),
    }
}

/// So many bytes of text that no condenser shortens.
pub(crate) fn prose(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 60);
    let mut number = 7_u64;
    while text.len() < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("fn part_{:x}() -> u32 {{ {} }}\n", number >> 40, number >> 50));
    }
    text
}
