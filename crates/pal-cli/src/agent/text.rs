//! `--output-format text`: the answer on standard output; on standard error, in quiet lines, what happens meanwhile.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use pal_agent::{Denial, Ended, Event, telling};
use pal_model::{Boundary, CacheBreak, ToolUseId};

use super::{Show, error_of, exit_code};
use crate::colour::{COLUMNS, clipped};
use crate::failure::Failure;
use crate::progress::Countdown;
use crate::table::{counted, harmless_lines, money, thousands};

/// Shows what happens to a person.
pub(crate) struct Text<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Whether anything but the answer and errors is told.
    tells: bool,
    /// Whether the answer goes to a terminal, which it must not drive.
    is_terminal: bool,
    countdown: Countdown,
    calls: HashMap<ToolUseId, String>,
    code: u8,
}

impl<'a> Text<'a> {
    /// Answers go to `out`; what happens meanwhile goes to `err`, if somebody `tells`.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        tells: bool,
        is_terminal: bool,
    ) -> Text<'a> {
        Text { out, err, tells, is_terminal, countdown: Countdown::default(), calls: HashMap::new(), code: 0 }
    }

    /// A line on standard error, about something that happened on the way.
    fn tell(&mut self, line: &str) -> Result<(), Failure> {
        self.countdown.end();
        if self.tells {
            writeln!(self.err, "  {}", clipped(line, COLUMNS - 3)).map_err(|error| lost(&error))?;
        }
        Ok(())
    }

    /// An error, which is always told, whole.
    fn complain(&mut self, what: &str) -> Result<(), Failure> {
        self.countdown.end();
        writeln!(self.err, "pal: {}", harmless_lines(what)).map_err(|error| lost(&error))
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), Failure> {
        self.countdown.end();
        self.code = exit_code(&ended.end);
        if !ended.text.is_empty() {
            let text = if self.is_terminal { harmless_lines(&ended.text) } else { ended.text.clone() };
            write!(self.out, "{text}{}", if text.ends_with('\n') { "" } else { "\n" })?;
        }
        // The answer comes before what is said of it on standard error.
        self.out.flush()?;
        if !ended.denials.is_empty() {
            self.complain(&refusals(&ended.denials))?;
        }
        if let Some(error) = error_of(&ended.end) {
            self.complain(error)?;
        }
        if self.tells {
            writeln!(self.err, "{}", spent(ended)).map_err(|error| lost(&error))?;
        }
        Ok(())
    }
}

impl Show for Text<'_> {
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Began(_) | Event::Message { .. } | Event::Text(_) | Event::Thinking(_) => Ok(()),
            Event::ToolPrinted { .. } | Event::Exchanged(_) | Event::Compacting { .. } => Ok(()),
            Event::Void { why } => self.tell(&format!("asked again: {why}")),
            Event::Waiting { why, attempt, of, left } => {
                if self.tells {
                    self.countdown.tell(why, *attempt, *of, *left);
                }
                Ok(())
            }
            Event::ToolBegan { call, input, .. } => {
                self.calls.insert(call.clone(), gist(input));
                Ok(())
            }
            Event::ToolEnded { call, name, is_error, took, bytes } => {
                let gist = self.calls.remove(call).unwrap_or_default();
                let end = if *is_error { "failed".to_owned() } else { size(*bytes) };
                let told = format!(", {end}{}", seconds(*took));
                let room = (COLUMNS - 3).saturating_sub(told.chars().count());
                let call = clipped(&format!("{name} {gist}"), room);
                self.tell(&format!("{call}{told}"))
            }
            Event::Compacted(boundary) => self.tell(&compacted(boundary)),
            Event::CacheBroke(fall) if fall.cause.is_expected() => Ok(()),
            Event::CacheBroke(fall) => self.tell(&broke(fall)),
            Event::Doing { agent, doing } => self.tell(&format!("{agent}: {doing}")),
            Event::Notice(text) => self.tell(text),
            Event::Warning(text) => self.complain(text),
            Event::Mode(mode) => self.tell(&format!("the permission mode is {mode} now")),
            Event::Ended(ended) => self.ended(ended),
        }
    }

    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure> {
        self.complain(&format!("line {number} of standard input: {why}"))
    }

    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure> {
        self.countdown.end();
        match failure {
            Some(failure) => {
                writeln!(self.err, "{failure}").map_err(|error| lost(&error))?;
                Ok(failure.exit_code())
            }
            None => Ok(ExitCode::from(self.code)),
        }
    }
}

/// Standard error is gone: there is nobody to say more to.
fn lost(error: &std::io::Error) -> Failure {
    Failure::new(format!("standard error: {error}"))
}

/// What a call is about, in a few words.
fn gist(input: &str) -> String {
    clipped(&telling(input), COLUMNS)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => counted(bytes as usize, "byte"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// How long something took, where that is worth a word.
fn seconds(took: Duration) -> String {
    if took < Duration::from_millis(500) { String::new() } else { format!(" in {:.1} s", took.as_secs_f64()) }
}

fn compacted(boundary: &Boundary) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), thousands);
    let (before, after) = (tokens(boundary.tokens_before), tokens(boundary.tokens_after));
    format!("the conversation was compacted: {before} → {after} tokens ({})", boundary.how)
}

fn broke(fall: &CacheBreak) -> String {
    let cost = fall.cost.map_or(String::new(), |cost| format!(", {}", money(cost)));
    format!("{} tokens fell out of the cache{cost}: {}", thousands(fall.tokens), fall.cause)
}

fn spent(ended: &Ended) -> String {
    let spent = &ended.spent;
    let prompt = spent
        .input_tokens
        .saturating_add(spent.cache_creation_input_tokens)
        .saturating_add(spent.cache_read_input_tokens);
    let read = if prompt == 0 { 0.0 } else { spent.cache_read_input_tokens as f64 / prompt as f64 };
    format!(
        "{}, {:.1} s: {} tokens in ({:.0} % cached), {} out, {}",
        counted(ended.turns as usize, "turn"),
        ended.took.as_secs_f64(),
        thousands(prompt),
        read * 100.0,
        thousands(spent.output_tokens),
        money(spent.cost)
    )
}

/// What was refused, and how it would be allowed.
fn refusals(denials: &[Denial]) -> String {
    let mut text = format!("{} refused:", counted(denials.len(), "call"));
    for denial in denials.iter().take(5) {
        let call = format!("{} {}: {}", denial.tool_name, gist(&denial.tool_input), denial.reason);
        text.push_str(&format!("\n  {}", clipped(&call, 2 * COLUMNS)));
    }
    if denials.len() > 5 {
        text.push_str(&format!("\n  … and {} more", denials.len() - 5));
    }
    let mut rules: Vec<&str> = denials.iter().filter_map(|denial| denial.rule.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    if !rules.is_empty() {
        text.push_str(&format!("\n  hint: --allowed-tools '{}' allows it", rules.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use pal_agent::End;
    use pal_model::Totals;

    use super::*;

    fn shown(tells: bool, is_terminal: bool, events: &[Event]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut text = Text::new(&mut out, &mut err, tells, is_terminal);
        events.iter().for_each(|event| text.event(event).unwrap());
        text.finish(None).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn ended(end: End, text: &str, denials: Vec<Denial>) -> Event {
        Event::Ended(Ended {
            end,
            text: text.to_owned(),
            turns: 2,
            took: Duration::from_millis(4_200),
            took_provider: Duration::from_millis(4_000),
            spent: Totals {
                cache_read_input_tokens: 900,
                input_tokens: 100,
                cost: 0.01,
                ..Totals::default()
            },
            denials,
        })
    }

    fn tool(input: &str, is_error: bool) -> [Event; 2] {
        let call = ToolUseId::from("toolu_1");
        let (name, took) = (smol_str::SmolStr::from("Read"), Duration::from_millis(1_260));
        [
            Event::ToolBegan { call: call.clone(), name: name.clone(), input: input.to_owned() },
            Event::ToolEnded { call, name, is_error, took, bytes: 4_321 },
        ]
    }

    #[test]
    fn the_answer_is_all_that_standard_output_gets() {
        let mut events = tool(r#"{"file_path":"src/main.rs","limit":3}"#, false).to_vec();
        events.extend([
            Event::Text("Do".into()),
            Event::Notice("a word".into()),
            ended(End::Done, "Done.", vec![]),
        ]);
        let (out, err) = shown(true, false, &events);
        assert_eq!(out, "Done.\n");
        assert_eq!(
            err,
            "  Read src/main.rs, 4.3 KB in 1.3 s\n  a word\n2 turns, 4.2 s: 1 000 tokens in (90 % cached), 0 out, $0.0100\n"
        );
        assert_eq!(
            shown(false, false, &events),
            ("Done.\n".to_owned(), String::new()),
            "quiet when nobody looks"
        );
    }

    #[test]
    fn lines_fit_and_nothing_drives_the_terminal() {
        let long = format!(r#"{{"command":"echo {}\u001b[2J\nrm"}}"#, "long ".repeat(50));
        let mut events = tool(&long, true).to_vec();
        events.push(ended(End::Done, "a\u{1b}[2Jb", vec![]));
        let (out, err) = shown(true, true, &events);
        assert_eq!(out, "a·[2Jb\n");
        let line = err.lines().next().unwrap();
        assert!(line.chars().count() < COLUMNS && line.ends_with(", failed in 1.3 s"), "{line}");
        assert!(!err.contains('\u{1b}'));
        let (out, _) = shown(true, false, &events);
        assert_eq!(out, "a\u{1b}[2Jb\n", "a file gets what was said");
    }

    #[test]
    fn errors_and_refusals_are_told_whoever_looks() {
        let denial = Denial {
            tool_name: "Bash".into(),
            tool_use_id: "toolu_1".into(),
            tool_input: r#"{"command":"git push"}"#.into(),
            reason: "nothing allows it".into(),
            rule: Some("Bash(git push:*)".into()),
        };
        let event = ended(End::Limit("3 turns were used up".into()), "", vec![denial.clone(), denial]);
        let (out, err) = shown(false, false, &[event]);
        assert_eq!(out, "");
        for words in [
            "2 calls refused:",
            "Bash git push: nothing allows it",
            "--allowed-tools 'Bash(git push:*)'",
            "pal: 3 turns were used up",
        ] {
            assert!(err.contains(words), "{words}\n{err}");
        }
    }
}
