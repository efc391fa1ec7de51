//! Handling of keys, pastes and submitted prompts.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::event_handling::{DISCARD_QUEUE, SEND_QUEUE};
use super::{App, PickerUse};
use crate::ansi;
use crate::attachments::{content, pasted_image_path};
use crate::completion::{self, CompletionTarget, Suggestions};
use crate::dialog::DialogOutcome;
use crate::dialog_focus::InputState;
use crate::live_region::typed_columns;
use crate::picker::{Picker, PickerOutcome};
use crate::styled_text::sanitize_line;
use crate::ui_events::{PickerChoice, REMEMBER, SlashOutcome, UserAction, parse_memory, parse_shell};
use crate::vi_keys::{ViKeys, ViOutcome};

impl App {
    pub(super) fn key(&mut self, key: &KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.end_idle_work();
        let now = Instant::now();
        let has_dialog = !self.dialogs.questions.is_empty();
        if std::mem::take(&mut self.display.has_key_help)
            && !has_dialog
            && matches!(key.code, KeyCode::Esc | KeyCode::Char('?'))
        {
            return;
        }
        if self.dialogs.picker.is_some() {
            self.dialogs.focus.note_typed(now);
            return self.picker_key(key);
        }
        if let Some(question) = self.dialogs.questions.first_mut() {
            let input = InputState {
                is_empty: self.input.editor.is_empty(),
                is_vi_insert: self.input.vi.as_ref().is_some_and(|vi| !vi.is_normal()),
            };
            match self.dialogs.focus.route(key, question.as_mut(), input, now) {
                DialogOutcome::Open => return,
                DialogOutcome::Edit => return self.edit_question(),
                DialogOutcome::Done => return self.close_question(),
                DialogOutcome::TakenBack => {
                    self.dialogs.questions.remove(0);
                    self.dialogs.focus.note_closed();
                    self.dialogs.held_prompts = self.display.transcript.take_back(1);
                    return self.edit_held_prompts();
                }
                DialogOutcome::Stopped => {
                    self.close_question();
                    return self.interrupt();
                }
                DialogOutcome::NotForDialog => {}
            }
        }
        self.dialogs.focus.note_typed(now);
        // Suggestions are not visible while a dialog is open.
        if has_dialog || !self.suggestion_key(key) {
            self.editing_key(key);
        }
        self.suggest();
    }

    /// Cancels work in the pause: the user is there.
    fn end_idle_work(&self) {
        if let Some(session) = &self.session.active {
            session.handle.end_idle_work();
        }
    }

    /// Removes the answered dialog; a plan and answers stay in the transcript.
    fn close_question(&mut self) {
        let question = self.dialogs.questions.remove(0);
        self.dialogs.focus.note_closed();
        if let Some(record) = question.record(self.display.screen.columns(), self.display.theme) {
            self.display.transcript.add(record);
        }
    }

    /// Lets the user edit the text of the open dialog.
    fn edit_question(&mut self) {
        let text = self.dialogs.questions.first().and_then(|question| question.text_to_edit());
        let edited = text.and_then(|text| self.edit_text(&text));
        if let Some((question, text)) = self.dialogs.questions.first_mut().zip(edited) {
            question.set_edited(text);
        }
    }

    pub(super) fn pasted(&mut self, text: &str) {
        self.end_idle_work();
        self.dialogs.focus.note_typed(Instant::now());
        match self.dialogs.questions.first_mut().filter(|question| question.has_text_field()) {
            Some(question) => question.paste(text),
            None => match pasted_image_path(text, &self.start.directory) {
                Some(path) => self.input.editor.paste_picture(path),
                None => self.input.editor.paste(text),
            },
        }
        self.suggest();
    }

    fn picker_key(&mut self, key: &KeyEvent) {
        let Some(picker) = &mut self.dialogs.picker else { return };
        match picker.key(key) {
            PickerOutcome::Open => {}
            PickerOutcome::Closed => {
                self.dialogs.picker = None;
                // Queued messages are not lost: they can be edited.
                if std::mem::take(&mut self.dialogs.picker_use) == PickerUse::Queue {
                    self.edit_held_prompts();
                }
            }
            PickerOutcome::Chosen(choice) => {
                self.dialogs.picker = None;
                let echo = choice_echo(&choice);
                let (name, arguments) = choice.command;
                match std::mem::take(&mut self.dialogs.picker_use) {
                    PickerUse::Command => self.run_command(&format!("{name} {arguments}"), Some(&echo)),
                    PickerUse::History => self.input.editor.set(&arguments),
                    PickerUse::Queue => self.decide_queue(&name),
                }
            }
        }
    }

    /// Carries out the user's decision about queued messages.
    fn decide_queue(&mut self, decision: &str) {
        match decision {
            SEND_QUEUE => {
                for typed in std::mem::take(&mut self.dialogs.held_prompts) {
                    self.submit_text(&typed, &typed, &[]);
                }
            }
            DISCARD_QUEUE => self.dialogs.held_prompts.clear(),
            _ => self.edit_held_prompts(),
        }
    }

    /// Puts messages that were taken back into the editor, before its text.
    fn edit_held_prompts(&mut self) {
        let mut texts = std::mem::take(&mut self.dialogs.held_prompts);
        texts.extend(Some(self.input.editor.text().to_owned()).filter(|text| !text.is_empty()));
        self.input.editor.set(&texts.join("\n"));
    }

    /// Opens the list of earlier prompts, newest first, each once.
    fn search_history(&mut self) {
        let mut texts: Vec<&String> = Vec::new();
        for text in self.input.editor.earlier().iter().rev() {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let choice = |text: &&String| PickerChoice {
            label: sanitize_line(text),
            detail: String::new(),
            command: (String::new(), (*text).clone()),
        };
        let choices: Vec<PickerChoice> = texts.iter().map(choice).collect();
        if choices.is_empty() {
            return self.display.transcript.note("there are no earlier prompts in this project");
        }
        self.dialogs.picker = Some(Picker::new(String::from("Earlier prompts"), choices));
        self.dialogs.picker_use = PickerUse::History;
    }

    /// Lets the user write the prompt in their editor.
    fn edit_prompt(&mut self) {
        let text = self.input.editor.expand_pastes().to_owned();
        if let Some(edited) = self.edit_text(&text) {
            self.input.editor.set(edited.trim_end_matches('\n'));
        }
    }

    /// Handles a key of the suggestion list; returns `false` for any other key.
    fn suggestion_key(&mut self, key: &KeyEvent) -> bool {
        let Some(suggestions) = &self.completion.suggestions else { return false };
        let count = suggestions.offered.len();
        match key.code {
            KeyCode::Up => {
                self.completion.selected = self.completion.selected.checked_sub(1).unwrap_or(count - 1)
            }
            KeyCode::Down => self.completion.selected = (self.completion.selected + 1) % count,
            KeyCode::Tab => self.complete(),
            // Enter sends: a file is completed by Tab only, a command by its name.
            KeyCode::Enter if key.modifiers.is_empty() && self.is_command() => {
                let is_whole = self.is_whole_command();
                self.complete();
                if is_whole {
                    self.submit();
                }
            }
            KeyCode::Esc => self.completion.suggestions = None,
            _ => return false,
        }
        true
    }

    /// Returns `true` if the suggestions are commands.
    fn is_command(&self) -> bool {
        let suggestions = self.completion.suggestions.as_ref();
        suggestions.is_some_and(|known| known.offered.iter().any(|(text, _)| text.starts_with('/')))
    }

    /// Returns `true` if the selected suggestion is a command without required arguments.
    fn is_whole_command(&self) -> bool {
        let offered = self
            .completion
            .suggestions
            .as_ref()
            .and_then(|known| known.offered.get(self.completion.selected));
        let name = offered.and_then(|(text, _)| text.strip_prefix('/'));
        let command =
            self.completion.known_commands.iter().find(|command| Some(command.name.as_str()) == name);
        command.is_some_and(|command| command.arguments.is_empty() || command.arguments.starts_with('['))
    }

    fn complete(&mut self) {
        let Some(Suggestions { range, offered }) = self.completion.suggestions.take() else { return };
        let Some((text, _)) = offered.get(self.completion.selected) else { return };
        // A directory is completed further; anything else ends with a space.
        let text = if text.ends_with('/') { text.clone() } else { format!("{text} ") };
        self.input.editor.replace(range, &text);
    }

    /// Updates the suggestions for the text at the cursor.
    pub(super) fn suggest(&mut self) {
        self.completion.awaits_files = false;
        let text = self.input.editor.text();
        let found = completion::find_target(text, self.input.editor.cursor()).map(|wanted| match wanted {
            CompletionTarget::Command(range) => {
                // MCP servers come and go, and so do their prompts.
                self.completion.known_commands = self.commands.list();
                let offered = completion::commands(&text[range.clone()], &self.completion.known_commands);
                Suggestions { range, offered }
            }
            CompletionTarget::File(range) => {
                let offered = completion::files(&text[range.clone()], &self.completion.files.snapshot());
                Suggestions { range, offered }
            }
        });
        self.completion.awaits_files = matches!(
            completion::find_target(text, self.input.editor.cursor()),
            Some(CompletionTarget::File(_))
        ) && self.completion.files.is_reading();
        let found = found.filter(|found| !found.offered.is_empty());
        if found.as_ref().map(|found| &found.offered)
            != self.completion.suggestions.as_ref().map(|known| &known.offered)
        {
            self.completion.selected = 0;
        }
        self.completion.suggestions = found;
    }

    fn editing_key(&mut self, key: &KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_other = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let width = typed_columns(self.display.screen.columns());
        if let Some(vi) = &mut self.input.vi
            && vi.key(key, &mut self.input.editor) == ViOutcome::Handled
        {
            return;
        }
        let is_twice = !matches!(key.code, KeyCode::Esc | KeyCode::Char('c'));
        if is_twice {
            (self.input.armed_keys.escape, self.input.armed_keys.control_c) = (None, None);
        }
        match key.code {
            KeyCode::Enter if is_other || is_control => self.input.editor.insert("\n"),
            KeyCode::Enter if self.input.editor.text()[..self.input.editor.cursor()].ends_with('\\') => {
                self.input.editor.backspace();
                self.input.editor.insert("\n");
            }
            KeyCode::Enter => self.submit(),
            KeyCode::Tab => self.take_suggestion(),
            KeyCode::Esc => self.escape(),
            KeyCode::BackTab => self.next_mode(),
            KeyCode::Char(character) if is_control => self.control(character),
            KeyCode::Char('b') if key.modifiers.contains(KeyModifiers::ALT) => self.input.editor.word_left(),
            KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::ALT) => self.input.editor.word_right(),
            KeyCode::Char('?') if self.input.editor.is_empty() && self.dialogs.questions.is_empty() => {
                self.display.has_key_help = true;
            }
            KeyCode::Char(character) => self.input.editor.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if is_other => self.input.editor.kill_word(),
            KeyCode::Backspace => self.input.editor.backspace(),
            KeyCode::Delete => self.input.editor.delete(),
            KeyCode::Left if is_control || is_other => self.input.editor.word_left(),
            KeyCode::Right if is_control || is_other => self.input.editor.word_right(),
            KeyCode::Left => self.input.editor.left(),
            KeyCode::Right => self.input.editor.right(),
            KeyCode::Up if self.input.editor.is_empty() && self.has_queue() => {
                self.dialogs.held_prompts = self.take_back_queue();
                self.edit_held_prompts();
            }
            KeyCode::Up => self.input.editor.up(width),
            KeyCode::Down => self.input.editor.down(width),
            KeyCode::Home => self.input.editor.home(),
            KeyCode::End => self.input.editor.end(),
            _ => {}
        }
    }

    /// Returns `true` if messages wait that the agent has not read.
    fn has_queue(&self) -> bool {
        self.session.active.as_ref().is_some_and(|session| session.handle.unread_messages() > 0)
    }

    /// Puts the suggested prompt into the empty editor.
    fn take_suggestion(&mut self) {
        if self.input.editor.is_empty()
            && let Some(suggestion) = self.input.suggestion.take()
        {
            self.input.editor.insert(&suggestion);
        }
    }

    fn control(&mut self, character: char) {
        match character {
            'a' => self.input.editor.home(),
            'b' => self.input.editor.left(),
            'c' => self.control_c(),
            'd' if self.input.editor.is_empty() => self.leave(),
            'd' => self.input.editor.delete(),
            'e' => self.input.editor.end(),
            'f' => self.input.editor.right(),
            'g' => self.edit_prompt(),
            'h' => self.input.editor.backspace(),
            'j' => self.input.editor.insert("\n"),
            'k' => self.input.editor.kill_to_end(),
            // The next frame reports terminal errors.
            'l' => drop(self.display.screen.clear()),
            'n' => self.input.editor.down(typed_columns(self.display.screen.columns())),
            'o' => self.display.transcript.unfold(),
            'p' => self.input.editor.up(typed_columns(self.display.screen.columns())),
            'r' => self.search_history(),
            'u' => self.input.editor.kill_to_start(),
            'w' => self.input.editor.kill_word(),
            'y' => self.input.editor.yank(),
            'z' => self.suspend(),
            _ => {}
        }
    }

    /// Interrupts the work. When idle, a second press clears the editor or, if that is empty, rewinds to an earlier prompt.
    fn escape(&mut self) {
        if self.is_working() {
            return self.interrupt();
        }
        if self.input.armed_keys.escape.take().is_some() {
            match self.input.editor.is_empty() {
                true => self.command("rewind"),
                false => self.input.editor.set(""),
            }
        } else {
            self.input.armed_keys.escape = Some(Instant::now());
        }
    }

    pub(super) fn control_c(&mut self) {
        if self.input.armed_keys.control_c.take().is_some() {
            return self.leave();
        }
        self.input.armed_keys.control_c = Some(Instant::now());
        if self.is_working() {
            self.interrupt();
        } else if !self.input.editor.is_empty() {
            self.input.editor.set("");
        }
    }

    pub(super) fn interrupt(&mut self) {
        self.work.is_stopping = true;
        if let Some(session) = &self.session.active {
            session.handle.interrupt();
        }
    }

    pub(super) fn leave(&mut self) {
        // Dropping the questions refuses them.
        self.dialogs.questions.clear();
        self.dialogs.focus.note_closed();
        if self.is_working() {
            self.interrupt();
        }
        self.send_action(UserAction::Leave);
    }

    /// Submits the typed text as a command, a memory or a prompt.
    pub(super) fn submit(&mut self) {
        self.completion.suggestions = None;
        let typed = self.input.editor.take();
        if typed.sent.trim().is_empty() {
            return;
        }
        self.input.history.add(&typed.sent);
        if let Some(vi) = &mut self.input.vi {
            vi.reset();
        }
        self.submit_text(&typed.sent, &typed.shown, &typed.pictures);
    }

    /// Submits a text as a command, a shell command, a memory or a prompt.
    fn submit_text(&mut self, sent: &str, shown: &str, pictures: &[PathBuf]) {
        if let Some(command) = sent.strip_prefix('/').filter(|command| !command.starts_with('/')) {
            return self.command(command);
        }
        if let Some(command) = parse_shell(sent) {
            return self.run_shell(command);
        }
        if let Some(text) = parse_memory(sent) {
            return self.command(&format!("{REMEMBER} {text}"));
        }
        self.say(sent, shown, pictures);
    }

    /// Runs a shell command of the user, after the current work.
    fn run_shell(&mut self, command: &str) {
        self.session.has_talked = true;
        self.display.transcript.add_command(&format!("! {command}"));
        self.display.transcript.start_shell(command);
        self.send_action(UserAction::RunShell(command.to_owned()));
    }

    /// Sends a prompt; steers the agent if it is working.
    fn say(&mut self, sent: &str, shown: &str, pictures: &[PathBuf]) {
        let (content, problems) = content(sent, pictures, &self.start.directory);
        problems.iter().for_each(|problem| self.display.transcript.error(problem));
        self.session.has_talked = true;
        let is_steering = self.is_working() && self.display.transcript.is_working();
        let typed = if sent.is_empty() || shown.starts_with('/') { shown } else { sent };
        self.display.transcript.queue_prompt(shown, typed);
        match &self.session.active {
            Some(session) if is_steering => session.handle.steer(content),
            _ => self.send_action(UserAction::Prompt(content)),
        }
    }

    /// Runs a slash command.
    pub(super) fn command(&mut self, typed: &str) {
        self.run_command(typed, None);
    }

    /// Runs a slash command that the transcript shows as `echo` instead of as its name and arguments.
    fn run_command(&mut self, typed: &str, echo: Option<&str>) {
        let (name, arguments) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        let log = self.session.active.as_ref().map(|session| session.log.clone());
        let outcome = self.commands.run(&name, &arguments, log.as_deref());
        if !matches!(outcome, SlashOutcome::Pick { .. } | SlashOutcome::Prompt(_) | SlashOutcome::Leave) {
            let typed = format!("/{name} {arguments}");
            self.display.transcript.add_command(echo.unwrap_or(&typed));
        }
        match outcome {
            SlashOutcome::Print(text) => self.display.transcript.add(ansi::lines(&text)),
            SlashOutcome::Notes(lines) => lines.iter().for_each(|line| self.display.transcript.note(line)),
            SlashOutcome::Restyle { theme, has_vi_keys, text } => {
                if let Some(theme) = theme {
                    self.display.theme = theme;
                    self.display.transcript.set_theme(theme);
                }
                if let Some(has_vi_keys) = has_vi_keys {
                    self.input.vi = has_vi_keys.then(ViKeys::default);
                }
                self.display.transcript.add(ansi::lines(&text));
            }
            SlashOutcome::Leave => self.leave(),
            SlashOutcome::NeedsSession => self.send_action(UserAction::Command { name, arguments }),
            SlashOutcome::Prompt(prompt) => self.say(&prompt, &format!("/{name} {arguments}"), &[]),
            SlashOutcome::Pick { title, choices, .. } if choices.is_empty() => {
                self.display.transcript.note(&format!("{title}: nothing to choose from"));
            }
            SlashOutcome::Pick { title, choices, preface } => {
                if !preface.is_empty() {
                    self.display.transcript.add(ansi::lines(&preface));
                }
                self.dialogs.picker = Some(Picker::new(title, choices));
                self.dialogs.picker_use = PickerUse::Command;
            }
            SlashOutcome::Failed(why) => self.display.transcript.error(&why),
            SlashOutcome::Unknown => {
                let known: Vec<&str> =
                    self.completion.known_commands.iter().map(|command| command.name.as_str()).collect();
                self.display.transcript.error(&completion::unknown_command(&name, &known));
            }
        }
    }

    /// Switches to the next permission mode.
    fn next_mode(&mut self) {
        let Some(session) = &self.session.active else { return };
        let mode = self.modes.next(&self.display.status.mode);
        session.handle.choose_mode(mode);
        self.display.status.mode = mode.name().to_owned();
    }

    pub(super) fn send_action(&mut self, action: UserAction) {
        self.end_idle_work();
        self.input.suggestion = None;
        self.display.status.cache = None;
        self.work.pending_actions += 1;
        self.work.since.get_or_insert_with(Instant::now);
        if self.session.actions.send(action).is_err() {
            self.exit = Some(None);
        }
    }
}

/// A choice of a list in the transcript: the command with the words that the user read, not with ids and options.
fn choice_echo(choice: &PickerChoice) -> String {
    format!("/{} {}", choice.command.0, sanitize_line(&choice.label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_shown_in_the_words_of_its_list() {
        let choice = PickerChoice {
            label: String::from("the conversation and 1 file"),
            detail: String::new(),
            command: (String::from("rewind"), String::from("01a1b2c3 --both")),
        };
        assert_eq!(choice_echo(&choice), "/rewind the conversation and 1 file");
    }
}
