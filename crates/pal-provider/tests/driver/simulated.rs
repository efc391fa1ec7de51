//! The table of outcomes again, with the simulator on the other side: its own faults, through a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pal_model::Parts;
use pal_provider::{Policy, Timeouts};
use pal_sim::{Answer, Ask, Faults, Model, Said, Settings, Simulator};
use pal_sim_server::{Options, Speed, serve};
use pal_wire::Call;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::faults::{Row, table};
use crate::matrix::{check, prove};
use crate::{call_with, client_with, follow, hasty};

/// What the model says: enough for many deltas.
const ALL: &str = "A palimpsest is a page that was scraped and written on again, and whose older text can still be \
                   read: every word that was ever said is there, under the words that are said now.";

/// A model that says one thing.
struct Constant;

impl Model for Constant {
    fn answer(&mut self, _: &Ask<'_>) -> Answer {
        Answer { blocks: vec![Said::Text(ALL.to_owned())], stop: None }
    }
}

/// A simulator behind a socket; it ends with this value.
struct Simulated {
    url: String,
    requests: Arc<AtomicUsize>,
    _stop: oneshot::Sender<()>,
}

impl Simulated {
    async fn start(faults: Faults) -> Simulated {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let simulator = Simulator::new(Settings { faults, ..Settings::plain() }, Box::new(Constant));
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let notice = Box::new(move |_: pal_sim_server::Notice<'_>| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let options = Options { speed: Speed::Virtual, record: None, notice };
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, simulator, options, async {
            let _ = stopped.await;
        }));
        Simulated { url, requests, _stop: stop }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn simulated_call(stream: bool) -> Call {
    let body = format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":500,"stream":{stream},"messages":[{{"role":"user","content":"What is it?"}}]}}"#
    );
    call_with(Parts::from(body), stream)
}

/// The plan that makes the simulator play a fault of the table; nothing if it knows no such fault.
fn plan(row: &Row) -> Option<String> {
    // Where a whole answer breaks is a number of bytes.
    let place = match (row.stream, row.after) {
        (true, false) => "before",
        (true, true) => "after",
        (false, _) => "40",
    };
    Some(match row.fault.as_str() {
        "none" => String::new(),
        "closed without a word" => "reset".to_owned(),
        "status 429" => "429=5ms".to_owned(),
        "status 529" => "529=5ms".to_owned(),
        "status 529 once" => "529=5ms@1".to_owned(),
        "status 502 with a web page" => "502".to_owned(),
        "prompt too long" => "too-long=210000/200000".to_owned(),
        "spend limit reached" => "spend-limit".to_owned(),
        "empty body" => "truncate=headers".to_owned(),
        "wrong content type" => "content-type=application/octet-stream".to_owned(),
        "closed" => format!("cut={place}"),
        "closed once" => format!("cut={place}@1"),
        "closed, of unknown length" => format!("truncate={place}"),
        "silence" => format!("silence={place}"),
        "error event" => format!("error=overloaded+{place}"),
        "malformed" => format!("malformed={place}"),
        "unknown events and pings" => "unknown".to_owned(),
        "an event twice" => "duplicate=message_start".to_owned(),
        "wrong usage" => "usage=null".to_owned(),
        "slow bytes" => "slow=1ms+1".to_owned(),
        fault => fault
            .strip_prefix("status ")
            .filter(|status| status.parse::<u16>().is_ok_and(|it| it >= 400))?
            .to_owned(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulators_faults_have_the_outcomes_that_the_documentation_says() {
    let rows: Vec<Row> = table().into_iter().filter(|row| plan(row).is_some()).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    prove(rows, run).await;
}

async fn run(row: Row) -> Result<(), String> {
    let plan = plan(&row).unwrap_or_default();
    let simulated = Simulated::start(Faults::parse(&plan).unwrap()).await;
    let client = client_with(&simulated.url, None, hasty());
    let saw = follow(&client, simulated_call(row.stream)).await;
    check(&row, ALL, &saw, simulated.requests()).map_err(|said| format!("{plan}: {said}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_mixture_of_faults_ends_and_shows_nothing_twice() {
    const PLAN: &str = "reset:0.05,429=1ms:0.05,529=1ms:0.05,500:0.05,too-long:0.02,cut:0.2,truncate:0.1,silence:0.05,\
                        malformed:0.1,error=random:0.1,duplicate:0.2,unknown:0.3,crlf:0.3,split:0.5,merge:0.5,\
                        usage=huge:0.1,slow=1ms:0.2";
    let runs: Vec<_> = (0..pal_testkit::cases(150).into())
        .map(|seed: u64| {
            tokio::spawn(async move {
                let simulated = Simulated::start(Faults::parse(PLAN).unwrap().seeded(seed)).await;
                let quick = Duration::from_millis(1500);
                let timeouts = Timeouts { first_byte: quick, idle: quick, ..hasty().timeouts };
                let client = client_with(&simulated.url, None, Policy { timeouts, ..hasty() });
                let saw = follow(&client, simulated_call(seed.is_multiple_of(2))).await;
                (seed, saw, simulated.requests())
            })
        })
        .collect();
    let (mut whole, mut broken) = (0, 0);
    for run in runs {
        let (seed, saw, requests) = run.await.unwrap();
        assert!(
            requests <= 3 && saw.waits.len() + 1 == requests,
            "seed {seed}: {requests} requests, {saw:?}"
        );
        match saw.failure {
            None => {
                assert_eq!((saw.text.as_str(), saw.blocks.len()), (ALL, 1), "seed {seed}");
                whole += 1;
            }
            Some(_) => {
                assert!(ALL.starts_with(&saw.text), "seed {seed}: {saw:?}");
                broken += 1;
            }
        }
    }
    assert!(whole > 10 && broken > 10, "{whole} whole, {broken} broken");
}
