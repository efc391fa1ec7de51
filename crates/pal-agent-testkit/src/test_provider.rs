//! A provider inside of the test: the simulator behind a socket, and everything that it was asked.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pal_model::{ModelCatalog, Role};
use pal_sim::{
    ExtractiveModel, FaultPlan, ModelOutput, ModelPrompt, OutputBlock, ReplyPace, ScriptedModel, SimSettings,
    SimulatedModel, SimulatedProvider, StopOverride,
};
use pal_sim_server::{ClockSpeed, ServerNotice, SimServerOptions, serve};
use pal_wire::Dialect;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// Words by which a request for a summary is known.
const SUMMARY: &str = "Your task is to write a summary of";

/// A request that a model was asked.
#[derive(Clone)]
pub struct ReceivedRequest {
    /// Arrival in milliseconds since the epoch.
    pub at: i64,
    /// It asks for a summary and is not part of the conversation.
    pub is_summary: bool,
    /// Tools and system blocks, without marks.
    pub head: Vec<Arc<str>>,
    /// The blocks of the messages with whose they are, without marks.
    pub blocks: Vec<(Role, Arc<str>)>,
    /// Maximum tokens of the answer.
    pub max_tokens: u64,
}

impl ReceivedRequest {
    /// All blocks of the messages, one a line.
    pub fn text(&self) -> String {
        self.blocks.iter().map(|(_, block)| format!("{block}\n")).collect()
    }

    /// First difference to the earlier request; none if it repeats it.
    pub fn departs_from(&self, earlier: &ReceivedRequest) -> Option<String> {
        if self.head != earlier.head {
            return Some(String::from("tools or system"));
        }
        let at = (0..earlier.blocks.len()).find(|at| self.blocks.get(*at) != Some(&earlier.blocks[*at]))?;
        let short = |block: Option<&(Role, Arc<str>)>| {
            block.map(|(role, text)| format!("{role:?} {}", text.chars().take(300).collect::<String>()))
        };
        let (one, other) = (short(earlier.blocks.get(at)), short(self.blocks.get(at)));
        Some(format!("block {at} of {}:\n  {one:?}\n  {other:?}", earlier.blocks.len()))
    }
}

/// Everything that came.
#[derive(Default)]
pub struct ReceivedTraffic {
    /// Requests to models, in order.
    pub asked: Vec<ReceivedRequest>,
    /// Answers that were none: status and body.
    pub refused: Vec<(u16, String)>,
    /// Blocks are kept once, as every request repeats them.
    kept: HashMap<u64, Arc<str>>,
}

impl ReceivedTraffic {
    fn keep(&mut self, raw: &str) -> Arc<str> {
        let raw = without_mark(raw);
        let mut hasher = DefaultHasher::new();
        raw.hash(&mut hasher);
        Arc::clone(self.kept.entry(hasher.finish()).or_insert_with(|| Arc::from(raw)))
    }

    /// The requests of the conversation, without those for summaries, as they came: what the provider clears is in them.
    pub fn conversation(&mut self, record: &Path) -> Vec<ReceivedRequest> {
        let files = std::fs::read_dir(record).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|file| file.extension().unwrap() == "json").collect();
        files.sort();
        let asked = files.iter().map(|file| self.sent(file));
        asked.filter(|asked| !asked.is_summary).collect()
    }

    fn sent(&mut self, file: &Path) -> ReceivedRequest {
        let at = since_epoch(file.metadata().unwrap().modified().unwrap());
        let body = std::fs::read_to_string(file).unwrap();
        let sent: RequestBody<'_> = serde_json::from_str(&body).unwrap();
        let head = sent.tools.iter().chain(&sent.system).map(|raw| self.keep(raw.get())).collect();
        let blocks = sent.messages.iter().flat_map(|message| {
            message.content.iter().map(|raw| (message.role, raw.get())).collect::<Vec<_>>()
        });
        let blocks: Vec<_> = blocks.map(|(role, raw)| (role.into(), self.keep(raw))).collect();
        let is_summary = blocks.last().is_some_and(|(_, raw)| raw.contains(SUMMARY));
        ReceivedRequest { at, is_summary, head, blocks, max_tokens: sent.max_tokens }
    }
}

/// The body of a request.
#[derive(Deserialize)]
struct RequestBody<'a> {
    max_tokens: u64,
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    system: Vec<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<RequestMessage<'a>>,
}

#[derive(Deserialize)]
struct RequestMessage<'a> {
    role: RequestRole,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RequestRole {
    User,
    Assistant,
    System,
}

impl From<RequestRole> for Role {
    fn from(role: RequestRole) -> Role {
        match role {
            RequestRole::User => Role::User,
            RequestRole::Assistant => Role::Assistant,
            RequestRole::System => Role::System,
        }
    }
}

/// A block without its cache mark, which stands last; marks move from request to request.
fn without_mark(raw: &str) -> String {
    match raw.rfind(r#","cache_control":{"type":"ephemeral""#) {
        Some(at) if raw.ends_with("}}") && !raw[at + 18..raw.len() - 2].contains(['}', '[']) => {
            format!("{}}}", &raw[..at])
        }
        _ => raw.to_owned(),
    }
}

type SharedTraffic = Arc<(Mutex<ReceivedTraffic>, Condvar)>;

fn lock(shared: &SharedTraffic) -> MutexGuard<'_, ReceivedTraffic> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model that notes what it is asked before it answers.
struct RecordingModel {
    model: Box<dyn SimulatedModel>,
    heard: SharedTraffic,
}

impl SimulatedModel for RecordingModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let mut heard = lock(&self.heard);
        let head = ask.tools.iter().chain(&ask.system).map(|raw| heard.keep(raw)).collect();
        let mut blocks = Vec::new();
        for message in &ask.messages {
            for raw in &message.blocks {
                blocks.push((message.role, heard.keep(raw)));
            }
        }
        let is_summary = is_summary(ask);
        let asked = ReceivedRequest { at: now(), is_summary, head, blocks, max_tokens: ask.max_tokens };
        heard.asked.push(asked);
        self.heard.1.notify_all();
        drop(heard);
        self.model.answer(ask)
    }
}

/// Is true for requests that ask for a summary.
pub fn is_summary(ask: &ModelPrompt<'_>) -> bool {
    let last = ask.messages.iter().rev().find(|message| message.role == Role::User);
    ask.compaction.is_some()
        || last.is_some_and(|message| message.blocks.iter().any(|raw| raw.contains(SUMMARY)))
}

/// Current time in milliseconds since the epoch.
pub fn now() -> i64 {
    since_epoch(SystemTime::now())
}

fn since_epoch(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// A model made of a function.
pub struct FunctionModel<F>(pub F);

impl<F: FnMut(&ModelPrompt<'_>) -> ModelOutput + Send> SimulatedModel for FunctionModel<F> {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        (self.0)(ask)
    }
}

/// An answer of words.
pub fn says(text: &str) -> ModelOutput {
    ModelOutput { blocks: vec![OutputBlock::Text(text.to_owned())], stop: None }
}

/// An answer that calls tools.
pub fn calls(text: &str, tools: &[(&str, Value)]) -> ModelOutput {
    let mut answer = says(text);
    answer.blocks.extend(tools.iter().map(|(name, input)| OutputBlock::ToolUse {
        id: None,
        name: (*name).to_owned(),
        input: pal_model::SharedText::from(input.to_string()),
    }));
    answer
}

/// The same answer, cut off at its limit.
pub fn cut_off(answer: ModelOutput) -> ModelOutput {
    ModelOutput { stop: Some(StopOverride::MaxTokens), ..answer }
}

/// Options of a test provider.
pub struct ProviderSetup {
    /// The model.
    pub model: Box<dyn SimulatedModel>,
    /// Fault plan; empty for none.
    pub faults: String,
    /// Seed of ids and random faults.
    pub seed: u64,
    /// Timing of answers.
    pub pace: ReplyPace,
    /// A table of models on top of the shipped one.
    pub cards: String,
    /// Directory that keeps every request.
    pub record: Option<PathBuf>,
    /// Dialect that the agent speaks.
    pub dialect: Dialect,
    /// Real window of the server, if its cards promise more.
    pub window: Option<u64>,
}

impl ProviderSetup {
    /// A provider with this model, without faults and delays.
    pub fn of(model: impl SimulatedModel + 'static) -> ProviderSetup {
        let (faults, cards) = (String::new(), String::new());
        ProviderSetup {
            model: Box::new(model),
            faults,
            seed: 0,
            pace: ReplyPace::none(),
            cards,
            record: None,
            dialect: Dialect::Messages,
            window: None,
        }
    }

    /// Answers one after the other, and the last for ever; a request that comes again hears the same.
    pub fn script(toml: &str) -> ProviderSetup {
        let mut script = ScriptedModel::parse(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
        ProviderSetup::of(FunctionModel(move |ask: &ModelPrompt<'_>| match is_summary(ask) {
            true => ExtractiveModel.answer(ask),
            false => script.answer(ask),
        }))
    }

    /// Answers that a function gives; `at` counts from 0.
    pub fn answers(
        mut answer: impl FnMut(usize, &ModelPrompt<'_>) -> ModelOutput + Send + 'static,
    ) -> ProviderSetup {
        let mut at = 0;
        ProviderSetup::of(FunctionModel(move |ask: &ModelPrompt<'_>| {
            at += 1;
            answer(at - 1, ask)
        }))
    }
}

/// A provider on a port of its own; gone when dropped.
pub struct TestProvider {
    /// Base URL.
    pub address: String,
    /// Dialect that the agent speaks.
    pub dialect: Dialect,
    heard: SharedTraffic,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestProvider {
    /// Starts the server on its own thread.
    pub fn start(made: ProviderSetup) -> TestProvider {
        let (heard, dialect) = (SharedTraffic::default(), made.dialect);
        let cards = ModelCatalog::built_in().with_overrides(&made.cards).unwrap();
        let settings = SimSettings {
            cards: made.window.map_or(cards.clone(), |window| cards.with_window(window)),
            seed: made.seed,
            pace: made.pace,
            faults: FaultPlan::parse(&made.faults).unwrap(),
            ..SimSettings::plain()
        };
        let noting = RecordingModel { model: made.model, heard: Arc::clone(&heard) };
        let simulator = SimulatedProvider::new(settings, Box::new(noting));
        let told = Arc::clone(&heard);
        let notice = move |notice: ServerNotice<'_>| {
            if let ServerNotice::Other { reply, .. } = notice
                && reply.status >= 400
            {
                let body = String::from_utf8_lossy(&reply.body()).into_owned();
                lock(&told).refused.push((reply.status, body));
            }
        };
        let options = SimServerOptions {
            speed: ClockSpeed::Real,
            record: made.record,
            announces: false,
            notice: Box::new(notice),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, listening) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                let _ = serve(listener, simulator, options, async {
                    let _ = stopped.await;
                })
                .await;
            });
        });
        let address = format!("http://{}", listening.recv().unwrap());
        TestProvider { address, dialect, heard, stop: Some(stop), thread: Some(thread) }
    }

    /// Locks everything that was received so far.
    pub fn heard(&self) -> MutexGuard<'_, ReceivedTraffic> {
        lock(&self.heard)
    }

    /// Waits until something was heard that fits; whether it came in time.
    pub fn wait_until(&self, patience: Duration, fits: impl Fn(&ReceivedTraffic) -> bool) -> bool {
        let deadline = Instant::now() + patience;
        let mut heard = lock(&self.heard);
        loop {
            if fits(&heard) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            heard = self.heard.1.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for TestProvider {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
