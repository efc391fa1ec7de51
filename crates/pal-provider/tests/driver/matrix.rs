//! The table of outcomes in the documentation of the crate is true, row by row.

use pal_model::Parts;
use tokio::net::TcpSocket;

use crate::faults::{ALL, Row, Shown, scripts, table};
use crate::server::Server;
use crate::{Saw, call, call_with, client, follow};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_outcome_that_the_documentation_says() {
    let rows = table();
    assert!(rows.len() > 60, "the table was not found");
    prove(rows, run).await;
}

/// Plays rows at the same time and fails with all that are wrong.
pub(crate) async fn prove<F>(rows: Vec<Row>, run: impl Fn(Row) -> F)
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

/// Plays one row and says what differs.
async fn run(row: Row) -> Result<(), String> {
    let (saw, attempts) = if row.fault == "connection refused" {
        // Bound, so that nobody else takes the port, but not listening.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let saw = follow(&client(&url), call(row.stream)).await;
        let attempts = saw.waits.len() + 1;
        (saw, attempts)
    } else {
        let server = Server::start(scripts(&row)).await;
        let call = match row.fault.as_str() {
            "status 413 while the body is sent" => call_with(Parts::from("x".repeat(8_000_000)), row.stream),
            _ => call(row.stream),
        };
        let saw = follow(&client(&server.url()), call).await;
        (saw, server.requests().len())
    };
    check(&row, ALL, &saw, attempts)
}

/// Compares what happened with what the table says, given the text of the whole answer.
pub(crate) fn check(row: &Row, all: &str, saw: &Saw, attempts: usize) -> Result<(), String> {
    let outcome = saw.failure.as_ref().map_or("Finished".to_owned(), |failure| format!("{:?}", failure.kind));
    let outcome = outcome.split(' ').next().unwrap_or_default();
    let is_shown = match row.shown {
        Shown::Nothing => saw.text.is_empty(),
        Shown::Half => !saw.text.is_empty() && saw.text != all && all.starts_with(&saw.text),
        Shown::All => saw.text == all,
    };
    let is_same = outcome == row.outcome
        && attempts == row.attempts
        && saw.waits.len() + 1 == attempts
        && is_shown
        && saw.blocks.len() == usize::from(row.shown == Shown::All)
        && saw.failure.as_ref().is_none_or(|failure| !failure.message.is_empty());
    if is_same { Ok(()) } else { Err(format!("{attempts} attempts, {saw:?}")) }
}
