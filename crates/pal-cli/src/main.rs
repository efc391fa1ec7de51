//! The `pal` program: parses, calls, prints. It decides nothing.

mod agent;
mod arguments;
mod aside;
mod books;
mod carried;
mod colour;
mod commands;
mod errands;
mod failure;
mod kept;
mod leftovers;
mod own;
mod progress;
mod provider;
mod session;
mod settings;
mod stored;
mod surroundings;
mod table;
mod telemetry;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::settings::{Settings, from_environment};

/// What the program exits with if a command could not be fenced in: that of a shell that cannot run a command.
const NOT_FENCED: u8 = 126;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // A command behind the fence: the fence is closed from inside before anything else is done.
    if words.next().is_some_and(|word| word == pal_sandbox::HELPER_ARGUMENT) {
        eprintln!("{}", pal_sandbox::enter_and_exec(words));
        return ExitCode::from(NOT_FENCED);
    }
    let arguments = Arguments::parse();
    let mut out = std::io::BufWriter::new(std::io::stdout());
    let done = from_environment(arguments.settings.clone(), arguments.print.settings())
        .and_then(|settings| run(arguments, &settings, &mut out));
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    done.unwrap_or_else(|failure| {
        if !matches!(failure, Failure::ReaderLeft) {
            eprintln!("{failure}");
        }
        failure.exit_code()
    })
}

fn run(arguments: Arguments, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    for warning in &settings.warnings {
        eprintln!("pal: {warning}");
    }
    telemetry::begin_log(settings)?;
    let Some(command) = arguments.command else { return commands::print(&arguments.print, settings, out) };
    match command {
        Command::Demo(demo) => commands::demo(&demo, out),
        Command::Agents(agents) => commands::agents(&agents, settings, out),
        Command::Send(send) => commands::send(&send, settings, out),
        Command::Acp(acp) => commands::acp(&acp, arguments.settings, &arguments.print),
        Command::Sessions(sessions) => commands::sessions(&sessions, settings, out),
        Command::Gc(gc) => commands::gc(&gc, settings, out),
        Command::Export(export) => commands::export(&export, settings, out),
        Command::Import(import) => commands::import(&import, settings, out),
        Command::Tokens(tokens) => commands::tokens(&tokens, settings, out),
        Command::Render(render) => commands::render(&render, settings, out),
        Command::Check(check) => commands::check(&check, settings, out),
        Command::View(view) => commands::view(&view, settings, out),
        Command::Context(context) => commands::context(&context, settings, out),
        Command::Cost(cost) => commands::cost(&cost, settings, out),
        Command::Breaks(breaks) => commands::breaks(&breaks, settings, out),
        Command::Compact(compact) => commands::compact(&compact, settings, out),
        Command::Uncompact(uncompact) => commands::uncompact(&uncompact, settings, out),
        Command::Pin(pin) => commands::pin(&pin, settings, out),
        Command::Dream(dream) => commands::dream(&dream, &arguments.print, settings, out),
        Command::Memory(memory) => commands::memory(&memory, settings, out),
        Command::Recall(recall) => commands::recall(&recall, settings, out),
        Command::Mcp(mcp) => commands::mcp(&mcp, settings),
        Command::Sim(sim) => commands::sim(&sim, settings, out),
        Command::Ask(ask) => commands::ask(&ask, settings, out),
        Command::Trust(trust) => commands::trust(&trust, settings, out),
        Command::Config(config) => commands::config(&config, settings, out),
        Command::Replay(replay) => commands::replay(&replay, settings, out),
        Command::Lab(lab) => commands::lab(&lab, settings, out),
    }
}
