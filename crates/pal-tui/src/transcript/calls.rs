//! Calls of tools: one line each, with what matters of their result below.

use std::time::Duration;

use pal_agent::telling;
use pal_model::ToolUseId;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::words::outcome;
use crate::difference;
use crate::paint::{clipped, columns, harmless, harmless_line, wrapped};
use crate::theme::Theme;

/// Lines of a running command that are seen.
const PRINTED_LINES: usize = 3;
/// Lines of a result that stay in sight.
const RESULT_LINES: usize = 3;
/// Lines of a change that stay in sight.
const CHANGED_LINES: usize = 24;

/// Calls that are under way.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
}

struct Call {
    id: ToolUseId,
    name: String,
    input: String,
    printed: String,
    is_running: bool,
    /// How it ended: whether it failed, how long it took, the bytes of its result.
    ended: Option<(bool, Duration, u64)>,
}

impl Calls {
    /// The model wants a call.
    pub(super) fn wanted(&mut self, id: &ToolUseId, name: &str, input: &str) {
        let call = Call {
            id: id.clone(),
            name: name.to_owned(),
            input: input.to_owned(),
            printed: String::new(),
            is_running: false,
            ended: None,
        };
        match self.find(id) {
            Some(known) => known.input = call.input,
            None => self.calls.push(call),
        }
    }

    /// A call is carried out, perhaps with another input than the model gave.
    pub(super) fn began(&mut self, id: &ToolUseId, name: &str, input: &str) {
        self.wanted(id, name, input);
        if let Some(call) = self.find(id) {
            call.is_running = true;
        }
    }

    pub(super) fn printed(&mut self, id: &ToolUseId, text: &str) {
        if let Some(call) = self.find(id) {
            call.printed.push_str(&harmless(text));
            // Only the end is ever seen.
            let from = call.printed.rmatch_indices('\n').nth(PRINTED_LINES + 1).map_or(0, |(at, _)| at + 1);
            call.printed.drain(..from);
        }
    }

    pub(super) fn ended(&mut self, id: &ToolUseId, is_error: bool, took: Duration, bytes: u64) {
        if let Some(call) = self.find(id) {
            call.ended = Some((is_error, took, bytes));
        }
    }

    /// What a call that is under way is about.
    pub(super) fn headline(&mut self, id: &ToolUseId, width: usize) -> Option<String> {
        self.find(id).map(|call| headline(&call.name, &call.input, width))
    }

    /// The result of a call is in the log: what stays in sight of it.
    pub(super) fn returned(
        &mut self,
        id: &ToolUseId,
        is_error: bool,
        text: &str,
        width: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let Some(at) = self.calls.iter().position(|call| call.id == *id) else { return Vec::new() };
        let call = self.calls.remove(at);
        let (is_error, took, bytes) = match call.ended {
            Some((failed, took, bytes)) => (failed || is_error, took, bytes),
            None => (is_error, Duration::ZERO, text.len() as u64),
        };
        let told = match (is_error, call.is_running) {
            (true, false) => String::from("not carried out"),
            _ => outcome(is_error, took, bytes),
        };
        let style = if is_error { theme.bad() } else { theme.good() };
        let mut lines = vec![call.line(&told, style, width, theme)];
        let changes = match is_error {
            true => Vec::new(),
            false => difference::of_call(&call.name, &call.read(), width, CHANGED_LINES, theme),
        };
        match (call.name == "Bash" && call.is_running, is_error) {
            (true, _) => lines.extend(ending(text, width, theme)),
            (false, true) => lines.extend(beginning(text, width, theme)),
            (false, false) => {}
        }
        lines.extend(changes);
        lines
    }

    /// Calls that never returned.
    pub(super) fn given_up(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().map(|call| call.line("given up", theme.warning(), width, theme)).collect()
    }

    /// Calls that are under way, with the end of what they printed.
    pub(super) fn live(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for call in &self.calls {
            let told = match (&call.ended, call.is_running) {
                (Some(_), _) => "done",
                (None, true) => "running",
                (None, false) => "waits",
            };
            lines.push(call.line(told, theme.accent(), width, theme));
            if call.ended.is_none() {
                let printed: Vec<&str> = call.printed.lines().collect();
                let from = printed.len().saturating_sub(PRINTED_LINES);
                lines.extend(printed[from..].iter().map(|line| quiet(line, width, theme)));
            }
        }
        lines
    }

    fn find(&mut self, id: &ToolUseId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == *id)
    }
}

impl Call {
    fn read(&self) -> Value {
        serde_json::from_str(&self.input).unwrap_or(Value::Null)
    }

    fn line(
        &self,
        told: &str,
        style: ratatui_core::style::Style,
        width: usize,
        theme: Theme,
    ) -> Line<'static> {
        let told = format!("  {told}");
        let room = width.saturating_sub(columns(&told) + 2);
        let line = headline(&self.name, &self.input, room);
        let (name, gist) = line.split_once(' ').unwrap_or((&line, ""));
        let gist = if gist.is_empty() { String::new() } else { format!(" {gist}") };
        Line::from(vec![
            Span::styled("● ", style),
            Span::styled(name.to_owned(), theme.strong()),
            Span::raw(gist),
            Span::styled(told, theme.dim()),
        ])
    }
}

/// A tool and what it is called with, in a few words.
pub(super) fn headline(name: &str, input: &str, width: usize) -> String {
    let line = format!("{} {}", harmless_line(name), harmless_line(&telling(input)));
    clipped(line.trim_end(), width)
}

/// The lines of a result that are not empty.
fn lines_of(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// The end of what a command printed: that is where it says what came of it.
fn ending(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = harmless(text);
    let all = lines_of(&text);
    let hidden = all.len().saturating_sub(RESULT_LINES);
    let above = (hidden > 0).then(|| quiet(&format!("… {} above", counted(hidden)), width, theme));
    above.into_iter().chain(all[hidden..].iter().map(|line| quiet(line, width, theme))).collect()
}

/// How a failure is put: that is where it says why.
fn beginning(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = harmless(text);
    // The line above says so already.
    let text = text.strip_prefix("Not carried out: ").unwrap_or(&text);
    let all = lines_of(text);
    let shown = all.iter().take(RESULT_LINES).flat_map(|line| {
        let (spans, indent) = ([Span::styled((*line).to_owned(), theme.dim())], [Span::raw("  ")]);
        wrapped(&spans, &indent, &indent, width)
    });
    let hidden = all.len().saturating_sub(RESULT_LINES);
    let below = (hidden > 0).then(|| quiet(&format!("… {} more", counted(hidden)), width, theme));
    shown.chain(below).collect()
}

fn counted(lines: usize) -> String {
    if lines == 1 { String::from("1 line") } else { format!("{lines} lines") }
}

fn quiet(line: &str, width: usize, theme: Theme) -> Line<'static> {
    Line::from(Span::styled(format!("  {}", clipped(line, width.saturating_sub(2))), theme.dim()))
}
