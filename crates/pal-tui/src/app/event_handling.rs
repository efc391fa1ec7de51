//! Handling of events for the terminal.

use std::io::Write;

use pal_events::AgentEvent;

use super::{App, PickerUse};
use crate::ansi;
use crate::cold_turn_dialog::ColdTurnDialog;
use crate::permission_dialog::PermissionDialog;
use crate::picker::Picker;
use crate::question_dialog::QuestionDialog;
use crate::ui_events::{ActiveSession, PickerChoice, UiEvent, UserAction};
use crate::welcome::{context_line, hint_lines, short_title, title_lines};

/// Decisions about queued messages.
pub(super) const SEND_QUEUE: &str = "send";
pub(super) const EDIT_QUEUE: &str = "edit";
pub(super) const DISCARD_QUEUE: &str = "discard";

impl App {
    pub(super) fn handle_event(&mut self, event: UiEvent) {
        match event {
            UiEvent::Event(event) => self.session_event(&event),
            UiEvent::SessionReady(session) => self.ready(*session),
            UiEvent::PermissionAsked(asked, answer) => {
                self.dialogs.questions.push(match asked.user_questions() {
                    Some(questions) => Box::new(QuestionDialog::new(asked.agent, questions, answer)),
                    None => Box::new(PermissionDialog::new(asked, answer)),
                });
            }
            UiEvent::ContextMeasured(tokens) => self.display.status.tokens = tokens,
            UiEvent::CacheMeasured(cache) => self.display.status.cache = cache,
            UiEvent::CacheKept => self.display.status.extend_cache(),
            UiEvent::ColdTurnAsked(text, answer) => {
                self.dialogs.questions.push(Box::new(ColdTurnDialog::new(&text, answer)));
            }
            UiEvent::BudgetAsked(text, answer) => {
                self.dialogs.questions.push(Box::new(ColdTurnDialog::of_budget(&text, answer)));
            }
            UiEvent::ShellPrinted(text) => self.display.transcript.add_shell_output(&text),
            UiEvent::ShellEnded { text, is_error } => self.display.transcript.end_shell(&text, is_error),
            UiEvent::CommandPrinted(text) => self.display.transcript.add(ansi::lines(&text)),
            UiEvent::Failed(why) => self.display.transcript.error(&why),
            // A suggestion for a prompt that was typed in the meantime is out of date.
            UiEvent::PromptSuggested(text) => {
                self.input.suggestion = Some(text).filter(|_| !self.is_working());
            }
            UiEvent::FillPrompt(text) => self.input.editor.set(&text),
            UiEvent::ActionDone => self.action_done(),
            UiEvent::MessageReceived => self.send_action(UserAction::RunQueuedMessages),
            UiEvent::Stop => self.control_c(),
            UiEvent::End => self.leave(),
            UiEvent::Resumed => self.continued(),
            // The first reason counts: another thread may end later.
            UiEvent::Closed(why) => {
                self.exit.get_or_insert(why);
            }
        }
    }

    fn session_event(&mut self, event: &AgentEvent) {
        if let AgentEvent::Mode(_) = event {
            self.modes.changed();
        }
        if let AgentEvent::SessionStarted(began) = event {
            self.modes.start_session(&began.permission_mode);
            let (width, theme) = (self.display.screen.columns(), self.display.theme);
            self.display.transcript.add(match self.display.is_first_session {
                true => title_lines(began, width, theme),
                false => short_title(began, width, theme),
            });
        }
        if let AgentEvent::Alarm { text, .. } = event {
            // The next frame reports terminal errors.
            let _ = self.display.screen.writer().write_all(self.display.notifications.alarm(text).as_bytes());
        }
        self.display.status.apply(event);
        self.display.transcript.apply(event);
    }

    fn ready(&mut self, session: ActiveSession) {
        self.display.status.open_session(&session);
        if self.session.active.as_ref().is_some_and(|known| known.log != session.log) {
            self.session.has_talked = !session.recent_entries.is_empty();
        }
        if let Some(mode) = self.modes.chosen() {
            session.handle.choose_mode(mode);
            self.display.status.mode = mode.name().to_owned();
        }
        if std::mem::take(&mut self.display.is_first_session) {
            let (width, theme) = (self.display.screen.columns(), self.display.theme);
            let mut lines = vec![context_line(session.tokens, session.compaction_tokens, width, theme)];
            if session.recent_entries.is_empty() {
                lines.extend(hint_lines(width, theme));
            }
            self.display.transcript.append(lines);
        }
        for entry in &session.recent_entries {
            self.display.transcript.recall(entry);
        }
        self.session.active = Some(session);
    }

    /// Ends an action. Messages that came too late to steer it run next, unless the user has stopped it.
    fn action_done(&mut self) {
        self.work.pending_actions = self.work.pending_actions.saturating_sub(1);
        // No asker waits for an answer now.
        self.dialogs.questions.clear();
        self.dialogs.focus.note_closed();
        if self.work.pending_actions > 0 {
            return;
        }
        let was_stopped = std::mem::take(&mut self.work.is_stopping);
        self.work.since = None;
        let unread = self.session.active.as_ref().map_or(0, |session| session.handle.unread_messages());
        match unread {
            0 => self.display.transcript.forget_queued(),
            _ if was_stopped => self.ask_about_queue(),
            _ => self.send_action(UserAction::RunQueuedMessages),
        }
    }

    /// Asks what becomes of the messages that were queued when the agent was stopped.
    fn ask_about_queue(&mut self) {
        self.dialogs.held_prompts = self.take_back_queue();
        let count = self.dialogs.held_prompts.len();
        if count == 0 {
            return;
        }
        let (title, them) = match count {
            1 => (String::from("Stopped. A message is queued"), "it"),
            count => (format!("Stopped. {count} messages are queued"), "them"),
        };
        let choice = |label: String, command: &str| PickerChoice {
            label,
            detail: String::new(),
            command: (command.to_owned(), String::new()),
        };
        let choices = vec![
            choice(format!("send {them} now"), SEND_QUEUE),
            choice(format!("edit {them}"), EDIT_QUEUE),
            choice(format!("discard {them}"), DISCARD_QUEUE),
        ];
        self.dialogs.picker = Some(Picker::new(title, choices));
        self.dialogs.picker_use = PickerUse::Queue;
    }

    /// Takes back all messages that the agent has not read.
    pub(super) fn take_back_queue(&mut self) -> Vec<String> {
        let Some(session) = &self.session.active else { return Vec::new() };
        let count = session.handle.take_back_messages();
        self.display.transcript.take_back(count)
    }
}
