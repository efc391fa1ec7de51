//! `--output-format text`: the answer on standard output, progress on standard error.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use pal_events::{AgentEvent, PromptResult, ToolDenial};
use pal_model::text::{count_noun, group_digits};
use pal_model::{Boundary, CacheBreak, ToolUseId, UsageTotals};
use pal_report::{DEFAULT_COLUMNS, clip_line, format_usd, sanitize_lines, wrap_lines};

use super::output_format::{Show, error_of};
use crate::exit_codes::prompt_exit_code;
use crate::failure::Failure;
use crate::progress::Countdown;

/// Prints events as text.
pub(crate) struct TextOutput<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Print progress, not only the answer and errors.
    is_verbose: bool,
    /// The answer goes to a terminal: control characters are replaced.
    is_terminal: bool,
    /// A denied call is not success.
    is_strict: bool,
    countdown: Countdown,
    calls: HashMap<ToolUseId, String>,
    code: u8,
    /// Cost of all prompts in dollars.
    cost: f64,
}

impl<'a> TextOutput<'a> {
    /// Writes answers to `out` and errors to `err`; progress goes to `err` if `is_verbose`.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        is_verbose: bool,
        is_terminal: bool,
    ) -> TextOutput<'a> {
        TextOutput {
            out,
            err,
            is_verbose,
            is_terminal,
            is_strict: false,
            countdown: Countdown::default(),
            calls: HashMap::new(),
            code: 0,
            cost: 0.0,
        }
    }

    /// Makes a denied call an exit code of its own.
    pub(crate) fn with_strict(self, is_strict: bool) -> TextOutput<'a> {
        TextOutput { is_strict, ..self }
    }

    /// Prints a line of progress.
    fn progress(&mut self, line: &str) -> Result<(), Failure> {
        self.countdown.end();
        if self.is_verbose {
            writeln!(self.err, "  {}", clip_line(line, DEFAULT_COLUMNS - 3))
                .map_err(|error| stderr_failure(&error))?;
        }
        Ok(())
    }

    /// Prints a notice in full: what it advises is often at its end.
    fn notice(&mut self, text: &str) -> Result<(), Failure> {
        self.countdown.end();
        if self.is_verbose {
            for line in wrap_lines(text, DEFAULT_COLUMNS - 3) {
                writeln!(self.err, "  {line}").map_err(|error| stderr_failure(&error))?;
            }
        }
        Ok(())
    }

    /// Prints an error in full.
    fn error(&mut self, what: &str) -> Result<(), Failure> {
        self.countdown.end();
        writeln!(self.err, "pal: {}", sanitize_lines(what)).map_err(|error| stderr_failure(&error))
    }

    fn show_end(&mut self, ended: &PromptResult) -> Result<(), Failure> {
        self.countdown.end();
        self.code = prompt_exit_code(ended, self.is_strict);
        self.cost += ended.spent.cost;
        if !ended.text.is_empty() {
            let text = if self.is_terminal { sanitize_lines(&ended.text) } else { ended.text.clone() };
            write!(self.out, "{text}{}", if text.ends_with('\n') { "" } else { "\n" })?;
        }
        // The answer precedes its summary on standard error.
        self.out.flush()?;
        if !ended.denials.is_empty() {
            self.error(&refusals(&ended.denials))?;
        }
        if let Some(error) = error_of(&ended.end) {
            self.error(error)?;
        }
        let asked_model = ended.turns > 0 || !ended.took.is_zero();
        if self.is_verbose && asked_model {
            writeln!(self.err, "{}", spent(ended)).map_err(|error| stderr_failure(&error))?;
        }
        Ok(())
    }
}

impl Show for TextOutput<'_> {
    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        match event {
            AgentEvent::SessionStarted(_)
            | AgentEvent::Message { .. }
            | AgentEvent::Text(_)
            | AgentEvent::Progress(_)
            | AgentEvent::Thinking(_) => Ok(()),
            AgentEvent::ToolPrinted { .. } | AgentEvent::ExchangeEnded(_) | AgentEvent::Compacting { .. } => {
                Ok(())
            }
            AgentEvent::AnswerDiscarded { why } => self.progress(&format!("retrying: {why}")),
            AgentEvent::Waiting { why, attempt, of, left } => {
                if self.is_verbose {
                    self.countdown.show_wait(why, *attempt, *of, *left);
                }
                Ok(())
            }
            AgentEvent::ToolStarted { call, input, .. } => {
                self.calls.insert(call.clone(), call_subject(input));
                Ok(())
            }
            AgentEvent::ToolEnded { call, name, is_error, took, bytes } => {
                let subject = self.calls.remove(call).unwrap_or_default();
                let end = if *is_error { "failed".to_owned() } else { size(*bytes) };
                let told = format!(", {end}{}", seconds(*took));
                let room = (DEFAULT_COLUMNS - 3).saturating_sub(told.chars().count());
                let call = clip_line(&format!("{name} {subject}"), room);
                self.progress(&format!("{call}{told}"))
            }
            AgentEvent::Compacted(boundary) => self.progress(&compacted(boundary)),
            AgentEvent::CacheBroken(fall) if fall.cause.is_expected() => Ok(()),
            AgentEvent::CacheBroken(fall) => self.progress(&cache_break(fall)),
            AgentEvent::SubagentActivity { agent, doing } => self.progress(&format!("{agent}: {doing}")),
            AgentEvent::Notice(text) | AgentEvent::ColdTurn { text, .. } => self.notice(text),
            AgentEvent::Alarm { text, .. } => self.error(text),
            AgentEvent::Warning(text) => self.error(text),
            AgentEvent::Mode(mode) => self.progress(&format!("permission mode: {mode}")),
            AgentEvent::Ended(ended) => self.show_end(ended),
        }
    }

    fn background(&mut self, spent: &UsageTotals) -> Result<(), Failure> {
        let (work, all) = (format_usd(spent.cost), format_usd(self.cost + spent.cost));
        self.progress(&format!(
            "background work: {} tokens, {work}; in total {all}{}",
            group_digits(spent.tokens()),
            spent.simulated_mark()
        ))
    }

    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure> {
        self.error(&format!("line {number} of standard input: {why}"))
    }

    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure> {
        self.countdown.end();
        match failure {
            Some(failure) => {
                writeln!(self.err, "{failure}").map_err(|error| stderr_failure(&error))?;
                Ok(failure.exit_code())
            }
            None => Ok(ExitCode::from(self.code)),
        }
    }
}

/// Failure to write to standard error.
fn stderr_failure(error: &std::io::Error) -> Failure {
    Failure::new(format!("standard error: {error}"))
}

/// Subject of a call in one line.
fn call_subject(input: &str) -> String {
    clip_line(&pal_events::call_subject(input), DEFAULT_COLUMNS)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => count_noun(bytes as usize, "byte"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Duration, if it is half a second or more.
fn seconds(took: Duration) -> String {
    if took < Duration::from_millis(500) { String::new() } else { format!(" in {:.1} s", took.as_secs_f64()) }
}

fn compacted(boundary: &Boundary) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), group_digits);
    let (before, after) = (tokens(boundary.tokens_before), tokens(boundary.tokens_after));
    let note = if boundary.has_not_shrunk() {
        "; this did not shrink the context, and /uncompact takes it back"
    } else {
        ""
    };
    format!("compacted: {before} → {after} tokens ({}){note}", boundary.method)
}

fn cache_break(fall: &CacheBreak) -> String {
    let cost = fall.cost.map_or(String::new(), |cost| format!(", {}", format_usd(cost)));
    format!("cache break: {} tokens{cost}: {}", group_digits(fall.tokens), fall.reason())
}

fn spent(ended: &PromptResult) -> String {
    let spent = &ended.spent;
    let turns = count_noun(ended.turns as usize, "turn");
    if !spent.is_reported() {
        return format!("{turns}, {:.1} s; the server reports no usage", ended.took.as_secs_f64());
    }
    let prompt = spent
        .input_tokens
        .saturating_add(spent.cache_creation_input_tokens)
        .saturating_add(spent.cache_read_input_tokens);
    let read = if prompt == 0 { 0.0 } else { spent.cache_read_input_tokens as f64 / prompt as f64 };
    format!(
        "{}, {:.1} s: {} tokens in ({:.0}% cached), {} out, {}{}",
        turns,
        ended.took.as_secs_f64(),
        group_digits(prompt),
        read * 100.0,
        group_digits(spent.output_tokens),
        format_usd(spent.cost),
        spent.simulated_mark()
    )
}

/// Denied calls, and the option that allows them.
fn refusals(denials: &[ToolDenial]) -> String {
    let mut text = format!("{} denied:", count_noun(denials.len(), "call"));
    for denial in denials.iter().take(5) {
        let subject = call_subject(&denial.tool_input);
        let call = format!("{}: {}", format!("{} {subject}", denial.tool_name).trim_end(), denial.reason);
        text.push_str(&format!("\n  {}", clip_line(&call, 2 * DEFAULT_COLUMNS)));
    }
    if denials.len() > 5 {
        text.push_str(&format!("\n  … and {} more", denials.len() - 5));
    }
    let mut rules: Vec<&str> = denials.iter().filter_map(|denial| denial.rule.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    if !rules.is_empty() {
        text.push_str(&format!("\n  hint: --allowed-tools '{}' allows them", rules.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use pal_events::PromptEnd;
    use pal_model::UsageTotals;

    use super::*;

    fn shown(is_verbose: bool, is_terminal: bool, events: &[AgentEvent]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut text = TextOutput::new(&mut out, &mut err, is_verbose, is_terminal);
        events.iter().for_each(|event| text.event(event).unwrap());
        text.finish(None).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn ended(end: PromptEnd, text: &str, denials: Vec<ToolDenial>) -> AgentEvent {
        AgentEvent::Ended(PromptResult {
            end,
            text: text.to_owned(),
            turns: 2,
            took: Duration::from_millis(4_200),
            took_provider: Duration::from_millis(4_000),
            spent: UsageTotals {
                cache_read_input_tokens: 900,
                input_tokens: 100,
                cost: 0.01,
                ..UsageTotals::default()
            },
            denials,
            structured_output: None,
        })
    }

    fn tool(input: &str, is_error: bool) -> [AgentEvent; 2] {
        let call = ToolUseId::from("toolu_1");
        let (name, took) = (smol_str::SmolStr::from("Read"), Duration::from_millis(1_260));
        [
            AgentEvent::ToolStarted { call: call.clone(), name: name.clone(), input: input.to_owned() },
            AgentEvent::ToolEnded { call, name, is_error, took, bytes: 4_321 },
        ]
    }

    #[test]
    fn what_a_simulator_answered_is_not_shown_as_money() {
        let AgentEvent::Ended(mut result) = ended(PromptEnd::Done, "Done.", vec![]) else { unreachable!() };
        result.spent.simulated = 1;
        let (_, err) = shown(true, false, &[AgentEvent::Ended(result)]);
        assert_eq!(err, "2 turns, 4.2 s: 1,000 tokens in (90% cached), 0 out, $0.0100 simulated\n");
    }

    #[test]
    fn only_the_answer_goes_to_standard_output() {
        let mut events = tool(r#"{"file_path":"src/main.rs","limit":3}"#, false).to_vec();
        events.extend([
            AgentEvent::Text("Do".into()),
            AgentEvent::Notice("a word".into()),
            ended(PromptEnd::Done, "Done.", vec![]),
        ]);
        let (out, err) = shown(true, false, &events);
        assert_eq!(out, "Done.\n");
        assert_eq!(
            err,
            "  Read src/main.rs, 4.3 KB in 1.3 s\n  a word\n2 turns, 4.2 s: 1,000 tokens in (90% cached), 0 out, $0.0100\n"
        );
        assert_eq!(
            shown(false, false, &events),
            ("Done.\n".to_owned(), String::new()),
            "quiet without a terminal"
        );
    }

    #[test]
    fn lines_fit_the_terminal_and_control_characters_are_replaced() {
        let long = format!(r#"{{"command":"echo {}\u001b[2J\nrm"}}"#, "long ".repeat(50));
        let mut events = tool(&long, true).to_vec();
        events.push(ended(PromptEnd::Done, "a\u{1b}[2Jb", vec![]));
        let (out, err) = shown(true, true, &events);
        assert_eq!(out, "a·[2Jb\n");
        let line = err.lines().next().unwrap();
        assert!(line.chars().count() < DEFAULT_COLUMNS && line.ends_with(", failed in 1.3 s"), "{line}");
        assert!(!err.contains('\u{1b}'));
        let (out, _) = shown(true, false, &events);
        assert_eq!(out, "a\u{1b}[2Jb\n", "a file gets the exact answer");
    }

    #[test]
    fn notices_are_wrapped_and_complete() {
        let notice =
            format!("the window {}is small; max_context_tokens sets it", "of this server ".repeat(9));
        let (_, err) = shown(true, false, &[AgentEvent::Notice(notice.as_str().into())]);
        let lines: Vec<&str> = err.lines().map(str::trim_start).collect();
        assert_eq!(lines.join(" "), notice);
        assert!(err.lines().all(|line| line.chars().count() < DEFAULT_COLUMNS), "{err}");
    }

    #[test]
    fn the_line_about_background_work_fits_the_terminal() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let spent =
            UsageTotals { simulated: 1, input_tokens: 1_234_567, cost: 12.3456, ..UsageTotals::default() };
        TextOutput::new(&mut out, &mut err, true, false).background(&spent).unwrap();
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "  background work: 1,234,567 tokens, $12.3456; in total $12.3456 simulated\n"
        );
    }

    #[test]
    fn errors_and_denials_are_always_printed() {
        let denial = ToolDenial {
            tool_name: "Bash".into(),
            tool_use_id: "toolu_1".into(),
            tool_input: r#"{"command":"git push"}"#.into(),
            reason: "nothing allows it".into(),
            rule: Some("Bash(git push:*)".into()),
        };
        let question =
            ToolDenial { tool_name: "AskUserQuestion".into(), tool_input: "{}".into(), ..denial.clone() };
        let denials = vec![denial.clone(), denial, question];
        let event = ended(PromptEnd::Limit("3 turns were used up".into()), "", denials);
        let (out, err) = shown(false, false, &[event]);
        assert_eq!(out, "");
        for words in [
            "3 calls denied:",
            "Bash git push: nothing allows it",
            "  AskUserQuestion: nothing allows it",
            "--allowed-tools 'Bash(git push:*)'",
            "pal: 3 turns were used up",
        ] {
            assert!(err.contains(words), "{words}\n{err}");
        }
    }
}
