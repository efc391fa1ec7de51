//! The `pal` program: parses arguments, calls the crates, prints results.

mod acp_host;
mod agent;
mod arguments;
mod commands;
mod compaction_range;
mod environment;
mod exit_codes;
mod failure;
mod key_helper;
mod leftover_processes;
mod loaded_session;
mod model_refresh;
mod next_request;
mod notices;
mod open_session;
mod permission_rules;
mod print_mode;
mod progress;
mod provider;
mod resume_directory;
mod session_ledger;
mod session_lookup;
mod session_start;
mod settings;
mod setup;
mod slash;
mod summary_client;
mod system_keyring;
mod telemetry;
mod terminal;
mod terminal_style;
mod worktree;

use std::io::Write;
use std::process::ExitCode;

use crate::arguments::{CliArgs, CliCommand};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::resume_directory::{ask_directory, enter_directory};
use crate::settings::{Settings, TypedSettings, from_environment};
use crate::terminal::is_interactive;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // The sandbox helper enters the sandbox before anything else runs.
    if words.next().is_some_and(|word| word == pal_process::sandbox::HELPER_ARGUMENT) {
        eprintln!("{}", pal_process::sandbox::enter_and_exec(words));
        return ExitCode::from(exit_codes::NOT_SANDBOXED);
    }
    let mut arguments = CliArgs::from_command_line();
    arguments.agent = arguments.agent.for_stream_input();
    let mut out = std::io::BufWriter::new(std::io::stdout());
    separate_projects();
    let done = match read_settings(&mut arguments) {
        Ok(settings) => {
            environment::apply_variables(&settings).and_then(|()| run(arguments, &settings, &mut out))
        }
        Err(failure) => match &arguments.command {
            Some(CliCommand::Doctor(doctor)) => commands::doctor_without_settings(doctor, &failure, &mut out),
            Some(CliCommand::Help(help)) => commands::help(help, &mut out),
            // A file that cannot be read can still be corrected.
            Some(CliCommand::Config(config)) if config.command.is_some() => {
                commands::change_config(config, None, &mut out)
            }
            _ => Err(failure),
        },
    };
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    done.unwrap_or_else(|failure| {
        if !matches!(failure, Failure::OutputClosed) {
            eprintln!("{failure}");
        }
        failure.exit_code()
    })
}

/// Gives projects that shared a directory in the home their own, before anything is read from there.
fn separate_projects() {
    let Some(home) = pal_store::home_from_environment() else { return };
    let current = std::env::current_dir();
    let separated = pal_report::separate_projects(&home).and_then(|()| match &current {
        Ok(directory) => pal_report::adopt_former_directory(&home, &pal_project::find_project(directory)),
        Err(_) => Ok(()),
    });
    if let Err(error) = separated {
        eprintln!("pal: the directories of projects in {} cannot be renamed: {error}", home.display());
    }
}

/// Settings of the directory to work in: the current one, that of `--cd`, or that of the session to continue.
fn read_settings(arguments: &mut CliArgs) -> Result<Settings, Failure> {
    if !environment::has_restarted() {
        enter_directory(&arguments.agent)?;
        if let Some(name) =
            arguments.agent.compatibility.worktree.as_ref().filter(|_| !arguments.agent.is_teammate)
        {
            worktree::enter_worktree(name)?;
        }
    }
    arguments.agent.read_prompt_files()?;
    let typed = arguments.typed_settings();
    let settings = from_environment(typed.clone())?;
    let is_headless = arguments.agent.is_print || arguments.agent.is_teammate || !is_interactive();
    let is_attended = arguments.command.is_none() && !is_headless;
    let settings = match is_attended && ask_directory(&mut arguments.agent, &settings)? {
        true => from_environment(typed.clone())?,
        false => settings,
    };
    let question = setup::trust_question(&settings).filter(|_| is_attended && !environment::has_restarted());
    match question
        .map(|question| question.ask(&mut std::io::stdin().lock(), &mut std::io::stderr()))
        .transpose()?
    {
        Some(true) => from_environment(typed),
        _ => Ok(settings),
    }
}

fn run(arguments: CliArgs, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    for warning in &settings.warnings {
        eprintln!("pal: {warning}");
    }
    telemetry::begin_log(settings)?;
    if arguments.command.is_none() && !arguments.agent.is_teammate {
        setup::tell_unused(settings);
    }
    if arguments.command.is_none() && !arguments.agent.is_print && is_interactive() {
        setup::welcome(settings);
    }
    let Some(command) = arguments.command else { return print_mode::run(&arguments.agent, settings, out) };
    let notices = &Notices::to_stderr();
    match command {
        CliCommand::Demo(demo) => commands::demo(&demo, out),
        CliCommand::Agents(agents) => commands::agents(&agents, settings, out),
        CliCommand::Send(send) => commands::send(&send, settings, out),
        CliCommand::Acp(acp) => {
            let typed = TypedSettings { given: arguments.settings, ..TypedSettings::default() };
            acp_host::run(&acp, typed, &arguments.agent)
        }
        CliCommand::Sessions(sessions) => commands::sessions(&sessions, settings, out),
        CliCommand::Rm(rm) => commands::rm(&rm, settings, out),
        CliCommand::Gc(gc) => commands::gc(&gc, settings, out),
        CliCommand::Export(export) => commands::export(&export, settings, notices, out),
        CliCommand::Import(import) => commands::import(&import, settings, out),
        CliCommand::Tokens(tokens) => commands::tokens(&tokens, settings, out),
        CliCommand::Render(render) => commands::render(&render, settings, out),
        CliCommand::Check(check) => commands::check(&check, settings, out),
        CliCommand::View(view) => commands::view(&view, settings, out),
        CliCommand::Context(context) => commands::context(&context, settings, notices, out),
        CliCommand::Cost(cost) => commands::cost(&cost, settings, notices, out),
        CliCommand::Breaks(breaks) => commands::breaks(&breaks, settings, notices, out),
        CliCommand::Compact(compact) => commands::compact(&compact, settings, out),
        CliCommand::Uncompact(uncompact) => commands::uncompact(&uncompact, settings, out),
        CliCommand::Pin(pin) => commands::pin(&pin, settings, out),
        CliCommand::Dream(dream) => commands::dream(&dream, &arguments.agent, settings, out),
        CliCommand::Memory(memory) => commands::memory(&memory, settings, notices, out),
        CliCommand::Recall(recall) => commands::recall(&recall, settings, out),
        CliCommand::Mcp(mcp) => commands::mcp(&mcp, settings, out),
        CliCommand::Sim(sim) => commands::sim(&sim, settings, out),
        CliCommand::Ask(ask) => commands::ask(&ask, settings, out),
        CliCommand::Trust(trust) => commands::trust(&trust, settings, out),
        CliCommand::Models(models) => commands::models(&models, settings, out),
        CliCommand::Config(config) if config.command.is_some() => {
            commands::change_config(&config, Some(settings), out)
        }
        CliCommand::Config(config) => commands::config(&config, settings, notices, out),
        CliCommand::Init(init) => commands::init(&init, settings, out),
        CliCommand::Doctor(doctor) => commands::doctor(&doctor, settings, out),
        CliCommand::Login(login) => commands::login(&login, settings, out),
        CliCommand::Logout(logout) => commands::logout(&logout, settings, out),
        CliCommand::Help(help) => commands::help(&help, out),
        CliCommand::Replay(replay) => commands::replay(&replay, settings, out),
        CliCommand::Eval(eval) => commands::eval(&eval, settings, out),
        CliCommand::Lab(eval) => commands::lab(&eval, settings, out),
    }
}
