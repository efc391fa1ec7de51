//! `pal sim`: a simulated provider on loopback.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;

use pal_model::text::group_digits;
use pal_report::{format_usage, sanitize};
use pal_sim::{
    ExtractiveModel, FaultPlan, HttpReply, LedgerTotals, ModelExchange, RecordedModel, ReplyPace,
    ScriptedModel, SignaturePolicy, SimSettings, SimulatedModel, SimulatedProvider,
};
use pal_sim_server::{ClockSpeed, ServerNotice, SimServerOptions, serve};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{SimArgs, SpeedArg};
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, read_file};
use crate::notices::print_notice;
use crate::settings::Settings;
use crate::terminal_style::{bold, yellow};

pub(crate) fn sim(
    arguments: &SimArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let simulator =
        SimulatedProvider::new(simulator_settings(arguments, settings)?, model(arguments, settings)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no runtime: {error}")))?;
    // Requests are printed by the thread that answers them, bypassing this buffer.
    out.flush()?;
    runtime.block_on(run(arguments, simulator))?;
    Ok(ExitCode::SUCCESS)
}

fn simulator_settings(arguments: &SimArgs, settings: &Settings) -> Result<SimSettings, Failure> {
    let faults = FaultPlan::parse(arguments.faults.as_deref().unwrap_or_default()).map_err(|error| {
        Failure::with_hint(format!("--faults: {error}"), "`pal help simulator` lists all faults")
    })?;
    Ok(SimSettings {
        cards: match arguments.window {
            Some(window) => settings.cards.with_server_window(window),
            None => settings.cards.clone(),
        },
        keys: (!arguments.keys.is_empty()).then(|| arguments.keys.clone()),
        seed: arguments.seed,
        signatures: if arguments.learn_signatures { SignaturePolicy::Learn } else { SignaturePolicy::Refuse },
        pace: ReplyPace::real(),
        faults: faults.with_seed(arguments.seed),
    })
}

fn model(arguments: &SimArgs, settings: &Settings) -> Result<Box<dyn SimulatedModel>, Failure> {
    if let Some(path) = &arguments.model_script {
        return script(path);
    }
    Ok(match &arguments.replay {
        Some(path) => Box::new(RecordedModel::new(&LoadedSession::read(path, settings)?.branch)),
        None => Box::new(ExtractiveModel),
    })
}

fn script(path: &Path) -> Result<Box<dyn SimulatedModel>, Failure> {
    let text = String::from_utf8(read_file(path)?).map_err(|_| {
        Failure::with_hint(format!("{}: not UTF-8", path.display()), "save the script as UTF-8")
    })?;
    let script = ScriptedModel::parse(&text).map_err(|error| {
        Failure::with_hint(format!("{}: {error}", path.display()), "`pal help simulator` has examples")
    })?;
    Ok(Box::new(script))
}

async fn run(arguments: &SimArgs, simulator: SimulatedProvider) -> Result<(), Failure> {
    if let Some(folder) = &arguments.log {
        pal_store::create_private_directory(folder)
            .map_err(|error| Failure::with_hint(format!("--log: {error}"), "name a writable directory"))?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await.map_err(|error| {
        Failure::with_hint(
            format!("cannot listen on port {}: {error}", arguments.port),
            "choose another port with --port, or any free one with --port 0",
        )
    })?;
    let address = listener.local_addr().map_err(|error| Failure::new(format!("no address: {error}")))?;
    // Installed before the address is printed: an interrupt may come at once.
    let interrupt = signal(SignalKind::interrupt());
    print_address(arguments, &format!("http://{address}"))?;
    let is_json = arguments.json;
    let options = SimServerOptions {
        announces: true,
        speed: match arguments.speed {
            SpeedArg::Real => ClockSpeed::Real,
            SpeedArg::Virtual => ClockSpeed::Virtual,
        },
        record: arguments.log.clone(),
        notice: Box::new(move |notice| match notice {
            ServerNotice::Exchange(exchange) => show(exchange, is_json),
            ServerNotice::Other { path, reply } => show_other(path, reply, is_json),
            ServerNotice::NotRecorded(error) => {
                print_notice(format_args!("an exchange could not be recorded: {error}"))
            }
        }),
    };
    let stop = async {
        match interrupt {
            Ok(mut interrupt) => drop(interrupt.recv().await),
            // Without a signal handler, the default action ends the process.
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

fn print_address(arguments: &SimArgs, address: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json!({"listening": address}))?;
    } else {
        writeln!(out, "{}", bold(&format!("simulator at {address}")))?;
        writeln!(out, "  ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY=any  for clients of Anthropic")?;
        writeln!(out, "  OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY=any     for clients of OpenAI")?;
        writeln!(out, "  press Ctrl-C to stop")?;
    }
    Ok(out.flush()?)
}

fn show(exchange: &ModelExchange, is_json: bool) {
    if is_json {
        say(&serde_json::to_string(exchange).unwrap_or_default());
    } else {
        let usage = format_usage(&exchange.usage, exchange.cost);
        say(&format!("#{} {}: {usage}", exchange.number, sanitize(&exchange.model)));
    }
}

fn show_other(path: &str, reply: &HttpReply, is_json: bool) {
    let body = String::from_utf8_lossy(&reply.body()).into_owned();
    if is_json {
        say(&json!({"path": path, "status": reply.status}).to_string());
    } else if reply.status < 400 && reply.status > 0 {
        say(&format!("{} {}", sanitize(path), reply.status));
    } else {
        let body: String = body.chars().take(300).collect();
        say(&yellow(&format!("{} {}: {}", sanitize(path), reply.status, sanitize(body.trim()))));
    }
}

/// Prints a line. A closed output does not stop the server.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn totals_line(totals: &LedgerTotals) -> String {
    let prompt = totals.read + totals.written + totals.uncached;
    let share = if prompt == 0 { 0.0 } else { 100.0 * totals.read as f64 / prompt as f64 };
    format!(
        "{} answers, {} prompt tokens, {share:.1}% of them from the cache, ${:.4} with a real provider",
        group_digits(totals.exchanges),
        group_digits(prompt),
        totals.cost
    )
}
