//! `pal dream`: memories are put in order.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_agent::{Clock, Dream as Dreamer, DreamReport, DreamState, DreamTask, DreamTurn, Gate, Gates};
use pal_sources::project_of;
use serde_json::{Value, json};

use super::memory::{difference_object, print_diff};
use crate::agent::{INTERRUPTED, dream_gates, on_wishes_to_end, options};
use crate::arguments::{Dream, Print};
use crate::aside;
use crate::colour::{Colours, clipped};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::table::{duration, harmless, money, thousands};

/// The gate that no wish opens, and the one that is kept by the lock itself.
const ALWAYS: [&str; 2] = ["on", "lock"];

pub(crate) fn dream(
    arguments: &Dream,
    print: &Print,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let print = Print { model: arguments.model.clone(), provider: arguments.provider, ..print.clone() };
    let gates = gates(settings)?;
    // Sessions were just counted, whenever that was done before.
    let is_asked =
        |gate: &Gate| if arguments.now { ALWAYS.contains(&gate.name) } else { gate.name != "scan" };
    let stands = |gate: &&Gate| !gate.is_open && is_asked(gate);
    // What is tried on a copy disturbs nobody.
    let closed = gates.iter().find(stands).filter(|gate| !(arguments.dry_run && gate.name == "lock"));
    if !arguments.json {
        gates.iter().for_each(|gate| tell(gate, closed));
    }
    let report = match closed {
        Some(_) => None,
        None => Some(carried_out(&Dreamer::of(&options(&print, settings)?), arguments)),
    };
    if arguments.json {
        writeln!(out, "{}", object(&gates, report.as_ref(), arguments.dry_run))?;
    } else if let Some(report) = &report {
        shown(report, arguments, out)?;
    } else if !arguments.now {
        writeln!(out, "Not due. `pal dream --now` does it all the same.")?;
    }
    let failed = report.is_some_and(|report| report.state != DreamState::Completed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What stands before a dream of the project here. Looking at that needs no provider.
fn gates(settings: &Settings) -> Result<Vec<Gate>, Failure> {
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })?;
    let directory = std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?;
    let gates = Gates::of_project(home, &project_of(&directory), dream_gates(settings), None);
    Ok(gates.all(Clock { ahead: settings.clock_ahead }.now()))
}

fn tell(gate: &Gate, closed: Option<&Gate>) {
    let mark = match gate.is_open {
        true => "yes",
        false if closed.is_some_and(|closed| closed.name == gate.name) => "no ",
        false => "(no)",
    };
    aside::say(format!("{mark:<4} {}", harmless(&gate.why)));
}

/// Dreams, and tells each turn meanwhile. Whoever wants the program to end stops it first.
fn carried_out(dreamer: &Dreamer, arguments: &Dream) -> DreamReport {
    let task = dreamer.task();
    if !arguments.json {
        let mut count = 0;
        task.on_turn(move |turn| {
            count += 1;
            tell_turn(count, turn);
        });
    }
    stop_on_signals(task.clone());
    match arguments.dry_run {
        true => dreamer.rehearse(&task),
        false => dreamer.run(&task),
    }
}

fn tell_turn(count: u64, turn: &DreamTurn) {
    let words = turn.words.lines().next().unwrap_or_default();
    eprintln!("{count:>3}  {}", clipped(&harmless(words), 100));
    for call in &turn.calls {
        eprintln!("     {}", clipped(&harmless(call), 100));
    }
}

/// The first wish to end stops the dream, so that it is taken back; a second one ends the program at once.
fn stop_on_signals(task: DreamTask) {
    on_wishes_to_end(move || {
        if !task.state().is_running() || task.is_stopped() {
            // Whoever comes next takes back what is left.
            std::process::exit(INTERRUPTED);
        }
        task.kill();
    });
}

fn shown(report: &DreamReport, arguments: &Dream, out: &mut dyn Write) -> Result<(), Failure> {
    print_diff(&report.differences, Colours::of(arguments.colour), out)?;
    for refused in &report.refused {
        aside::tell(format_args!("refused: {}", clipped(&harmless(refused), 200)));
    }
    for cut in &report.cuts {
        aside::tell(format_args!(
            "{} of {} lines of {} are left; as it was: {}",
            cut.left,
            cut.lines,
            harmless(&cut.file),
            cut.kept.display()
        ));
    }
    report.notes.iter().for_each(|note| aside::tell(harmless(note)));
    let what = match (&report.state, report.differences.len()) {
        (DreamState::Failed(why), _) => format!("It failed, and nothing is changed: {}", harmless(why)),
        (DreamState::Killed, _) => String::from("It was stopped, and nothing is changed"),
        (_, 0) => String::from("All is in order"),
        (_, files) if arguments.dry_run => format!("It would change {files} files"),
        (_, files) => format!("{files} files changed; `pal memory undo {}` takes it back", report.since),
    };
    let took = duration(u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX));
    writeln!(
        out,
        "{what} ({} requests, {} tokens, {}, {took}).",
        report.requests,
        thousands(report.tokens),
        money(report.cost)
    )?;
    Ok(())
}

fn object(gates: &[Gate], report: Option<&DreamReport>, is_dry: bool) -> Value {
    let report = report.map(|report| {
        json!({
            "state": report.state, "dry_run": is_dry, "since": report.since, "turns": report.turns,
            "differences": report.differences.iter().map(difference_object).collect::<Vec<_>>(),
            "cuts": report.cuts, "refused": report.refused, "notes": report.notes,
            "requests": report.requests, "tokens": report.tokens, "cost_usd": report.cost,
            "took_ms": report.took.as_millis() as u64,
        })
    });
    json!({ "gates": gates, "run": report })
}
