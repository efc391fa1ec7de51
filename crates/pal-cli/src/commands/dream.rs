//! `pal dream`: consolidates memories.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_background::{
    Clock, Dream as Dreamer, DreamGate, DreamGates, DreamReport, DreamState, DreamTask, DreamTurn,
};
use pal_model::text::group_digits;
use pal_project::find_project;
use pal_report::{clip_line, format_duration, format_usd, sanitize};
use serde_json::{Value, json};

use super::memory::{difference_object, print_diff};
use crate::agent::{dream_gates, on_termination_signals, options};
use crate::arguments::{AgentArgs, DreamArgs, ModelArgs};
use crate::failure::Failure;
use crate::notices::{Notices, print_notice, print_plain};
use crate::settings::Settings;
use crate::terminal_style::style_for;

/// Gates that `--now` does not skip: the switch, and the lock.
const ALWAYS: [&str; 2] = ["on", "lock"];

pub(crate) fn dream(
    arguments: &DreamArgs,
    print: &AgentArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let model =
        ModelArgs { model: arguments.model.clone(), provider: arguments.provider, ..print.model.clone() };
    let print = AgentArgs { model, ..print.clone() };
    let gates = gates(settings)?;
    // Sessions were just counted, so the scan interval does not matter.
    let is_asked =
        |gate: &DreamGate| if arguments.now { ALWAYS.contains(&gate.name) } else { gate.name != "scan" };
    let stands = |gate: &&DreamGate| !gate.is_open && is_asked(gate);
    // A dry run works on a copy and needs no lock.
    let closed = gates.iter().find(stands).filter(|gate| !(arguments.dry_run && gate.name == "lock"));
    if !arguments.json {
        gates.iter().for_each(|gate| print_gate(gate, closed));
    }
    let report = match closed {
        Some(_) => None,
        None => Some(run_dream(
            &Dreamer::new(&options(&print, settings, &Notices::to_stderr())?.background_config()),
            arguments,
        )),
    };
    if arguments.json {
        writeln!(out, "{}", report_object(&gates, report.as_ref(), arguments.dry_run))?;
    } else if let Some(report) = &report {
        print_report(report, arguments, out)?;
    } else if !arguments.now {
        writeln!(out, "Not due. Run `pal dream --now` to start anyway.")?;
    }
    let failed = report.is_some_and(|report| report.state != DreamState::Completed);
    Ok(if failed { ExitCode::from(crate::exit_codes::ERROR) } else { ExitCode::SUCCESS })
}

/// Evaluates the gates for the current project; needs no provider.
fn gates(settings: &Settings) -> Result<Vec<DreamGate>, Failure> {
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })?;
    let directory = std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?;
    let gates = DreamGates::of_project(home, &find_project(&directory), dream_gates(settings), None);
    Ok(gates.all(Clock { ahead: settings.clock_offset }.now()))
}

fn print_gate(gate: &DreamGate, closed: Option<&DreamGate>) {
    let mark = match gate.is_open {
        true => "yes",
        false if closed.is_some_and(|closed| closed.name == gate.name) => "no ",
        false => "(no)",
    };
    print_plain(format!("{mark:<4} {}", sanitize(&gate.why)));
}

/// Runs the dream and prints each turn. A signal stops it first.
fn run_dream(dreamer: &Dreamer, arguments: &DreamArgs) -> DreamReport {
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
    eprintln!("{count:>3}  {}", clip_line(&sanitize(words), 100));
    for call in &turn.calls {
        eprintln!("     {}", clip_line(&sanitize(call), 100));
    }
}

/// The first signal stops the dream and undoes its changes; the second ends the program at once.
fn stop_on_signals(task: DreamTask) {
    on_termination_signals(move || {
        if !task.state().is_running() || task.is_stopped() {
            // The next run undoes the rest.
            std::process::exit(i32::from(crate::exit_codes::INTERRUPTED));
        }
        task.kill();
    });
}

fn print_report(report: &DreamReport, arguments: &DreamArgs, out: &mut dyn Write) -> Result<(), Failure> {
    print_diff(&report.differences, style_for(arguments.color), out)?;
    for refused in &report.refused {
        print_notice(format_args!("refused: {}", clip_line(&sanitize(refused), 200)));
    }
    for cut in &report.cuts {
        print_notice(format_args!(
            "{} of {} lines of {} remain; previous version: {}",
            cut.left,
            cut.lines,
            sanitize(&cut.file),
            cut.kept.display()
        ));
    }
    report.notes.iter().for_each(|note| print_notice(sanitize(note)));
    let what = match (&report.state, report.differences.len()) {
        (DreamState::Failed(why), _) => format!("Failed, nothing changed: {}", sanitize(why)),
        (DreamState::Killed, _) => String::from("Stopped, nothing changed"),
        (_, 0) => String::from("Nothing to change"),
        (_, files) if arguments.dry_run => format!("Would change {files} files"),
        (_, files) => format!("{files} files changed; undo with `pal memory undo {}`", report.since),
    };
    let took = format_duration(u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX));
    writeln!(
        out,
        "{what} ({} requests, {} tokens, {}, {took}).",
        report.requests,
        group_digits(report.tokens),
        format_usd(report.cost)
    )?;
    Ok(())
}

fn report_object(gates: &[DreamGate], report: Option<&DreamReport>, is_dry: bool) -> Value {
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
