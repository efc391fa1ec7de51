//! The conversation as lines: finished ones, which never change, and live ones.

mod event_text;
mod folded_results;
mod pending_calls;
mod todo_list;

use std::collections::BTreeMap;

use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::{BlockType, EntryBody, LogEntry, MessageOrigin};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::markdown_stream::MarkdownStream;
use crate::styled_text::{
    format_tokens, line_columns, sanitize, sanitize_line, truncate_columns, wrap, wrap_anywhere,
};
use crate::theme::Theme;
use event_text::{cache_break_text, compaction_text, message_text, usage_text};
use folded_results::FoldedResults;
use pending_calls::PendingCalls;
use todo_list::TodoList;

/// Hint behind the number of hidden lines.
const MORE_HINT: &str = " · Ctrl-O shows all";

/// The same hint for a terminal that reads lines.
const TYPED_MORE_HINT: &str = "; /expand prints all";

/// Tool that sets the task list.
const TODO: &str = "Todo";

/// Visible lines of live thinking.
const THINKING_LINES: usize = 3;

/// Visible lines of a command that the user runs.
const SHELL_LINES: usize = 20;

/// Visible lines of another agent's message.
const HEARD_LINES: usize = 8;

/// The conversation as the user sees it.
pub struct Transcript {
    width: usize,
    theme: Theme,
    finished: Vec<Line<'static>>,
    answer: MarkdownStream,
    thinking: String,
    calls: PendingCalls,
    folded: FoldedResults,
    /// Notice about a pending retry.
    waiting: Option<String>,
    /// Prompts that are not in the log yet, oldest first.
    queued: Vec<QueuedPrompt>,
    /// Task list of the agent.
    todos: TodoList,
    /// Command that the user runs, and the end of its output.
    shell: Option<(String, String)>,
    /// Current activity by subagent.
    doing: BTreeMap<String, String>,
    is_working: bool,
    /// Part of the current answer is already finished.
    is_begun: bool,
}

/// A prompt that is not in the log yet.
struct QueuedPrompt {
    /// Text as it is displayed.
    shown: String,
    /// Text to edit if it is taken back.
    typed: String,
}

impl Transcript {
    /// Creates an empty transcript, `width` columns wide.
    pub fn new(width: usize, theme: Theme) -> Transcript {
        Transcript {
            width,
            theme,
            finished: Vec::new(),
            answer: MarkdownStream::default(),
            thinking: String::new(),
            calls: PendingCalls::new(MORE_HINT),
            folded: FoldedResults::default(),
            waiting: None,
            queued: Vec::new(),
            todos: TodoList::default(),
            shell: None,
            doing: BTreeMap::new(),
            is_working: false,
            is_begun: false,
        }
    }

    /// Hints at typed commands instead of keys, for a terminal that reads lines.
    pub(crate) fn with_typed_hints(mut self) -> Transcript {
        self.calls.more_hint = TYPED_MORE_HINT;
        self
    }

    /// Sets the theme of future lines.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
    }

    /// Sets the width of future lines, in columns.
    pub fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Returns `true` while a prompt runs.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Returns `true` if a prompt is not in the log yet.
    pub fn has_unsent_input(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Adds a prompt; it becomes a finished line once it is in the log.
    pub fn add_prompt(&mut self, shown: &str) {
        self.queue_prompt(shown, shown);
    }

    /// Adds a prompt whose text to edit differs from the displayed one.
    pub(crate) fn queue_prompt(&mut self, shown: &str, typed: &str) {
        self.is_working = true;
        self.queued.push(QueuedPrompt { shown: sanitize(shown), typed: typed.to_owned() });
    }

    /// Takes back the last `count` prompts that are not in the log yet; returns their texts to edit.
    pub(crate) fn take_back(&mut self, count: usize) -> Vec<String> {
        let from = self.queued.len().saturating_sub(count);
        self.queued.split_off(from).into_iter().map(|prompt| prompt.typed).collect()
    }

    /// Forgets prompts that never reached the log, such as those that a hook blocked.
    pub(crate) fn forget_queued(&mut self) {
        self.queued.clear();
    }

    /// Starts showing a command that the user runs.
    pub(crate) fn start_shell(&mut self, command: &str) {
        self.shell = Some((sanitize_line(command), String::new()));
    }

    /// Shows output of the command that the user runs.
    pub(crate) fn add_shell_output(&mut self, text: &str) {
        if let Some((_, printed)) = &mut self.shell {
            printed.push_str(&sanitize(text));
            let from = printed.rmatch_indices('\n').nth(SHELL_LINES).map_or(0, |(at, _)| at + 1);
            printed.drain(..from);
        }
    }

    /// Ends the command that the user ran.
    pub(crate) fn end_shell(&mut self, text: &str, is_error: bool) {
        let Some((command, _)) = self.shell.take() else { return };
        self.folded.keep(format!("! {command}"), text);
        let clean = sanitize(text);
        let lines: Vec<&str> = clean.trim_end().lines().collect();
        let hidden = lines.len().saturating_sub(SHELL_LINES);
        if hidden > 0 {
            let hint = self.calls.more_hint;
            self.note(&format!("… {hidden} lines above{hint}"));
        }
        let style = if is_error { self.theme.bad() } else { self.theme.dim() };
        for line in &lines[hidden..] {
            let (spans, indent) = ([Span::styled((*line).to_owned(), style)], [Span::raw("  ")]);
            self.finished.extend(wrap_anywhere(&spans, &indent, &indent, self.width));
        }
    }

    /// Adds a typed command.
    pub fn add_command(&mut self, typed: &str) {
        self.blank_line();
        self.add_user_text(&sanitize(typed));
    }

    /// Adds finished lines after a blank one; wraps those that are too long.
    pub fn add(&mut self, lines: Vec<Line<'static>>) {
        self.blank_line();
        self.append(lines);
    }

    /// Adds finished lines; wraps those that are too long.
    pub(crate) fn append(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            if line_columns(&line) > self.width + 1 {
                self.finished.extend(wrap(&line.spans, &[], &[], self.width));
            } else {
                self.finished.push(line);
            }
        }
    }

    /// Prints the results of the last calls in full.
    pub fn unfold(&mut self) {
        let lines = self.folded.unfold(self.width, self.theme);
        if lines.is_empty() {
            self.note("all results are already shown in full");
        }
        self.finished.extend(lines);
    }

    /// Adds a dimmed notice.
    pub fn note(&mut self, text: &str) {
        self.add_text(text, self.theme.dim());
    }

    /// Adds an error.
    pub fn error(&mut self, text: &str) {
        self.add_text(text, self.theme.bad());
    }

    /// Applies an event of the session.
    pub fn apply(&mut self, event: &AgentEvent) {
        if !matches!(event, AgentEvent::Waiting { .. }) {
            self.waiting = None;
        }
        match event {
            AgentEvent::SessionStarted(_)
            | AgentEvent::Progress(_)
            | AgentEvent::ExchangeEnded(_)
            | AgentEvent::Compacting { .. }
            // The user was asked before.
            | AgentEvent::ColdTurn { .. }
            | AgentEvent::Mode(_) => {}
            AgentEvent::Alarm { text, .. } => self.error(text),
            AgentEvent::Message { entry, .. } => self.message(entry),
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::Thinking(text) => self.thinking.push_str(&sanitize(text)),
            AgentEvent::AnswerDiscarded { why } => self.discard_answer(why),
            AgentEvent::Waiting { why, attempt, of, left } => {
                let seconds = left.as_secs();
                self.waiting =
                    Some(format!("{}; attempt {attempt} of {of} in {seconds} s", sanitize_line(why)));
            }
            AgentEvent::ToolStarted { call, name, input } => {
                self.end_answer();
                if let Some(todos) = TodoList::parse(input).filter(|_| name == TODO) {
                    self.todos = todos;
                }
                self.calls.start(call, name, input);
            }
            AgentEvent::ToolPrinted { call, text } => self.calls.add_output(call, text),
            AgentEvent::ToolEnded { call, is_error, took, bytes, .. } => {
                self.calls.finish(call, *is_error, *took, *bytes);
            }
            AgentEvent::Compacted(boundary) => self.note(&compaction_text(boundary)),
            AgentEvent::CacheBroken(fall) if fall.cause.is_expected() => {}
            AgentEvent::CacheBroken(fall) => self.note(&cache_break_text(fall)),
            AgentEvent::SubagentActivity { agent, doing } => {
                self.doing.insert(sanitize_line(agent), sanitize_line(doing));
            }
            AgentEvent::Notice(text) => self.note(text),
            AgentEvent::Warning(text) => self.error(text),
            AgentEvent::Ended(ended) => self.finish_prompt(ended),
        }
    }

    /// Adds a message of a resumed session.
    pub fn recall(&mut self, entry: &LogEntry) {
        match &entry.body {
            EntryBody::Assistant(assistant) => {
                for block in assistant.content.blocks() {
                    match block.kind() {
                        BlockType::Text => self.text(&block.string("text").unwrap_or_default()),
                        BlockType::ToolUse => {
                            self.end_answer();
                            let name = block.string("name").unwrap_or_default();
                            let line = pending_calls::headline(
                                &name,
                                block.field("input").unwrap_or("{}"),
                                self.width,
                            );
                            self.blank_line();
                            self.finished.push(Line::from(vec![
                                Span::styled("● ", self.theme.dim()),
                                Span::styled(line, self.theme.dim()),
                            ]));
                        }
                        _ => {}
                    }
                }
                self.end_answer();
            }
            EntryBody::User(user) if user.origin == MessageOrigin::Person => {
                self.blank_line();
                self.add_user_text(&sanitize(&message_text(&user.content)));
            }
            _ => {}
        }
    }

    /// Takes the lines finished since the last call.
    pub fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// The last `rows` live lines.
    pub fn live(&self, rows: usize) -> Vec<Line<'static>> {
        let mut lines = self.thinking_tail();
        let tail = self.answer.tail(self.width, self.theme);
        lines.extend(tail);
        lines.extend(self.calls.live(self.width, self.theme));
        for (agent, doing) in &self.doing {
            let line = truncate_columns(&format!("  {agent}: {doing}"), self.width);
            lines.push(Line::from(Span::styled(line, self.theme.dim())));
        }
        if let Some((command, printed)) = &self.shell {
            let head = truncate_columns(&format!("! {command}  running"), self.width);
            lines.push(Line::from(Span::styled(head, self.theme.accent())));
            lines.extend(printed.lines().map(|line| {
                let line = truncate_columns(line, self.width.saturating_sub(2));
                Line::from(Span::styled(format!("  {line}"), self.theme.dim()))
            }));
        }
        if self.is_working && self.todos.is_open() {
            lines.extend(self.todos.live_lines(self.width, self.theme));
        }
        if let Some(waiting) = &self.waiting {
            lines.push(Line::from(Span::styled(truncate_columns(waiting, self.width), self.theme.warning())));
        }
        for prompt in &self.queued {
            let spans = [Span::styled(
                truncate_columns(&sanitize_line(&prompt.shown), self.width.saturating_sub(4)),
                self.theme.dim(),
            )];
            lines.extend(wrap(
                &spans,
                &[Span::styled("› ", self.theme.dim())],
                &[Span::raw("  ")],
                self.width,
            ));
        }
        lines.split_off(lines.len().saturating_sub(rows))
    }

    fn thinking_tail(&self) -> Vec<Line<'static>> {
        if self.thinking.trim().is_empty() {
            return Vec::new();
        }
        // Thinking may be long: only its end is processed.
        let from =
            self.thinking.char_indices().rev().nth(self.width * THINKING_LINES).map_or(0, |(at, _)| at);
        let style = self.theme.dim().patch(self.theme.leaning());
        let spans = [Span::styled(sanitize_line(&self.thinking[from..]), style)];
        let indent = [Span::raw("  ")];
        let mut lines = wrap(&spans, &indent, &indent, self.width);
        lines.split_off(lines.len().saturating_sub(THINKING_LINES))
    }

    fn message(&mut self, entry: &LogEntry) {
        match &entry.body {
            EntryBody::User(user) if user.origin == MessageOrigin::Person => {
                self.end_answer();
                self.is_working = true;
                let shown = if self.queued.is_empty() {
                    sanitize(&message_text(&user.content))
                } else {
                    self.queued.remove(0).shown
                };
                self.folded.forget();
                self.blank_line();
                self.add_user_text(&shown);
            }
            EntryBody::User(user) if user.origin == MessageOrigin::Agent => {
                self.end_answer();
                self.is_working = true;
                self.blank_line();
                self.add_agent_message(&message_text(&user.content));
            }
            EntryBody::User(user) => {
                for block in user.content.blocks() {
                    let Some(call) = block.tool_use_id() else { continue };
                    let text = message_text(&block.content());
                    let is_error = block.field("is_error") == Some("true");
                    if let Some(line) = self.calls.headline(call, self.width) {
                        self.folded.keep(line, &text);
                    }
                    let lines = self.calls.take_result(call, is_error, &text, self.width, self.theme);
                    if !lines.is_empty() {
                        self.blank_line();
                        self.finished.extend(lines);
                    }
                }
            }
            EntryBody::Assistant(assistant) => {
                for block in
                    assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse)
                {
                    if let Some(call) = block.tool_use_id() {
                        let name = block.string("name").unwrap_or_default();
                        self.calls.add(call, &name, block.field("input").unwrap_or("{}"));
                    }
                }
                self.end_answer();
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.end_thinking();
        self.answer.push(text);
        let lines = self.answer.take_finished(self.width, self.theme);
        self.add_answer_lines(lines);
    }

    fn add_answer_lines(&mut self, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            self.blank_line();
        }
        self.finished.extend(lines);
    }

    fn end_thinking(&mut self) {
        let thinking = std::mem::take(&mut self.thinking);
        if !thinking.trim().is_empty() {
            let words = thinking.split_whitespace().count();
            let word = if words == 1 { "word" } else { "words" };
            self.note(&format!("thought for {} {word}", format_tokens(words as u64)));
        }
    }

    fn end_answer(&mut self) {
        self.end_thinking();
        let lines = self.answer.finish(self.width, self.theme);
        self.add_answer_lines(lines);
        self.is_begun = false;
    }

    fn discard_answer(&mut self, why: &str) {
        self.thinking.clear();
        let was_seen = self.is_begun;
        self.answer = MarkdownStream::default();
        self.is_begun = false;
        let text = if was_seen { "the last answer was discarded" } else { "retrying" };
        self.note(&format!("{text}: {why}"));
    }

    /// Adds the first lines of another agent's message, dimmed.
    fn add_agent_message(&mut self, words: &str) {
        let lines: Vec<&str> = words.lines().collect();
        for line in lines.iter().take(HEARD_LINES) {
            self.note(line);
        }
        if let Some(more) = lines.len().checked_sub(HEARD_LINES).filter(|more| *more > 0) {
            self.note(&format!("… {more} more lines in the session"));
        }
    }

    fn finish_prompt(&mut self, ended: &PromptResult) {
        self.end_answer();
        self.is_working = false;
        self.doing.clear();
        if self.todos.is_open() {
            let lines = self.todos.lines(self.width, self.theme);
            self.add(lines);
        }
        self.todos = TodoList::default();
        let left = self.calls.take_unfinished(self.width, self.theme);
        if !left.is_empty() {
            self.add(left);
        }
        match &ended.end {
            PromptEnd::Done => {}
            PromptEnd::Interrupted => self.add_text("stopped", self.theme.warning()),
            PromptEnd::Refused(why) | PromptEnd::Limit(why) | PromptEnd::Failed(why) => self.error(why),
        }
        if ended.turns > 0 {
            self.finished.push(Line::from(Span::styled(
                truncate_columns(&usage_text(ended), self.width),
                self.theme.dim(),
            )));
        }
    }

    /// Adds a blank line between blocks.
    fn blank_line(&mut self) {
        self.finished.push(Line::default());
    }

    fn add_user_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let (first, rest) = ([Span::styled("› ", self.theme.accent())], [Span::raw("  ")]);
        let spans = [Span::styled(text.trim_end().to_owned(), self.theme.strong())];
        self.finished.extend(wrap(&spans, &first, &rest, self.width));
    }

    fn add_text(&mut self, text: &str, style: Style) {
        let spans = [Span::styled(sanitize(text).trim_end().to_owned(), style)];
        let indent = [Span::raw("  ")];
        self.finished.extend(wrap(&spans, &indent, &indent, self.width));
    }
}
