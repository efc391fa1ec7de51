//! What happened, as lines: finished ones, which never change, and those that still do.

mod calls;
mod unfolding;
mod words;

use std::collections::BTreeMap;

use pal_agent::{End, Ended, Event};
use pal_model::{BlockType, Body, Entry, Origin};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::paint::{clipped, harmless, harmless_line, line_columns, short, wrapped};
use crate::stream::Stream;
use crate::theme::Theme;
use calls::Calls;
use unfolding::Folded;
use words::{broke, compacted, spent, words_of};

/// Lines of thinking that are seen while it goes on.
const THINKING_LINES: usize = 3;

/// Lines of what another agent said that are seen.
const HEARD_LINES: usize = 8;

/// The conversation as a person sees it.
pub struct Transcript {
    width: usize,
    theme: Theme,
    finished: Vec<Line<'static>>,
    answer: Stream,
    thinking: String,
    calls: Calls,
    folded: Folded,
    /// Why the provider is asked again, while it is waited for.
    waiting: Option<String>,
    /// What was typed and not heard yet: as it is shown.
    unheard: Vec<String>,
    /// What agents that were sent do.
    doing: BTreeMap<String, String>,
    is_working: bool,
    /// Whether anything of the answer at hand was finished.
    is_begun: bool,
}

impl Transcript {
    /// An empty one for so many columns.
    pub fn new(width: usize, theme: Theme) -> Transcript {
        Transcript {
            width,
            theme,
            finished: Vec::new(),
            answer: Stream::default(),
            thinking: String::new(),
            calls: Calls::default(),
            folded: Folded::default(),
            waiting: None,
            unheard: Vec::new(),
            doing: BTreeMap::new(),
            is_working: false,
            is_begun: false,
        }
    }

    /// The terminal has another width: what comes is made for that one.
    pub fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Whether a prompt is being worked on.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Whether something was said that is not in the log yet.
    pub fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// Somebody said something; it is shown as heard when it is in the log.
    pub fn said(&mut self, shown: &str) {
        self.is_working = true;
        self.unheard.push(harmless(shown));
    }

    /// A command was typed.
    pub fn commanded(&mut self, typed: &str) {
        self.part();
        self.person(&harmless(typed));
    }

    /// Lines that somebody else made; those that are too long are broken.
    pub fn add(&mut self, lines: Vec<Line<'static>>) {
        self.part();
        for line in lines {
            if line_columns(&line) > self.width + 1 {
                self.finished.extend(wrapped(&line.spans, &[], &[], self.width));
            } else {
                self.finished.push(line);
            }
        }
    }

    /// Prints the results of the last calls in full.
    pub fn unfold(&mut self) {
        let lines = self.folded.unfold(self.width, self.theme);
        if lines.is_empty() {
            self.note("there is no result that is not seen in full");
        }
        self.finished.extend(lines);
    }

    /// A line in quiet words.
    pub fn note(&mut self, text: &str) {
        self.words(text, self.theme.dim());
    }

    /// Something went wrong.
    pub fn complain(&mut self, text: &str) {
        self.words(text, self.theme.bad());
    }

    /// Something happened.
    pub fn apply(&mut self, event: &Event) {
        if !matches!(event, Event::Waiting { .. }) {
            self.waiting = None;
        }
        match event {
            Event::Began(_) | Event::Exchanged(_) | Event::Compacting { .. } | Event::Mode(_) => {}
            Event::Message { entry, .. } => self.message(entry),
            Event::Text(text) => self.text(text),
            Event::Thinking(text) => self.thinking.push_str(&harmless(text)),
            Event::Void { why } => self.void(why),
            Event::Waiting { why, attempt, of, left } => {
                let seconds = left.as_secs();
                self.waiting =
                    Some(format!("{}; attempt {attempt} of {of} in {seconds} s", harmless_line(why)));
            }
            Event::ToolBegan { call, name, input } => {
                self.end_answer();
                self.calls.began(call, name, input);
            }
            Event::ToolPrinted { call, text } => self.calls.printed(call, text),
            Event::ToolEnded { call, is_error, took, bytes, .. } => {
                self.calls.ended(call, *is_error, *took, *bytes);
            }
            Event::Compacted(boundary) => self.note(&compacted(boundary)),
            Event::CacheBroke(fall) if fall.cause.is_expected() => {}
            Event::CacheBroke(fall) => self.note(&broke(fall)),
            Event::Doing { agent, doing } => {
                self.doing.insert(harmless_line(agent), harmless_line(doing));
            }
            Event::Notice(text) => self.note(text),
            Event::Warning(text) => self.complain(text),
            Event::Ended(ended) => self.ended(ended),
        }
    }

    /// A message of a session that goes on.
    pub fn recall(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Assistant(assistant) => {
                for block in assistant.content.blocks() {
                    match block.kind() {
                        BlockType::Text => self.text(&block.string("text").unwrap_or_default()),
                        BlockType::ToolUse => {
                            self.end_answer();
                            let name = block.string("name").unwrap_or_default();
                            let line =
                                calls::headline(&name, block.field("input").unwrap_or("{}"), self.width);
                            self.part();
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
            Body::User(user) if user.origin == Origin::Person => {
                self.part();
                self.person(&harmless(&words_of(&user.content)));
            }
            _ => {}
        }
    }

    /// What became finished since it was asked last.
    pub fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// What still changes, in at most `rows` lines: its end.
    pub fn live(&self, rows: usize) -> Vec<Line<'static>> {
        let mut lines = self.thinking_tail();
        let tail = self.answer.tail(self.width, self.theme);
        lines.extend(tail);
        lines.extend(self.calls.live(self.width, self.theme));
        for (agent, doing) in &self.doing {
            let line = clipped(&format!("  {agent}: {doing}"), self.width);
            lines.push(Line::from(Span::styled(line, self.theme.dim())));
        }
        if let Some(waiting) = &self.waiting {
            lines.push(Line::from(Span::styled(clipped(waiting, self.width), self.theme.warning())));
        }
        for said in &self.unheard {
            let spans =
                [Span::styled(clipped(&harmless_line(said), self.width.saturating_sub(4)), self.theme.dim())];
            lines.extend(wrapped(
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
        // Only the end is looked at: thinking may be long.
        let from =
            self.thinking.char_indices().rev().nth(self.width * THINKING_LINES).map_or(0, |(at, _)| at);
        let style = self.theme.dim().patch(self.theme.leaning());
        let spans = [Span::styled(harmless_line(&self.thinking[from..]), style)];
        let indent = [Span::raw("  ")];
        let mut lines = wrapped(&spans, &indent, &indent, self.width);
        lines.split_off(lines.len().saturating_sub(THINKING_LINES))
    }

    fn message(&mut self, entry: &Entry) {
        match &entry.body {
            Body::User(user) if user.origin == Origin::Person => {
                self.end_answer();
                self.is_working = true;
                let shown = if self.unheard.is_empty() {
                    harmless(&words_of(&user.content))
                } else {
                    self.unheard.remove(0)
                };
                self.folded.forget();
                self.part();
                self.person(&shown);
            }
            Body::User(user) if user.origin == Origin::Agent => {
                self.end_answer();
                self.is_working = true;
                self.part();
                self.heard(&words_of(&user.content));
            }
            Body::User(user) => {
                for block in user.content.blocks() {
                    let Some(call) = block.tool_use_id() else { continue };
                    let text = words_of(&block.content());
                    let is_error = block.field("is_error") == Some("true");
                    if let Some(line) = self.calls.headline(call, self.width) {
                        self.folded.keep(line, &text);
                    }
                    let lines = self.calls.returned(call, is_error, &text, self.width, self.theme);
                    if !lines.is_empty() {
                        self.part();
                        self.finished.extend(lines);
                    }
                }
            }
            Body::Assistant(assistant) => {
                for block in
                    assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse)
                {
                    if let Some(call) = block.tool_use_id() {
                        let name = block.string("name").unwrap_or_default();
                        self.calls.wanted(call, &name, block.field("input").unwrap_or("{}"));
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
        self.grew(lines);
    }

    fn grew(&mut self, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            self.part();
        }
        self.finished.extend(lines);
    }

    fn end_thinking(&mut self) {
        let thinking = std::mem::take(&mut self.thinking);
        if !thinking.trim().is_empty() {
            let words = thinking.split_whitespace().count();
            let word = if words == 1 { "word" } else { "words" };
            self.note(&format!("thought for {} {word}", short(words as u64)));
        }
    }

    fn end_answer(&mut self) {
        self.end_thinking();
        let lines = self.answer.finish(self.width, self.theme);
        self.grew(lines);
        self.is_begun = false;
    }

    fn void(&mut self, why: &str) {
        self.thinking.clear();
        let was_seen = self.is_begun;
        self.answer = Stream::default();
        self.is_begun = false;
        let text = if was_seen { "what was said last does not count" } else { "asked again" };
        self.note(&format!("{text}: {why}"));
    }

    /// What another agent said: its beginning, quieter than words of the user.
    fn heard(&mut self, words: &str) {
        let lines: Vec<&str> = words.lines().collect();
        for line in lines.iter().take(HEARD_LINES) {
            self.note(line);
        }
        if let Some(more) = lines.len().checked_sub(HEARD_LINES).filter(|more| *more > 0) {
            self.note(&format!("… {more} more lines in the session"));
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.end_answer();
        self.is_working = false;
        self.doing.clear();
        let left = self.calls.given_up(self.width, self.theme);
        if !left.is_empty() {
            self.add(left);
        }
        match &ended.end {
            End::Done => {}
            End::Interrupted => self.words("stopped", self.theme.warning()),
            End::Refused(why) | End::Limit(why) | End::Failed(why) => self.complain(why),
        }
        if ended.turns > 0 {
            self.finished
                .push(Line::from(Span::styled(clipped(&spent(ended), self.width), self.theme.dim())));
        }
    }

    /// A blank line between things.
    fn part(&mut self) {
        self.finished.push(Line::default());
    }

    fn person(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let (first, rest) = ([Span::styled("› ", self.theme.accent())], [Span::raw("  ")]);
        let spans = [Span::styled(text.trim_end().to_owned(), self.theme.strong())];
        self.finished.extend(wrapped(&spans, &first, &rest, self.width));
    }

    fn words(&mut self, text: &str, style: Style) {
        let spans = [Span::styled(harmless(text).trim_end().to_owned(), style)];
        let indent = [Span::raw("  ")];
        self.finished.extend(wrapped(&spans, &indent, &indent, self.width));
    }
}
