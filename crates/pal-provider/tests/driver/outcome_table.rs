//! Checks every row of the outcome table in the crate documentation.

use pal_model::ChunkedText;
use tokio::net::TcpSocket;

use crate::faults::{ALL, OutcomeRow, ShownShare, scripts, table};
use crate::scripted_server::ScriptedServer;
use crate::{AnswerTrace, call, call_with, client, trace_answer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_its_documented_outcome() {
    let rows = table();
    assert!(rows.len() > 60, "the table was not found");
    run_rows(rows, run).await;
}

/// Runs rows concurrently and fails with all wrong ones.
pub(crate) async fn run_rows<F>(rows: Vec<OutcomeRow>, run: impl Fn(OutcomeRow) -> F)
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let runs: Vec<_> = rows.into_iter().map(|row| (row.clone(), tokio::spawn(run(row)))).collect();
    let mut wrong = Vec::new();
    for (row, run) in runs {
        match run.await {
            Ok(Ok(())) => {}
            Ok(Err(said)) => wrong.push(format!("{row:?}\n    {said}")),
            Err(panic) => wrong.push(format!("{row:?}\n    {panic}")),
        }
    }
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs one row and reports differences.
async fn run(row: OutcomeRow) -> Result<(), String> {
    let (saw, attempts) = if row.fault == "connection refused" {
        // Bound, so that no other process takes the port, but not listening.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let saw = trace_answer(&client(&url), call(row.stream)).await;
        let attempts = saw.waits.len() + 1;
        (saw, attempts)
    } else {
        let server = ScriptedServer::start(scripts(&row)).await;
        let call = match row.fault.as_str() {
            "status 413 while the body is sent" => {
                call_with(ChunkedText::from("x".repeat(8_000_000)), row.stream)
            }
            _ => call(row.stream),
        };
        let saw = trace_answer(&client(&server.url()), call).await;
        (saw, server.requests().len())
    };
    check(&row, ALL, &saw, attempts)
}

/// Compares the outcome with the table row, given the text of the whole answer.
pub(crate) fn check(row: &OutcomeRow, all: &str, saw: &AnswerTrace, attempts: usize) -> Result<(), String> {
    let outcome = saw.failure.as_ref().map_or("Finished".to_owned(), |failure| format!("{:?}", failure.kind));
    let outcome = outcome.split([' ', '(']).next().unwrap_or_default();
    let is_shown = match row.shown {
        ShownShare::Nothing => saw.text.is_empty(),
        ShownShare::Half => !saw.text.is_empty() && saw.text != all && all.starts_with(&saw.text),
        ShownShare::All => saw.text == all,
    };
    let is_same = outcome == row.outcome
        && attempts == row.attempts
        && saw.waits.len() + 1 == attempts
        && is_shown
        && saw.blocks.len() == usize::from(row.shown == ShownShare::All)
        && saw.failure.as_ref().is_none_or(|failure| !failure.message.is_empty());
    if is_same { Ok(()) } else { Err(format!("{attempts} attempts, {saw:?}")) }
}
