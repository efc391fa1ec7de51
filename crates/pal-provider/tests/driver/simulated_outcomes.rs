//! Checks the outcome table against the simulator's own faults, through a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pal_model::ChunkedText;
use pal_provider::{AttemptTimeouts, ClientPolicy};
use pal_sim::{
    FaultPlan, ModelOutput, ModelPrompt, OutputBlock, SimSettings, SimulatedModel, SimulatedProvider,
};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use pal_wire::ApiCall;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::faults::{OutcomeRow, table};
use crate::outcome_table::{check, run_rows};
use crate::{call_with, client_with, short_policy, trace_answer};

/// Answer of the model, long enough for many deltas.
const ALL: &str = "A palimpsest is a page that was scraped and written on again, and whose older text can still be \
                   read: every word that was ever said is there, under the words that are said now.";

/// A model with one fixed answer.
struct ConstantModel;

impl SimulatedModel for ConstantModel {
    fn answer(&mut self, _: &ModelPrompt<'_>) -> ModelOutput {
        ModelOutput { blocks: vec![OutputBlock::Text(ALL.to_owned())], stop: None }
    }
}

/// A simulator behind a socket; stops when dropped.
struct SimulatedServer {
    url: String,
    requests: Arc<AtomicUsize>,
    _stop: oneshot::Sender<()>,
}

impl SimulatedServer {
    async fn start(faults: FaultPlan) -> SimulatedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let simulator =
            SimulatedProvider::new(SimSettings { faults, ..SimSettings::plain() }, Box::new(ConstantModel));
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let notice = Box::new(move |_: pal_sim_server::ServerNotice<'_>| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let options = SimServerOptions { speed: ClockSpeed::Virtual, record: None, announces: false, notice };
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, simulator, options, async {
            let _ = stopped.await;
        }));
        SimulatedServer { url, requests, _stop: stop }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn simulated_call(stream: bool) -> ApiCall {
    let body = format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":500,"stream":{stream},"messages":[{{"role":"user","content":"What is it?"}}]}}"#
    );
    call_with(ChunkedText::from(body), stream)
}

/// Fault plan for a row of the table; `None` if the simulator has no such fault.
fn plan(row: &OutcomeRow) -> Option<String> {
    // The break position of a whole answer is a byte offset.
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
async fn simulated_faults_have_their_documented_outcomes() {
    let rows: Vec<OutcomeRow> = table().into_iter().filter(|row| plan(row).is_some()).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    run_rows(rows, run).await;
}

async fn run(row: OutcomeRow) -> Result<(), String> {
    let plan = plan(&row).unwrap_or_default();
    let simulated = SimulatedServer::start(FaultPlan::parse(&plan).unwrap()).await;
    let client = client_with(&simulated.url, None, short_policy());
    let saw = trace_answer(&client, simulated_call(row.stream)).await;
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
                let simulated = SimulatedServer::start(FaultPlan::parse(PLAN).unwrap().with_seed(seed)).await;
                let quick = Duration::from_millis(1500);
                let timeouts = AttemptTimeouts { first_byte: quick, idle: quick, ..short_policy().timeouts };
                let client = client_with(&simulated.url, None, ClientPolicy { timeouts, ..short_policy() });
                let saw = trace_answer(&client, simulated_call(seed.is_multiple_of(2))).await;
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
