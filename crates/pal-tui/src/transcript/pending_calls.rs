//! Tool calls: one line each, followed by an excerpt of the result.

use std::time::Duration;

use pal_events::call_subject;
use pal_model::ToolUseId;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::event_text::result_summary;
use super::todo_list::TodoList;
use crate::diff;
use crate::styled_text::{columns, sanitize, sanitize_line, truncate_columns, wrap};
use crate::theme::Theme;

/// Visible lines of a running command's output.
const PRINTED_LINES: usize = 3;
/// Visible lines of a result.
const RESULT_LINES: usize = 3;
/// Visible lines of a diff.
const CHANGED_LINES: usize = 24;

/// Calls without a result.
pub(super) struct PendingCalls {
    calls: Vec<PendingCall>,
    /// Hint behind the number of hidden lines.
    pub(super) more_hint: &'static str,
}

struct PendingCall {
    id: ToolUseId,
    name: String,
    input: String,
    printed: String,
    is_running: bool,
    /// Outcome: error flag, duration, size of the result in bytes.
    ended: Option<(bool, Duration, u64)>,
}

impl PendingCalls {
    /// Creates an empty list; `more_hint` stands behind the number of hidden lines.
    pub(super) fn new(more_hint: &'static str) -> PendingCalls {
        PendingCalls { calls: Vec::new(), more_hint }
    }

    /// Adds a call that the model made.
    pub(super) fn add(&mut self, id: &ToolUseId, name: &str, input: &str) {
        let call = PendingCall {
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

    /// Marks a call as running, perhaps with another input than the model gave.
    pub(super) fn start(&mut self, id: &ToolUseId, name: &str, input: &str) {
        self.add(id, name, input);
        if let Some(call) = self.find(id) {
            call.is_running = true;
        }
    }

    pub(super) fn add_output(&mut self, id: &ToolUseId, text: &str) {
        if let Some(call) = self.find(id) {
            call.printed.push_str(&sanitize(text));
            // Only the end is shown.
            let from = call.printed.rmatch_indices('\n').nth(PRINTED_LINES + 1).map_or(0, |(at, _)| at + 1);
            call.printed.drain(..from);
        }
    }

    pub(super) fn finish(&mut self, id: &ToolUseId, is_error: bool, took: Duration, bytes: u64) {
        if let Some(call) = self.find(id) {
            call.ended = Some((is_error, took, bytes));
        }
    }

    /// Headline of a pending call.
    pub(super) fn headline(&mut self, id: &ToolUseId, width: usize) -> Option<String> {
        self.find(id).map(|call| headline(&call.name, &call.input, width))
    }

    /// Removes a call whose result is in the log and returns its lines.
    pub(super) fn take_result(
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
        let todos = TodoList::parse(&call.input).filter(|_| call.name == "Todo" && !is_error);
        let told = match (is_error, call.is_running) {
            _ if let Some(todos) = &todos => todos.summary(),
            (true, false) => String::from("not carried out"),
            _ => result_summary(is_error, took, bytes),
        };
        let style = if is_error { theme.bad() } else { theme.good() };
        let mut lines = vec![call.line(&told, style, width, theme)];
        let changes = match is_error {
            true => Vec::new(),
            false => diff::diff_excerpt(&call.name, &call.read(), width, CHANGED_LINES, theme),
        };
        match (call.name == "Bash" && call.is_running, is_error) {
            (true, _) => lines.extend(ending(text, self.more_hint, width, theme)),
            (false, true) => lines.extend(beginning(text, self.more_hint, width, theme)),
            // The page as text: its beginning says whether it is the wanted one.
            (false, false) if call.name == "WebFetch" => {
                lines.extend(beginning(text, self.more_hint, width, theme))
            }
            (false, false) => {}
        }
        lines.extend(changes);
        lines
    }

    /// Removes calls that never returned and returns their lines.
    pub(super) fn take_unfinished(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().map(|call| call.line("given up", theme.warning(), width, theme)).collect()
    }

    /// Lines of pending calls, with the end of their output.
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

    fn find(&mut self, id: &ToolUseId) -> Option<&mut PendingCall> {
        self.calls.iter_mut().find(|call| call.id == *id)
    }
}

impl PendingCall {
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

/// Tool name and subject of a call.
pub(super) fn headline(name: &str, input: &str, width: usize) -> String {
    let line = format!("{} {}", sanitize_line(name), sanitize_line(&call_subject(input)));
    truncate_columns(line.trim_end(), width)
}

/// Non-empty lines of a result.
fn lines_of(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// The end of a command's output, which usually has its outcome.
fn ending(text: &str, hint: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = sanitize(text);
    let all = lines_of(&text);
    let hidden = all.len().saturating_sub(RESULT_LINES);
    let above = (hidden > 0).then(|| quiet(&format!("… {} above{hint}", counted(hidden)), width, theme));
    above.into_iter().chain(all[hidden..].iter().map(|line| quiet(line, width, theme))).collect()
}

/// The beginning of an error, which usually has its cause.
fn beginning(text: &str, hint: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = sanitize(text);
    // The line above already says so.
    let text = text.strip_prefix("Not carried out: ").unwrap_or(&text);
    let all = lines_of(text);
    let shown = all.iter().take(RESULT_LINES).flat_map(|line| {
        let (spans, indent) = ([Span::styled((*line).to_owned(), theme.dim())], [Span::raw("  ")]);
        wrap(&spans, &indent, &indent, width)
    });
    let hidden = all.len().saturating_sub(RESULT_LINES);
    let below = (hidden > 0).then(|| quiet(&format!("… {} more{hint}", counted(hidden)), width, theme));
    shown.chain(below).collect()
}

fn counted(lines: usize) -> String {
    if lines == 1 { String::from("1 line") } else { format!("{lines} lines") }
}

fn quiet(line: &str, width: usize, theme: Theme) -> Line<'static> {
    Line::from(Span::styled(format!("  {}", truncate_columns(line, width.saturating_sub(2))), theme.dim()))
}
