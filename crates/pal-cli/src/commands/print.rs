//! `pal -p`: the agent works on what was typed and piped in; what happens is shown in the form that was asked for.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::CommandFactory;
use pal_model::nearest;

use crate::agent::{Json, Lines, Show, StreamJson, Task, Text, work, work_as_teammate};
use crate::arguments::{Arguments, InputFormat, OutputFormat, Print};
use crate::aside;
use crate::failure::Failure;
use crate::leftovers::LeftoverGuard;
use crate::settings::Settings;
use crate::stored::{chance, now};
use crate::terminal;

/// More is no prompt; the tools read files of any size.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// How long somebody who gave a prompt, too, has to begin writing to standard input: programs that start others often leave
/// it open and never write to it.
const INPUT_PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn print(print: &Print, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let _guard = LeftoverGuard::begin();
    if print.is_teammate {
        return work_as_teammate(print, settings);
    }
    // Line by line one can talk through a pipe, too.
    let talks = print.plain || (is_sentence(print) && terminal::is_there());
    if !print.is_print && talks {
        return terminal::talk(print, settings);
    }
    if !print.is_print {
        return match &print.prompt {
            Some(word) => Err(no_command(word)),
            None => {
                write!(out, "{}", Arguments::command().render_help())?;
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    if let Some((what, hint)) = print.contradiction() {
        return Err(Failure::wrong_use(what, hint));
    }
    let task = task(print)?;
    let (mut err, verbose) = (std::io::stderr(), print.verbose);
    let lines = |out| Lines::new(out, chance(), now, print.max_turns);
    let mut show: Box<dyn Show + '_> = match print.output_format {
        OutputFormat::Text => {
            let tells = verbose || err.is_terminal();
            Box::new(Text::new(out, &mut err, tells, std::io::stdout().is_terminal()))
        }
        OutputFormat::Json => Box::new(Json::new(lines(out))),
        OutputFormat::StreamJson => {
            Box::new(StreamJson::new(lines(out), print.include_partial_messages, verbose))
        }
    };
    match work(&task, print, settings, show.as_mut()) {
        Ok(()) => show.finish(None),
        Err(Failure::ReaderLeft) => Err(Failure::ReaderLeft),
        Err(failure) => show.finish(Some(&failure)),
    }
}

/// Whether what was typed can be meant for the agent: one word is more likely a command with a typo.
fn is_sentence(print: &Print) -> bool {
    print.prompt.as_ref().is_none_or(|prompt| prompt.trim().contains(char::is_whitespace))
}

/// What the agent shall do: what was typed, and what is piped in behind it.
fn task(print: &Print) -> Result<Task, Failure> {
    if print.input_format == InputFormat::StreamJson {
        return Ok(Task::Lines);
    }
    let piped = match (std::io::stdin().is_terminal(), &print.prompt) {
        (true, _) => String::new(),
        (false, None) => read(std::io::stdin())?,
        (false, Some(_)) => read_soon()?,
    };
    let typed = print.prompt.as_deref().unwrap_or_default();
    let parts: Vec<&str> = [typed, &piped].into_iter().filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() {
        return Err(Failure::wrong_use(
            "there is nothing to do: no prompt was given, and standard input is empty",
            "pal -p 'Why does the test fail?', or pipe the prompt in",
        ));
    }
    Ok(Task::Prompt(parts.join("\n\n")))
}

/// Standard input, if it begins soon or is closed.
fn read_soon() -> Result<String, Failure> {
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
        // Nobody may be waiting any more; then nothing is missed.
        let _ = sender.send(None);
        let rest = match begun {
            Ok(0) => Ok(String::new()),
            Ok(_) => read(first.as_slice().chain(input)),
            Err(error) => Err(Failure::new(format!("standard input: {error}"))),
        };
        let _ = sender.send(Some(rest));
    });
    if receiver.recv_timeout(INPUT_PATIENCE).is_err() {
        aside::tell(format_args!(
            "standard input is open and nothing comes from it: going on without it; `< /dev/null` closes it"
        ));
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
            format!("standard input has more than {} MB", INPUT_BYTES_MAX >> 20),
            "keep it in a file and name that in the prompt",
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::with_hint("standard input is no UTF-8 text", "keep it in a file and name that in the prompt")
    })
}

/// A word that is no command, without -p.
fn no_command(word: &str) -> Failure {
    let command = Arguments::command();
    let names: Vec<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
    let near = nearest(word, &names);
    let what = format!("`{}` is no command", crate::colour::clipped(word, 40));
    match near {
        Some(name) => Failure::wrong_use(what, format!("did you mean `pal {name}`?")),
        None => {
            Failure::wrong_use(what, "pal -p 'PROMPT' gives it to the agent; pal --help lists the commands")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_almost_a_command_is_told_which() {
        assert!(no_command("sesions").to_string().contains("`pal sessions`"));
        assert!(no_command("improve everything").to_string().contains("pal -p"));
    }
}
