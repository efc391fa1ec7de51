//! Several questions to one session: what they share is written once and read by all others.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pal_context::Standing;
use pal_model::{Card, Cards, Draft, Entry, IdSource, Origin, RequestSent, Source, Text, Timestamp, Usage};
use pal_provider::{Client, Endpoint, Key, Policy};
use pal_sim::{Extractive, Pace, Settings, Simulator};
use pal_sim_server::{Notice, Options, Speed, serve};
use pal_view::{Estimator, Lens, RenderOptions, Scope, View};
use pal_wire::{Dialect, messages_call_with};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::program::Home;

/// A simulator that takes its time before it answers, and what it counted for each request.
struct Slow {
    runtime: Runtime,
    address: String,
    usages: Arc<Mutex<Vec<Usage>>>,
}

impl Slow {
    fn start(record: Option<PathBuf>) -> Slow {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let pace = Pace { start: Duration::from_millis(400), ..Pace::none() };
        let simulator = Simulator::new(Settings { pace, ..Settings::plain() }, Box::new(Extractive));
        let usages: Arc<Mutex<Vec<Usage>>> = Arc::default();
        let heard = Arc::clone(&usages);
        let notice = Box::new(move |notice: Notice<'_>| {
            if let Notice::Exchange(exchange) = notice {
                heard.lock().unwrap().push(exchange.usage.clone());
            }
        });
        let options = Options { speed: Speed::Real, record, notice };
        runtime.spawn(serve(listener, simulator, options, std::future::pending()));
        Slow { runtime, address, usages }
    }

    fn usages(&self) -> Vec<Usage> {
        std::mem::take(&mut *self.usages.lock().unwrap())
    }
}

fn card() -> Card {
    Cards::shipped().find("claude-opus-5-5").card
}

/// A session of more than 50 000 tokens that was asked and answered.
fn session() -> Vec<Entry> {
    let mut ids = IdSource::seeded(3);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<Entry> = Vec::new();
    let mut push = |draft: Draft| {
        let line = draft.into_line(ids.next_id(at), entries.last().map(|entry| entry.id), at, None);
        entries.push(Entry::parse(Text::from(line)).unwrap());
        entries.last().unwrap().id
    };
    for round in 0..12 {
        let lines = (0..400).map(|line| format!("Line {line} of report {round} says what it says. "));
        let asked = serde_json::Value::from(lines.collect::<String>()).to_string();
        let last = push(Draft::user(Origin::Person, &asked));
        push(Draft::request(&RequestSent::plain(Source::main(), Some(last), card().model)));
        push(Draft::assistant(Some(&format!("msg_{round}").as_str().into()), None, r#""I have read it.""#));
    }
    entries
}

const QUESTIONS: [&str; 6] =
    ["What is left?", "Which tests fail?", "Who wrote it?", "What is new?", "What broke?", "Is it done?"];

fn as_lines(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{}\n", entry.line)).collect()
}

#[test]
fn of_six_questions_the_first_writes_and_the_others_read() {
    let home = Home::new();
    let slow = Slow::start(None);
    let log = home.file("log.jsonl", as_lines(&session()));
    let variables = [("ANTHROPIC_BASE_URL", slow.address.as_str())];
    let said = home
        .run_with_environment(&[&["ask", "--json", "--session", &log][..], &QUESTIONS].concat(), &variables);
    assert_eq!(said.code, 0, "{}", said.err);
    let answers: Vec<serde_json::Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked: Vec<&str> = answers.iter().map(|answer| answer["question"].as_str().unwrap()).collect();
    assert_eq!(asked, QUESTIONS, "answers stand in the order of the questions");
    let usages = slow.usages();
    let written = usages[0].cache_creation_input_tokens;
    assert!(written >= 50_000 && usages[0].cache_read_input_tokens == 0, "{:?}", usages[0]);
    for usage in &usages[1..] {
        let share = usage.cache_read_input_tokens as f64 / written as f64;
        println!("{:.2} % of what is shared was read", share * 100.0);
        assert!(share >= 0.98 && usage.cache_creation_input_tokens == 0, "{usage:?}");
    }
    // One more, a little later: it is a fork as well and writes nothing.
    let single = home.run_with_environment(&["ask", "--session", &log, "And this?"], &variables);
    assert_eq!(single.code, 0, "{}", single.err);
    let usage = slow.usages().remove(0);
    assert_eq!((usage.cache_read_input_tokens, usage.cache_creation_input_tokens), (written, 0));
    assert!(single.err.contains(" read, 0 written"), "{}", single.err);
}

#[test]
fn a_question_carries_what_the_sessions_requests_carry() {
    let home = Home::new();
    let record = home.path().join("record");
    let slow = Slow::start(Some(record.clone()));
    let mut entries = session();
    let last = entries.last().unwrap();
    let mut request = RequestSent::plain(Source::main(), Some(last.id), card().model);
    request.lifetime = Some("1h".into());
    request.members = [("output_config".into(), String::from(r#"{"effort":"low"}"#))].into();
    let id = IdSource::seeded(9).next_id(last.at);
    let line = Draft::request(&request).into_line(id, Some(last.id), last.at, None);
    entries.push(Entry::parse(Text::from(line)).unwrap());
    let log = home.file("log.jsonl", as_lines(&entries));
    let variables = [("ANTHROPIC_BASE_URL", slow.address.as_str())];
    let sent = |model: &str| {
        let arguments = ["ask", "--session", &log, "--model", model, "What is left?"];
        let said = home.run_with_environment(&arguments, &variables);
        assert_eq!(said.code, 0, "{}", said.err);
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&record).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            std::fs::remove_file(file).unwrap();
            text
        });
        texts.collect::<String>()
    };
    let body = sent("claude-opus-5-5");
    assert!(body.contains("\"effort\":\"low\"") && body.contains("\"ttl\":\"1h\""), "{body:.2000}");
    let body = sent("claude-sonnet-5-5");
    assert!(!body.contains("effort") && !body.contains("\"1h\""), "what was meant for another model");
}

#[test]
fn sent_at_once_without_waiting_they_would_all_write() {
    let slow = Slow::start(None);
    let card = card();
    let lens =
        Lens { estimator: Estimator::shipped(card.generation), card: card.clone(), scope: Scope::Current };
    let view = View::of(lens, session());
    let endpoint = Endpoint::new(Dialect::Messages, &slow.address, Some(Key::api("any"))).unwrap();
    let client = Client::new(endpoint, Policy::patient()).unwrap();
    let options = RenderOptions { max_tokens: 500, stream: true, spell_out_unseen: false };
    let betas: Vec<_> = pal_wire::betas(&card).into_iter().map(smol_str::SmolStr::new_static).collect();
    slow.runtime.block_on(async {
        let mut asked = tokio::task::JoinSet::new();
        for question in QUESTIONS {
            let fork = Standing::default().fork(&view, options, question);
            let (client, call) = (client.clone(), messages_call_with(&betas, fork.parts(), true));
            asked.spawn(async move { client.whole(call).await });
        }
        while let Some(answer) = asked.join_next().await {
            answer.unwrap().unwrap();
        }
    });
    let usages = slow.usages();
    assert!(usages.len() == 6 && usages.iter().all(|usage| usage.cache_creation_input_tokens >= 50_000));
}

#[test]
fn answers_are_printed_under_their_questions_and_added_up() {
    let home = Home::new();
    let said = home.run(&["ask", "--provider", "sim", "Is anybody there?", "Who\nare you?"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let (first, second) =
        (said.out.find("1. Is anybody there?\n\n").unwrap(), said.out.find("\n\n2. Who").unwrap());
    assert!(first == 0 && second > first, "{}", said.out);
    for told in ["1. claude-opus-5-5: ", "2. claude-opus-5-5: ", "2 answers: 0 read, 0 written, "] {
        assert!(said.err.contains(told), "{}", said.err);
    }
    assert!(home.written().is_empty(), "nothing is kept");
    let nothing = home.run(&["ask", "--provider", "sim", "Who?", " "]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("there is nothing to ask"), "{}", nothing.err);
}

#[test]
fn a_question_that_fails_keeps_no_other_from_its_answer() {
    let home = Home::new();
    let simulator = crate::simulator::Running::start(&home, &["--faults", "400@1"]);
    let variables = [("ANTHROPIC_BASE_URL", simulator.address.as_str())];
    let log = home.file("log.jsonl", as_lines(&session()));
    let said = home.run_with_environment(&["ask", "--json", "--session", &log, "one", "two"], &variables);
    assert_eq!(said.code, 1);
    let lines: Vec<serde_json::Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["error"].is_string() && lines[1]["content"].is_array(), "{}", said.out);
}
