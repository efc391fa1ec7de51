//! Handling of events for the terminal.

use pal_events::AgentEvent;
use ratatui_core::text::{Line, Span};

use super::App;
use crate::ansi;
use crate::permission_dialog::PermissionDialog;
use crate::question_dialog::QuestionDialog;
use crate::styled_text::{sanitize_line, truncate_columns};
use crate::ui_events::{ActiveSession, UiEvent, UserAction};

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
            let title = format!("Palimpsest {}", sanitize_line(&began.version));
            let place = format!(" · {} · {}", sanitize_line(&began.model), sanitize_line(&began.cwd));
            let room = self.display.screen.columns().saturating_sub(title.len());
            self.display.transcript.add(vec![Line::from(vec![
                Span::styled(title, self.display.theme.strong()),
                Span::styled(truncate_columns(&place, room), self.display.theme.dim()),
            ])]);
        }
        self.display.status.apply(event);
        self.display.transcript.apply(event);
    }

    fn ready(&mut self, session: ActiveSession) {
        self.display.status.tokens = session.tokens;
        self.display.status.goal = session.compaction_tokens;
        self.display.status.cost = session.cost;
        self.display.status.prompt_tokens = 0;
        self.display.status.cached_tokens = 0;
        if self.session.active.as_ref().is_some_and(|known| known.log != session.log) {
            self.session.has_talked = !session.recent_entries.is_empty();
        }
        if let Some(mode) = self.modes.chosen() {
            session.handle.choose_mode(mode);
            self.display.status.mode = mode.name().to_owned();
        }
        for entry in &session.recent_entries {
            self.display.transcript.recall(entry);
        }
        self.session.active = Some(session);
    }

    /// Ends an action. Prompts that came too late to steer it run next.
    fn action_done(&mut self) {
        self.work.pending_actions = self.work.pending_actions.saturating_sub(1);
        // No asker waits for an answer now.
        self.dialogs.questions.clear();
        if self.work.pending_actions > 0 {
            return;
        }
        self.work.is_stopping = false;
        self.work.since = None;
        if self.display.transcript.has_unsent_input() {
            self.send_action(UserAction::RunQueuedMessages);
        }
    }
}
