//! `pal` without a subcommand: the terminal, or `pal -p` with its output formats.

mod control_channel;
mod control_requests;
mod host_setup;
mod interrupts;
mod json_lines;
mod json_output;
mod locked_stdout;
mod model_usage;
mod output_format;
mod partial_message;
mod print_run;
mod program_permissions;
mod run_step;
mod stdin_prompts;
mod stream_input;
mod stream_json;
mod text_output;

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::CommandFactory;
use pal_model::closest_word;

use crate::agent::work_as_teammate;
use crate::arguments::{AgentArgs, CliArgs, InputFormat, OutputFormat};
use crate::failure::Failure;
use crate::leftover_processes::LeftoverGuard;
use crate::notices::print_notice;
use crate::open_session::{now, random_seed};
use crate::settings::Settings;
use crate::terminal;
use json_lines::JsonLines;
use json_output::JsonOutput;
use locked_stdout::LockedStdout;
use output_format::Show;
use print_run::{PromptSource, run_prompts};
use stream_json::{StreamJson, StreamJsonOptions};
use text_output::TextOutput;

/// Largest prompt on standard input; tools read files of any size.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Wait for the first byte of standard input if a prompt was typed: parent processes often leave it open and never write.
const STDIN_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn run(args: &AgentArgs, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let _guard = LeftoverGuard::begin();
    if args.is_teammate {
        return work_as_teammate(args, settings);
    }
    if let Some((what, hint)) = args.contradiction() {
        return Err(Failure::usage_error(what, hint));
    }
    // `--plain` works through a pipe, too.
    let is_prompt = is_sentence(args) || (!args.is_print && terminal::is_interactive() && ask_prompt(args)?);
    let is_terminal = args.plain || (is_prompt && terminal::is_interactive());
    if !args.is_print && is_terminal {
        return terminal::run_terminal(args, settings);
    }
    if !args.is_print {
        return match &args.prompt {
            Some(word) => Err(unknown_command(word)),
            None => {
                write!(out, "{}", CliArgs::command().render_help())?;
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    let source = prompt_source(args)?;
    let (mut err, verbose) = (std::io::stderr(), args.output.verbose);
    let mut stdout = LockedStdout::default();
    let lines = |out| JsonLines::new(out, random_seed(), now, args.limits.max_turns, settings.cards.clone());
    let mut show: Box<dyn Show + '_> = match args.output.output_format {
        OutputFormat::Text => {
            let is_verbose = verbose || err.is_terminal();
            let text = TextOutput::new(out, &mut err, is_verbose, std::io::stdout().is_terminal());
            Box::new(text.with_strict(args.output.strict))
        }
        OutputFormat::Json => Box::new(JsonOutput::new(lines(out), args.output.strict)),
        OutputFormat::StreamJson => {
            let options = StreamJsonOptions {
                is_partial: args.output.include_partial_messages,
                is_verbose: verbose,
                replays_prompts: args.output.replay_user_messages,
                is_strict: args.output.strict,
            };
            Box::new(StreamJson::new(lines(&mut stdout), options).with_plugins(&settings.imported.plugins))
        }
    };
    match run_prompts(&source, args, settings, show.as_mut()) {
        Ok(()) => show.finish(None),
        Err(Failure::OutputClosed) => Err(Failure::OutputClosed),
        Err(failure) => show.finish(Some(&failure)),
    }
}

/// Whether the typed text is a prompt: a single word is more likely a mistyped command.
fn is_sentence(args: &AgentArgs) -> bool {
    args.prompt.as_ref().is_none_or(|prompt| prompt.trim().contains(char::is_whitespace))
}

/// Asks whether a single word is a prompt; it may be a mistyped command.
fn ask_prompt(args: &AgentArgs) -> Result<bool, Failure> {
    let word = args.prompt.as_deref().unwrap_or_default();
    let command = CliArgs::command();
    let names: Vec<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
    let near =
        closest_word(word, &names).map_or(String::new(), |near| format!(" (did you mean `pal {near}`?)"));
    eprint!(
        "`{}` is not a command{near}. Send it to the agent as a prompt? [y/N] ",
        pal_report::clip_line(word, 40)
    );
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::new(format!("standard input: {error}")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// The typed prompt followed by piped input, or messages on standard input.
fn prompt_source(args: &AgentArgs) -> Result<PromptSource, Failure> {
    if args.output.input_format == InputFormat::StreamJson {
        return Ok(PromptSource::Stdin);
    }
    let piped = match (std::io::stdin().is_terminal(), &args.prompt) {
        (true, _) => String::new(),
        (false, None) => read(std::io::stdin())?,
        (false, Some(_)) => read_if_ready()?,
    };
    let typed = args.prompt.as_deref().unwrap_or_default();
    let parts: Vec<&str> = [typed, &piped].into_iter().filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() {
        return Err(Failure::usage_error(
            "no prompt: none was given, and standard input is empty",
            "add a prompt, as in `pal -p 'Why does the test fail?'`, or pipe it in",
        ));
    }
    Ok(PromptSource::Prompt(parts.join("\n\n")))
}

/// Reads standard input if it starts within [`STDIN_TIMEOUT`] or is closed.
fn read_if_ready() -> Result<String, Failure> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut first = [0];
        let mut input = std::io::stdin();
        let begun = loop {
            match input.read(&mut first) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                begun => break begun,
            }
        };
        // The receiver may have timed out; then the input is not needed.
        let _ = sender.send(None);
        let rest = match begun {
            Ok(0) => Ok(String::new()),
            Ok(_) => read(first.as_slice().chain(input)),
            Err(error) => Err(Failure::new(format!("standard input: {error}"))),
        };
        let _ = sender.send(Some(rest));
    });
    if receiver.recv_timeout(STDIN_TIMEOUT).is_err() {
        print_notice("standard input is open but empty; continuing without it (`< /dev/null` closes it)");
        return Ok(String::new());
    }
    receiver.recv().ok().flatten().unwrap_or_else(|| Ok(String::new()))
}

fn read(input: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let done = input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    done.map_err(|error| Failure::new(format!("standard input: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Failure::with_hint(
            format!("standard input is larger than {} MB", INPUT_BYTES_MAX >> 20),
            "save it to a file and name the file in the prompt",
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::with_hint(
            "standard input is not UTF-8 text",
            "save it to a file and name the file in the prompt",
        )
    })
}

/// Error for a single word that is not a command.
fn unknown_command(word: &str) -> Failure {
    let command = CliArgs::command();
    let names: Vec<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
    let word = pal_report::clip_line(word, 40);
    match closest_word(&word, &names) {
        Some(name) => Failure::usage_error(
            format!("unknown command \"{word}\"; did you mean \"{name}\"?"),
            "`pal --help` lists all commands",
        ),
        None => Failure::usage_error(
            format!("unknown command \"{word}\""),
            "`pal --help` lists all commands; `pal -p 'PROMPT'` sends a prompt to the agent",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_gets_a_suggestion() {
        assert!(unknown_command("sesions").to_string().contains("did you mean \"sessions\"?"));
        assert!(unknown_command("improve everything").to_string().contains("pal -p"));
    }
}
