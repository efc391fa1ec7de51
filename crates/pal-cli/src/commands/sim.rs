//! `pal sim`: a provider on loopback.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;

use pal_sim::{
    Exchange, Extractive, Faults, LedgerTotals, Model, Pace, Replay, Reply, Script, Settings as SimSettings,
    Signatures, Simulator,
};
use pal_sim_server::{Notice, Options, Speed, serve};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Sim, SpeedName};
use crate::aside;
use crate::failure::Failure;
use crate::session::{Session, read_file};
use crate::settings::Settings;
use crate::table::{bold, harmless, thousands, usage_line, yellow};

pub(crate) fn sim(arguments: &Sim, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let simulator = Simulator::new(simulator_settings(arguments, settings)?, model(arguments, settings)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no runtime: {error}")))?;
    // Requests are shown by whichever thread answers them, past this buffer.
    out.flush()?;
    runtime.block_on(run(arguments, simulator))?;
    Ok(ExitCode::SUCCESS)
}

fn simulator_settings(arguments: &Sim, settings: &Settings) -> Result<SimSettings, Failure> {
    let faults = Faults::parse(arguments.faults.as_deref().unwrap_or_default()).map_err(|error| {
        Failure::with_hint(format!("--faults: {error}"), "docs/simulator.md lists them all")
    })?;
    Ok(SimSettings {
        cards: settings.cards.clone(),
        keys: (!arguments.keys.is_empty()).then(|| arguments.keys.clone()),
        seed: arguments.seed,
        signatures: if arguments.learn_signatures { Signatures::Learn } else { Signatures::Refuse },
        pace: Pace::real(),
        faults: faults.seeded(arguments.seed),
    })
}

fn model(arguments: &Sim, settings: &Settings) -> Result<Box<dyn Model>, Failure> {
    if let Some(path) = &arguments.model_script {
        return script(path);
    }
    Ok(match &arguments.replay {
        Some(path) => Box::new(Replay::new(&Session::read(path, settings)?.branch)),
        None => Box::new(Extractive),
    })
}

fn script(path: &Path) -> Result<Box<dyn Model>, Failure> {
    let text = String::from_utf8(read_file(path)?).map_err(|_| {
        Failure::with_hint(format!("{}: not UTF-8", path.display()), "save the script as UTF-8")
    })?;
    let script = Script::parse(&text).map_err(|error| {
        Failure::with_hint(format!("{}: {error}", path.display()), "docs/simulator.md has examples")
    })?;
    Ok(Box::new(script))
}

async fn run(arguments: &Sim, simulator: Simulator) -> Result<(), Failure> {
    if let Some(folder) = &arguments.log {
        pal_store::create_private_directory(folder).map_err(|error| {
            Failure::with_hint(format!("--log: {error}"), "name a folder that can be written")
        })?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await.map_err(|error| {
        Failure::with_hint(
            format!("port {} cannot be had: {error}", arguments.port),
            "name another one with --port, or take a free one with --port 0",
        )
    })?;
    let address = listener.local_addr().map_err(|error| Failure::new(format!("no address: {error}")))?;
    // Asked for before anybody is told that we are here: an interrupt may come at once.
    let interrupt = signal(SignalKind::interrupt());
    greet(arguments, &format!("http://{address}"))?;
    let is_json = arguments.json;
    let options = Options {
        speed: match arguments.speed {
            SpeedName::Real => Speed::Real,
            SpeedName::Virtual => Speed::Virtual,
        },
        record: arguments.log.clone(),
        notice: Box::new(move |notice| match notice {
            Notice::Exchange(exchange) => show(exchange, is_json),
            Notice::Other { path, reply } => show_other(path, reply, is_json),
            Notice::NotRecorded(error) => aside::tell(format_args!("an exchange could not be kept: {error}")),
        }),
    };
    let stop = async {
        match interrupt {
            Ok(mut interrupt) => drop(interrupt.recv().await),
            // Without signals there is only the harder way to stop.
            Err(_) => std::future::pending::<()>().await,
        }
    };
    let totals = serve(listener, simulator, options, stop)
        .await
        .map_err(|error| Failure::new(format!("the simulator: {error}")))?;
    if !arguments.json {
        println!("\n{}", bold(&totals_line(&totals)));
    }
    Ok(())
}

fn greet(arguments: &Sim, address: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json!({"listening": address}))?;
    } else {
        writeln!(out, "{}", bold(&format!("simulator at {address}")))?;
        writeln!(out, "  ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY=any  for clients of Anthropic")?;
        writeln!(out, "  OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY=any     for clients of OpenAI")?;
        writeln!(out, "  Ctrl-C stops it")?;
    }
    Ok(out.flush()?)
}

fn show(exchange: &Exchange, is_json: bool) {
    if is_json {
        say(&serde_json::to_string(exchange).unwrap_or_default());
    } else {
        let usage = usage_line(&exchange.usage, exchange.cost);
        say(&format!("#{} {}: {usage}", exchange.number, harmless(&exchange.model)));
    }
}

fn show_other(path: &str, reply: &Reply, is_json: bool) {
    let body = String::from_utf8_lossy(&reply.body()).into_owned();
    if is_json {
        say(&json!({"path": path, "status": reply.status}).to_string());
    } else if reply.status < 400 && reply.status > 0 {
        say(&format!("{} {}", harmless(path), reply.status));
    } else {
        let body: String = body.chars().take(300).collect();
        say(&yellow(&format!("{} {}: {}", harmless(path), reply.status, harmless(body.trim()))));
    }
}

/// Prints a line. Nobody may be reading any more: that is no reason to stop answering.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn totals_line(totals: &LedgerTotals) -> String {
    let prompt = totals.read + totals.written + totals.uncached;
    let share = if prompt == 0 { 0.0 } else { 100.0 * totals.read as f64 / prompt as f64 };
    format!(
        "{} answers, {} prompt tokens, {share:.1} % of them from the cache, ${:.4} with a real provider",
        thousands(totals.exchanges),
        thousands(prompt),
        totals.cost
    )
}
