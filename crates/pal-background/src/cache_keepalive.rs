//! Cache keepalive (§10.5): one thread that waits until a keepalive request is due in a pause, judges it and
//! sends it.
//!
//! It works on a snapshot of the conversation, and the model never sees the requests. The next request ends the
//! pause at once and cancels one under way. Usage is recorded in the background ledger immediately and in the
//! log before the next request.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pal_engine::{KeepalivePlan, Session, SessionConfig};
use pal_events::ExchangeReport;
use pal_model::{ModelCard, RequestSource, Timestamp};
use pal_process::CancelToken;
use pal_provider::{ProviderConnection, RequestEncoder};

use crate::background_budget::BackgroundBudget;
use crate::background_config::BackgroundConfig;
use crate::clock::Clock;
use crate::timed_exchange::TimedExchange;

/// Keepalive of the provider's cache.
pub struct CacheKeepalive {
    pauses: Sender<Option<KeepalivePause>>,
    /// Cancels the current pause.
    cancel: Option<CancelToken>,
    sent: Arc<Mutex<Vec<SentPing>>>,
}

/// An answered keepalive request and its time.
pub struct SentPing {
    /// Time of the request.
    pub at: Timestamp,
    /// Report of the exchange.
    pub exchanged: Box<ExchangeReport>,
}

/// A pause.
struct KeepalivePause {
    pinging: KeepalivePlan,
    cancel: CancelToken,
}

/// The keepalive thread.
struct KeepaliveThread {
    line: Arc<ProviderConnection>,
    card: ModelCard,
    clock: Clock,
    allowance: Arc<BackgroundBudget>,
    sent: Arc<Mutex<Vec<SentPing>>>,
    on_sent: KeepaliveListener,
}

/// Callback for each answered keepalive request.
pub type KeepaliveListener = Arc<dyn Fn() + Send + Sync>;

impl CacheKeepalive {
    /// Starts the keepalive of an attended session with a cost-aware policy.
    pub fn begin(
        config: &BackgroundConfig,
        engine: &SessionConfig,
        allowance: Arc<BackgroundBudget>,
        on_sent: KeepaliveListener,
    ) -> Option<CacheKeepalive> {
        let pings = engine.policy.cost_aware.is_some_and(|thrift| thrift.cache_keepalive);
        if !pings || !engine.is_attended {
            return None;
        }
        let sent = Arc::default();
        let warmer = KeepaliveThread {
            line: Arc::clone(&config.model.connection),
            card: config.model.lens.card.clone(),
            clock: config.clock,
            allowance,
            sent: Arc::clone(&sent),
            on_sent,
        };
        let pauses = warmer.start().inspect_err(|error| tracing::warn!(%error, "no pings")).ok()?;
        Some(CacheKeepalive { pauses, cancel: None, sent })
    }

    /// Starts a pause.
    pub fn pause(&mut self, session: &Session, engine: &SessionConfig, now: Timestamp) {
        if self.cancel.is_some() {
            return;
        }
        if let Some(pinging) = session.keepalive_plan(engine, now) {
            let cancel = CancelToken::new();
            self.cancel = Some(cancel.clone());
            let _ = self.pauses.send(Some(KeepalivePause { pinging, cancel }));
        }
    }

    /// Ends the pause and returns the requests sent in it.
    pub fn end_pause(&mut self) -> Vec<SentPing> {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
            let _ = self.pauses.send(None);
        }
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeepaliveThread {
    fn start(self) -> io::Result<Sender<Option<KeepalivePause>>> {
        let (sender, pauses) = channel();
        std::thread::Builder::new().name("pal-ping".into()).spawn(move || self.watch(&pauses))?;
        Ok(sender)
    }

    /// Waits for pauses and due requests until the session ends.
    fn watch(&self, pauses: &Receiver<Option<KeepalivePause>>) {
        let mut pause: Option<KeepalivePause> = None;
        loop {
            let due = pause.as_ref().and_then(|pause| pause.pinging.due());
            let next = match due {
                Some(due) => pauses.recv_timeout(self.until(due)),
                None => pauses.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            pause = match next {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) => pause.and_then(|pause| self.ping(pause)),
                Err(RecvTimeoutError::Disconnected) => return,
            };
        }
    }

    fn until(&self, due: Timestamp) -> Duration {
        let left = due.milliseconds() - self.clock.now().milliseconds();
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }

    /// Sends a keepalive request if worth it and allowed; returns the pause if another may follow.
    fn ping(&self, mut pause: KeepalivePause) -> Option<KeepalivePause> {
        if pause.cancel.is_cancelled() {
            return None;
        }
        let (source, at) = (RequestSource::keepalive(), self.clock.now());
        let (ping, request) = pause.pinging.ping(at);
        tracing::debug!(reason = ping.reason, "ping");
        let request = request?;
        if let Err(why) = self.allowance.may_begin(&source, at) {
            tracing::info!(why, "no ping");
            return None;
        }
        let dialect = self.line.endpoint().dialect();
        let mut encoder = RequestEncoder::new(&self.card, dialect, pause.pinging.cache_key());
        let call = encoder.encode(&request, pause.pinging.betas());
        let timed = TimedExchange::begin(source.clone(), &self.card, dialect, request.max_tokens());
        let (exchange, exchanged) = timed.ask_in_background(&self.line, call, &self.card, &pause.cancel);
        if let Some(usage) = exchange.usage() {
            self.allowance.record_usage(&source, usage, exchanged.cost, self.clock.now());
            self.allowance.ended(&source, &[], self.clock.now());
        }
        let got = exchanged.response_record()?;
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(SentPing { at, exchanged });
        (self.on_sent)();
        pause.pinging.sent(at, &got);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use pal_context::ContextPolicy;
    use pal_context::cost_aware::CostAwareSettings;
    use pal_model::{
        EntryDraft, IdSource, MessageOrigin, ModelCatalog, RequestRecord, ResponseRecord, Usage,
    };
    use pal_provider::{ClientPolicy, ProviderEndpoint};
    use pal_view::{Estimator, Lens, ViewScope, WindowLimits, WindowSettings};
    use pal_wire::Dialect;
    use smol_str::SmolStr;

    use super::*;

    const ANSWER: &str = concat!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_ping\",\"type\":\"message\",",
        "\"role\":\"assistant\",\"model\":\"claude-opus-4-6\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,",
        "\"usage\":{\"input_tokens\":30,\"cache_read_input_tokens\":90000,\"cache_creation_input_tokens\":0,\"output_tokens\":1}}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},",
        "\"usage\":{\"output_tokens\":1}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );

    /// A provider that answers or stays silent; yields the requests.
    fn provider(answers: bool) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (mut text, mut buffer) = (String::new(), [0; 65_536]);
                while !text.contains("Nothing is to be done yet") {
                    let read = stream.read(&mut buffer).unwrap();
                    text.push_str(&String::from_utf8_lossy(&buffer[..read]));
                }
                let _ = sender.send(text);
                match answers {
                    true => stream.write_all(ANSWER.as_bytes()).unwrap(),
                    false => silent.push(stream),
                }
            }
        });
        (address, asked)
    }

    fn engine(card: &ModelCard) -> SessionConfig {
        let settings = CostAwareSettings { cache_keepalive: true, ..CostAwareSettings::STANDARD };
        let limits = WindowLimits::new(card, &WindowSettings::STANDARD);
        SessionConfig::for_log(Path::new("s/log.jsonl"), ContextPolicy::cost_aware(settings), limits, 8_000)
    }

    /// A session with many pauses of seven minutes, whose last request left `seconds` ago.
    fn rested(folder: &Path, card: &ModelCard, seconds: i64) -> Session {
        let lens = Lens {
            estimator: Estimator::shipped(card.generation),
            card: card.clone(),
            scope: ViewScope::Current,
        };
        let mut session = Session::create(&folder.join("log.jsonl"), lens, IdSource::seeded(1)).unwrap();
        let now = Clock::default().now().milliseconds() - seconds * 1_000;
        for number in (0..40).rev() {
            let at = Timestamp::from_milliseconds(now - number * 420_000);
            session.append(EntryDraft::user(MessageOrigin::Person, r#""go on""#), at).unwrap();
            let request = RequestRecord {
                cache_ttl: Some(SmolStr::new_static("5m")),
                ..RequestRecord::new(RequestSource::main(), session.view().newest_id(), card.model.clone())
            };
            session.append(EntryDraft::request(&request), at).unwrap();
            let response = format!("m{number}").as_str().into();
            let said = r#"[{"type":"text","text":"done"}]"#;
            session.append(EntryDraft::assistant(Some(&response), Some(&card.model), said), at).unwrap();
            let usage = Usage { cache_read_input_tokens: 90_000, output_tokens: 5, ..Usage::default() };
            let got = ResponseRecord {
                response,
                source: RequestSource::main(),
                model: card.model.clone(),
                usage,
                stop_reason: None,
                cost: Some(0.5),
                cache_break: None,
            };
            session.append(EntryDraft::response(&got), at).unwrap();
        }
        session
    }

    fn warming(home: &Path, address: &str, card: &ModelCard, tokens_per_day: u64) -> CacheKeepalive {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = ProviderEndpoint::new(Dialect::Messages, address, None).unwrap();
        let line = Arc::new(ProviderConnection::new(runtime, endpoint, ClientPolicy::patient()).unwrap());
        let allowance = Arc::new(BackgroundBudget::new(home, tokens_per_day, "s", Arc::clone(&line)));
        let sent = Arc::default();
        let (card, clock) = (card.clone(), Clock::default());
        let warmer = KeepaliveThread {
            line,
            card,
            clock,
            allowance,
            sent: Arc::clone(&sent),
            on_sent: Arc::new(|| {}),
        };
        CacheKeepalive { pauses: warmer.start().unwrap(), cancel: None, sent }
    }

    fn card() -> ModelCard {
        ModelCatalog::built_in().find("claude-opus-4-6").card
    }

    #[test]
    fn a_due_keepalive_is_sent_and_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let (address, asked) = provider(true);
        let card = card();
        let mut session = rested(folder.path(), &card, 266);
        let engine = engine(&card);
        let mut warming = warming(folder.path(), &address, &card, 1_000_000);
        warming.pause(&session, &engine, Clock::default().now());
        assert!(asked.recv_timeout(Duration::from_millis(200)).is_err(), "it is not due yet");
        let body = asked.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(body.contains("\"max_tokens\":1,") && body.contains("go on"), "{body}");
        let until = Instant::now() + Duration::from_secs(20);
        while warming.sent.lock().unwrap().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let sent = warming.end_pause();
        let [SentPing { at, exchanged }] = sent.as_slice() else { panic!("{}", sent.len()) };
        session.append_ping(*at, &exchanged.response_record().unwrap()).unwrap();
        let pings = session.view().state().keepalive;
        assert_eq!((pings.sent, pings.in_pause), (1, 1));
        assert!(pings.cost > 0.0 && session.view().cache_touched_at() == Some(*at));
        let books = crate::read_background_ledger(folder.path()).unwrap();
        let [run] = books.runs.as_slice() else { panic!("{books:?}") };
        assert_eq!((run.source.as_str(), run.requests, run.cached, run.is_over), ("ping", 1, 90_000, true));
    }

    #[test]
    fn the_next_request_does_not_wait_for_a_keepalive() {
        let folder = tempfile::tempdir().unwrap();
        let (address, asked) = provider(false);
        let card = card();
        let session = rested(folder.path(), &card, 275);
        let mut warming = warming(folder.path(), &address, &card, 1_000_000);
        warming.pause(&session, &engine(&card), Clock::default().now());
        asked.recv_timeout(Duration::from_secs(20)).unwrap();
        let begun = Instant::now();
        assert!(warming.end_pause().is_empty(), "nothing came of it");
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn no_keepalive_without_budget_or_unattended() {
        let folder = tempfile::tempdir().unwrap();
        let (address, asked) = provider(true);
        let card = card();
        let session = rested(folder.path(), &card, 275);
        let mut used_up = warming(folder.path(), &address, &card, 0);
        used_up.pause(&session, &engine(&card), Clock::default().now());
        let mut unattended = warming(folder.path(), &address, &card, 1_000_000);
        let engine = SessionConfig { is_attended: false, ..engine(&card) };
        unattended.pause(&session, &engine, Clock::default().now());
        assert!(asked.recv_timeout(Duration::from_secs(2)).is_err());
    }
}
