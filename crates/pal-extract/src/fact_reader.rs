//! Collects the facts of a conversation in one pass, from a request or from a log.
//!
//! A request states only the role, so inserted texts are recognized by their tags; a log states who spoke.

use pal_model::{
    Boundary, Content, EARLIER_RESULT_PREFIX, EntryBody, EntryId, LogEntry, MessageOrigin, Role,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call_input::{CallInput, FileTouch};
use crate::conversation_facts::{
    CallTarget, CommandRun, CommandState, ConversationFacts, TaskItem, ToolFailure, TouchedFile, UserWords,
};
use crate::excerpts::{first_line, truncate};
use crate::message_block::{MessageBlock, without_reminders};
use crate::result_outcome::{CallOutcome, error_lines, prints_only};
use crate::summary_sections::is_summary;

/// Facts under construction.
#[derive(Default)]
pub(crate) struct FactReader {
    facts: ConversationFacts,
    /// Calls by id.
    calls: FxHashMap<String, MadeCall>,
    /// Index of each path in the list of files.
    paths: FxHashMap<String, usize>,
    /// Entries whose words were collected: a boundary may carry words that it also keeps.
    known_entries: FxHashSet<EntryId>,
    /// Index of the first failure without a follow-up.
    open: usize,
}

/// A call, with the effects that count once its result says that it was done.
struct MadeCall {
    target: CallTarget,
    /// Number of the call in the conversation.
    number: usize,
    touches: Vec<FileTouch>,
    tasks: Option<Vec<TaskItem>>,
}

impl ConversationFacts {
    /// Collects facts from log entries, in the view's order. The log states who speaks.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a LogEntry>) -> ConversationFacts {
        let mut reading = FactReader::default();
        entries.into_iter().for_each(|entry| reading.entry(entry));
        reading.finish()
    }

    /// Collects facts from the messages of a request. The speaker on the user's side is guessed from tags.
    pub fn from_messages<'a, B>(messages: impl IntoIterator<Item = (Role, B)>) -> ConversationFacts
    where
        B: IntoIterator<Item = MessageBlock<'a>>,
    {
        let mut reading = FactReader::default();
        messages.into_iter().for_each(|(role, blocks)| reading.message(role, blocks));
        reading.finish()
    }
}

impl FactReader {
    pub(crate) fn finish(self) -> ConversationFacts {
        self.facts
    }

    /// Reads an entry of a log.
    pub(crate) fn entry(&mut self, entry: &LogEntry) {
        match &entry.body {
            EntryBody::User(user) => {
                self.facts.message_count += 1;
                self.user_entry(entry.id, user.origin, &user.content);
            }
            EntryBody::Assistant(assistant) => {
                self.facts.message_count += 1;
                // In a log, only boundaries are summaries; the model's text is never one.
                self.assistant(assistant.content.blocks().iter().map(MessageBlock::from_block), false);
            }
            EntryBody::Boundary(boundary) => self.boundary(boundary),
            // Attachments are added again where they are still needed.
            _ => {}
        }
    }

    /// Reads a message of a request.
    pub(crate) fn message<'a>(&mut self, role: Role, blocks: impl IntoIterator<Item = MessageBlock<'a>>) {
        self.facts.message_count += 1;
        match role {
            Role::User => blocks.into_iter().for_each(|block| self.user_block(block)),
            Role::Assistant => self.assistant(blocks, true),
            Role::System => {}
        }
    }

    fn user_entry(&mut self, id: EntryId, origin: MessageOrigin, content: &Content) {
        let is_new = self.known_entries.insert(id);
        for block in content.blocks() {
            match (MessageBlock::from_block(block), origin) {
                // A placeholder for a missing result says nothing about the call.
                (MessageBlock::ToolResult { .. }, MessageOrigin::Synthetic) => {}
                (MessageBlock::ToolResult { id, text, is_error }, _) => self.returned(&id, &text, is_error),
                (MessageBlock::Text(text), MessageOrigin::Person) if is_new => {
                    self.add_user_words(Some(id), text.trim())
                }
                (MessageBlock::Text(text), MessageOrigin::Tool | MessageOrigin::Agent) => {
                    self.inserted(text.trim())
                }
                _ => {}
            }
        }
    }

    fn boundary(&mut self, boundary: &Boundary) {
        if !boundary.has_summary() {
            return;
        }
        for content in [&boundary.lead, &boundary.summary] {
            let texts = content.blocks().iter().filter_map(|block| match MessageBlock::from_block(block) {
                MessageBlock::Text(text) => Some(text.into_owned()),
                _ => None,
            });
            self.earlier(texts.collect::<Vec<_>>().join("\n\n"));
        }
        let carried = &boundary.snapshot.user_messages;
        self.facts.omitted_words = carried.omitted;
        self.facts.has_earlier_words = !carried.messages.is_empty() || carried.omitted > 0;
        let new: Vec<_> =
            carried.messages.iter().filter(|words| !self.known_entries.contains(&words.entry)).collect();
        for words in new {
            self.known_entries.insert(words.entry);
            self.add_user_words(Some(words.entry), words.text.trim());
        }
    }

    /// Adds an earlier summary. A boundary may be listed more than once, in parts.
    fn earlier(&mut self, text: String) {
        if !text.is_empty() && !self.facts.earlier_summaries.contains(&text) {
            self.facts.earlier_summaries.push(text);
        }
    }

    fn user_block(&mut self, block: MessageBlock<'_>) {
        match block {
            MessageBlock::Text(text) => {
                let text = without_reminders(&text);
                let text = text.trim();
                let is_result = text.starts_with(EARLIER_RESULT_PREFIX);
                // A tool result may look like a summary.
                if !is_result && is_summary(text) {
                    self.earlier(text.to_owned());
                } else if is_result || is_inserted(text) {
                    self.inserted(text);
                } else {
                    self.add_user_words(None, text);
                }
            }
            MessageBlock::ToolResult { id, text, is_error } => self.returned(&id, &text, is_error),
            MessageBlock::ToolCall { .. } | MessageBlock::Other => {}
        }
    }

    fn add_user_words(&mut self, entry: Option<EntryId>, text: &str) {
        if text.is_empty() {
            return;
        }
        for trouble in self.facts.failures.iter_mut().skip(self.open) {
            trouble.user_reply.get_or_insert_with(|| truncate(text, 200));
        }
        self.facts.words.push(UserWords { entry, text: text.to_owned() });
    }

    fn inserted(&mut self, text: &str) {
        if !text.is_empty() {
            self.facts.inserted_texts.push(truncate(text, 120));
        }
    }

    fn assistant<'a>(&mut self, blocks: impl IntoIterator<Item = MessageBlock<'a>>, may_summarize: bool) {
        let mut said = String::new();
        let mut done = None;
        for block in blocks {
            match block {
                // The provider's summary is part of the model's message.
                MessageBlock::Text(text) if may_summarize && is_summary(&text) => {
                    self.earlier(text.into_owned())
                }
                MessageBlock::Text(text) if !text.trim().is_empty() => {
                    if !said.is_empty() {
                        said.push('\n');
                    }
                    said.push_str(text.trim());
                }
                MessageBlock::ToolCall { id, name, input } => {
                    let call = self.called(&name, input);
                    done.get_or_insert_with(|| named(&call.target));
                    self.facts.last_call = Some(call.target.clone());
                    self.calls.insert(id.into_owned(), call);
                }
                _ => {}
            }
        }
        let then = if said.is_empty() { done } else { Some(first_line(&said, 200)) };
        if let Some(then) = then {
            for trouble in self.facts.failures.iter_mut().skip(self.open) {
                trouble.follow_up = Some(then.clone());
            }
            self.open = self.facts.failures.len();
        }
        if !said.is_empty() {
            self.facts.model_texts.push(said);
        }
    }

    fn called(&mut self, name: &str, input: &str) -> MadeCall {
        self.facts.call_count += 1;
        let called = CallInput::of(name, input);
        let command = called.command.map(|line| {
            self.facts.commands.push(CommandRun { line: truncate(&line, 300), state: CommandState::Ran });
            self.facts.commands.len() - 1
        });
        let target = CallTarget { name: name.to_owned(), target: called.target, command };
        MadeCall { target, number: self.facts.call_count, touches: called.touches, tasks: called.tasks }
    }

    fn touched(&mut self, touch: FileTouch, call_number: usize) {
        let index = *self.paths.entry(touch.path.clone()).or_insert_with(|| {
            self.facts.files.push(TouchedFile {
                path: touch.path,
                reads: 0,
                writes: 0,
                change: None,
                last_call_number: 0,
            });
            self.facts.files.len() - 1
        });
        if let Some(file) = self.facts.files.get_mut(index) {
            file.last_call_number = file.last_call_number.max(call_number);
            if touch.is_write {
                file.writes += 1;
                file.change = touch.change.or(file.change.take());
            } else {
                file.reads += 1;
            }
        }
    }

    fn returned(&mut self, id: &str, text: &str, is_error: bool) {
        let outcome = CallOutcome::of(text, is_error);
        // Further results of the same call add no effects.
        let (touches, tasks, number) = match self.calls.get_mut(id) {
            Some(call) => (std::mem::take(&mut call.touches), call.tasks.take(), call.number),
            None => Default::default(),
        };
        if outcome == CallOutcome::Done {
            touches.into_iter().for_each(|touch| self.touched(touch, number));
            if let Some(tasks) = tasks {
                self.facts.tasks = tasks;
            }
        }
        let call = self.calls.get(id).map(|call| &call.target);
        let command = call.and_then(|call| call.command);
        let is_run = command.and_then(|index| self.facts.commands.get(index));
        let may_fail = is_error || is_run.is_some_and(|command| !prints_only(&command.line));
        let lines = if may_fail { error_lines(text, is_error) } else { Vec::new() };
        if let Some(command) = command.and_then(|index| self.facts.commands.get_mut(index)) {
            command.state = match outcome {
                CallOutcome::Refused => CommandState::Refused,
                _ if lines.is_empty() => command.state,
                _ => CommandState::Failed,
            };
        }
        if !lines.is_empty() {
            let call = call.map_or_else(|| "a call".to_owned(), named);
            self.facts.failures.push(ToolFailure { call, lines, user_reply: None, follow_up: None });
        }
    }
}

fn named(call: &CallTarget) -> String {
    truncate(&format!("{} {}", call.name, call.target.lines().next().unwrap_or_default()), 160)
        .trim_end()
        .to_owned()
}

/// Beginnings of texts that stand among the user's messages and are not the user's: a restored file, plan or text, the preview of
/// a spilled paste, and the stand-in for a missing message.
const INSERTED_PREFIXES: [&str; 5] =
    ["[File `", "[The plan]", "<restored>", "[The user's text has ", "[Go on.]"];

/// Returns true for texts with a known beginning, and if a single tag wraps the text, as it does environments, instructions and
/// reminders. Several sibling tags, as in a prompt made from a form, do not count.
fn is_inserted(text: &str) -> bool {
    if INSERTED_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
        return true;
    }
    let Some((tag, _)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) else { return false };
    let is_tag =
        tag.len() < 40 && tag.chars().all(|letter| letter.is_alphanumeric() || "-_ ".contains(letter));
    let name = tag.split(' ').next().unwrap_or_default();
    // A command or a short quotation may be a person's.
    text.len() > 400 && is_tag && !name.is_empty() && text.ends_with(&format!("</{name}>"))
}
