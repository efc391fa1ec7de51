//! Keeps the provider's cache warm while the conversation pauses (§10.5): one thread that waits until a ping would be due,
//! has it judged, and sends it.
//!
//! It works on the conversation as it was when the pause began; nothing of a ping is ever shown to the model. The pause ends
//! when the next request is about to leave, which waits for nothing: a ping that is under way is given up. What pings took is
//! in the books of background work at once, and in the log before that request is decided upon.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pal_engine::{Engine, Pinging, Session};
use pal_model::{Card, Source, Timestamp};
use pal_process::Cancel;

use crate::allowance::Allowance;
use crate::clock::Clock;
use crate::event::Exchanged;
use crate::line::Line;
use crate::options::Options;
use crate::timing::Timed;
use crate::voice::Voice;

/// Who keeps the cache warm.
pub(crate) struct Warming {
    pauses: Sender<Option<Pause>>,
    /// Of the pause that is on.
    cancel: Option<Cancel>,
    sent: Arc<Mutex<Vec<Pinged>>>,
}

/// A ping that was answered, and when it left.
pub(crate) struct Pinged {
    pub(crate) at: Timestamp,
    pub(crate) exchanged: Box<Exchanged>,
}

/// A pause.
struct Pause {
    pinging: Pinging,
    cancel: Cancel,
}

/// The thread.
struct Warmer {
    line: Arc<Line>,
    card: Card,
    clock: Clock,
    allowance: Arc<Allowance>,
    sent: Arc<Mutex<Vec<Pinged>>>,
}

impl Warming {
    /// Begins to watch over a session, if somebody is there and its policy goes by price. Agents that are sent do not pause.
    pub(crate) fn begin(options: &Options, engine: &Engine, allowance: Arc<Allowance>) -> Option<Warming> {
        let pings = engine.policy.thrift.is_some_and(|thrift| thrift.pings);
        if !pings || !engine.is_attended || options.agent.is_some() {
            return None;
        }
        let sent = Arc::default();
        let warmer = Warmer {
            line: Arc::clone(&options.line),
            card: options.lens.card.clone(),
            clock: options.clock,
            allowance,
            sent: Arc::clone(&sent),
        };
        let pauses = warmer.start().inspect_err(|error| tracing::warn!(%error, "no pings")).ok()?;
        Some(Warming { pauses, cancel: None, sent })
    }

    /// What was asked is answered, and what comes next may take a while.
    pub(crate) fn pause(&mut self, session: &Session, engine: &Engine, now: Timestamp) {
        if self.cancel.is_some() {
            return;
        }
        if let Some(pinging) = session.pinging(engine, now) {
            let cancel = Cancel::new();
            self.cancel = Some(cancel.clone());
            let _ = self.pauses.send(Some(Pause { pinging, cancel }));
        }
    }

    /// The conversation goes on, or is another one, or has ended. What was sent meanwhile.
    pub(crate) fn go_on(&mut self) -> Vec<Pinged> {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
            let _ = self.pauses.send(None);
        }
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Warmer {
    fn start(self) -> io::Result<Sender<Option<Pause>>> {
        let (sender, pauses) = channel();
        std::thread::Builder::new().name("pal-ping".into()).spawn(move || self.watch(&pauses))?;
        Ok(sender)
    }

    /// Waits for pauses, and for what is due in them, until nobody is there any more.
    fn watch(&self, pauses: &Receiver<Option<Pause>>) {
        let mut pause: Option<Pause> = None;
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

    /// Sends a ping if that is worth it and may be done; the pause, if there may be another one in it.
    fn ping(&self, mut pause: Pause) -> Option<Pause> {
        if pause.cancel.is_cancelled() {
            return None;
        }
        let (source, at) = (Source::ping(), self.clock.now());
        let (ping, request) = pause.pinging.ping(at);
        tracing::debug!(reason = ping.reason, "ping");
        let request = request?;
        if let Err(why) = self.allowance.may_begin(&source, at) {
            tracing::info!(why, "no ping");
            return None;
        }
        let dialect = self.line.endpoint().dialect();
        let call = Voice::new(&self.card, dialect, None).call(&request, pause.pinging.betas());
        let timed = Timed::begin(source.clone(), &self.card, dialect, request.max_tokens());
        let (exchange, exchanged) = timed.ask_aside(&self.line, call, &self.card, &pause.cancel);
        if let Some(usage) = exchange.usage() {
            self.allowance.took(&source, usage, exchanged.cost, self.clock.now());
            self.allowance.ended(&source, &[], self.clock.now());
        }
        let got = exchanged.got()?;
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(Pinged { at, exchanged });
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

    use pal_context::thrifty::Thrift;
    use pal_engine::{CacheSettings, Inputs};
    use pal_model::{Cards, Draft, IdSource, Origin, RequestSent, ResponseGot, Usage};
    use pal_provider::{Endpoint, Policy};
    use pal_view::{Estimator, Lens, Limits, Scope, WindowSettings};
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

    /// A provider that is asked so often and answers, or not; what it was asked comes out.
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

    fn engine(card: &Card) -> Engine {
        Engine {
            policy: pal_context::Policy::thrifty(Thrift { pings: true, ..Thrift::STANDARD }),
            limits: Limits::new(card, &WindowSettings::STANDARD),
            place: pal_context::Place { directory: "s".into(), transcript: "s/log.jsonl".into() },
            is_attended: true,
            ways: None,
            max_tokens: 8_000,
            cache: CacheSettings::default(),
            inputs: Inputs::default(),
        }
    }

    /// A session that has often paused for seven minutes and whose last request left so many seconds ago.
    fn rested(folder: &Path, card: &Card, seconds: i64) -> Session {
        let lens = Lens {
            estimator: Estimator::shipped(card.generation),
            card: card.clone(),
            scope: Scope::Current,
        };
        let mut session = Session::create(&folder.join("log.jsonl"), lens, IdSource::seeded(1)).unwrap();
        let now = Clock::default().now().milliseconds() - seconds * 1_000;
        for number in (0..40).rev() {
            let at = Timestamp::from_milliseconds(now - number * 420_000);
            session.append(Draft::user(Origin::Person, r#""go on""#), at).unwrap();
            let request = RequestSent {
                lifetime: Some(SmolStr::new_static("5m")),
                ..RequestSent::plain(Source::main(), session.view().newest(), card.model.clone())
            };
            session.append(Draft::request(&request), at).unwrap();
            let response = format!("m{number}").as_str().into();
            let said = r#"[{"type":"text","text":"done"}]"#;
            session.append(Draft::assistant(Some(&response), Some(&card.model), said), at).unwrap();
            let usage = Usage { cache_read_input_tokens: 90_000, output_tokens: 5, ..Usage::default() };
            let got = ResponseGot {
                response,
                source: Source::main(),
                model: card.model.clone(),
                usage,
                stop_reason: None,
                cost: Some(0.5),
                cache_break: None,
            };
            session.append(Draft::response(&got), at).unwrap();
        }
        session
    }

    fn warming(home: &Path, address: &str, card: &Card, tokens_per_day: u64) -> Warming {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Endpoint::new(Dialect::Messages, address, None).unwrap();
        let line = Arc::new(Line::new(runtime, endpoint, Policy::patient()).unwrap());
        let allowance = Arc::new(Allowance::new(home, tokens_per_day, "s", Arc::clone(&line)));
        let sent = Arc::default();
        let (card, clock) = (card.clone(), Clock::default());
        let warmer = Warmer { line, card, clock, allowance, sent: Arc::clone(&sent) };
        Warming { pauses: warmer.start().unwrap(), cancel: None, sent }
    }

    fn card() -> Card {
        Cards::shipped().find("claude-opus-4-6").card
    }

    #[test]
    fn a_ping_is_sent_when_it_is_due_and_is_in_the_books_and_in_the_log() {
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
        let sent = warming.go_on();
        let [Pinged { at, exchanged }] = sent.as_slice() else { panic!("{}", sent.len()) };
        session.append_ping(*at, &exchanged.got().unwrap()).unwrap();
        let pings = session.view().state().pings;
        assert_eq!((pings.sent, pings.in_pause), (1, 1));
        assert!(pings.cost > 0.0 && session.view().cache_touched_at() == Some(*at));
        let books = crate::background(folder.path()).unwrap();
        let [run] = books.runs.as_slice() else { panic!("{books:?}") };
        assert_eq!((run.source.as_str(), run.requests, run.cached, run.is_over), ("ping", 1, 90_000, true));
    }

    #[test]
    fn whoever_goes_on_waits_for_no_ping() {
        let folder = tempfile::tempdir().unwrap();
        let (address, asked) = provider(false);
        let card = card();
        let session = rested(folder.path(), &card, 275);
        let mut warming = warming(folder.path(), &address, &card, 1_000_000);
        warming.pause(&session, &engine(&card), Clock::default().now());
        asked.recv_timeout(Duration::from_secs(20)).unwrap();
        let begun = Instant::now();
        assert!(warming.go_on().is_empty(), "nothing came of it");
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn no_ping_beyond_what_background_work_may_take_nor_where_nobody_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (address, asked) = provider(true);
        let card = card();
        let session = rested(folder.path(), &card, 275);
        let mut used_up = warming(folder.path(), &address, &card, 0);
        used_up.pause(&session, &engine(&card), Clock::default().now());
        let mut unattended = warming(folder.path(), &address, &card, 1_000_000);
        let engine = Engine { is_attended: false, ..engine(&card) };
        unattended.pause(&session, &engine, Clock::default().now());
        assert!(asked.recv_timeout(Duration::from_secs(2)).is_err());
    }
}
