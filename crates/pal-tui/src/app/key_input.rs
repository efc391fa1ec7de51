//! Handling of keys, pastes and submitted prompts.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::App;
use crate::ansi;
use crate::attachments::{content, pasted_image_path};
use crate::completion::{self, CompletionTarget, Suggestions};
use crate::dialog::DialogOutcome;
use crate::live_region::typed_columns;
use crate::picker::{Picker, PickerOutcome};
use crate::ui_events::{REMEMBER, SlashOutcome, UserAction, parse_memory};

impl App {
    pub(super) fn key(&mut self, key: &KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if self.dialogs.picker.is_some() {
            return self.picker_key(key);
        }
        if let Some(question) = self.dialogs.questions.first_mut() {
            match question.key(key) {
                DialogOutcome::Open => return,
                DialogOutcome::Done => return self.close_question(),
                DialogOutcome::Stopped => {
                    self.close_question();
                    return self.interrupt();
                }
                DialogOutcome::NotForDialog => {}
            }
        }
        if !self.suggestion_key(key) {
            self.editing_key(key);
        }
        self.suggest();
    }

    /// Removes the answered dialog; a plan and answers stay in the transcript.
    fn close_question(&mut self) {
        let question = self.dialogs.questions.remove(0);
        if let Some(record) = question.record(self.display.screen.columns()) {
            self.display.transcript.add(record);
        }
    }

    pub(super) fn pasted(&mut self, text: &str) {
        match self.dialogs.questions.first_mut() {
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
            PickerOutcome::Closed => self.dialogs.picker = None,
            PickerOutcome::Chosen(choice) => {
                self.dialogs.picker = None;
                let (name, arguments) = choice.command;
                self.command(&format!("{name} {arguments}"));
            }
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
            KeyCode::Enter if key.modifiers.is_empty() => {
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
            KeyCode::Char(character) => self.input.editor.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if is_other => self.input.editor.kill_word(),
            KeyCode::Backspace => self.input.editor.backspace(),
            KeyCode::Delete => self.input.editor.delete(),
            KeyCode::Left if is_control || is_other => self.input.editor.word_left(),
            KeyCode::Right if is_control || is_other => self.input.editor.word_right(),
            KeyCode::Left => self.input.editor.left(),
            KeyCode::Right => self.input.editor.right(),
            KeyCode::Up => self.input.editor.up(width),
            KeyCode::Down => self.input.editor.down(width),
            KeyCode::Home => self.input.editor.home(),
            KeyCode::End => self.input.editor.end(),
            _ => {}
        }
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
            'h' => self.input.editor.backspace(),
            'j' => self.input.editor.insert("\n"),
            'k' => self.input.editor.kill_to_end(),
            // The next frame reports terminal errors.
            'l' => drop(self.display.screen.clear()),
            'n' => self.input.editor.down(typed_columns(self.display.screen.columns())),
            'o' => self.display.transcript.unfold(),
            'p' => self.input.editor.up(typed_columns(self.display.screen.columns())),
            'u' => self.input.editor.kill_to_start(),
            'w' => self.input.editor.kill_word(),
            'y' => self.input.editor.yank(),
            'z' => self.suspend(),
            _ => {}
        }
    }

    /// Interrupts the work. When idle with an empty editor, a second press rewinds to an earlier prompt.
    fn escape(&mut self) {
        if self.is_working() {
            return self.interrupt();
        }
        if !self.input.editor.is_empty() {
            return;
        }
        if self.input.armed_keys.escape.take().is_some() {
            self.command("rewind");
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
        if let Some(command) = typed.sent.strip_prefix('/').filter(|command| !command.starts_with('/')) {
            return self.command(command);
        }
        if let Some(text) = parse_memory(&typed.sent) {
            return self.command(&format!("{REMEMBER} {text}"));
        }
        self.say(&typed.sent, &typed.shown, &typed.pictures);
    }

    /// Sends a prompt; steers the agent if it is working.
    fn say(&mut self, sent: &str, shown: &str, pictures: &[PathBuf]) {
        let (content, problems) = content(sent, pictures, &self.start.directory);
        problems.iter().for_each(|problem| self.display.transcript.error(problem));
        self.session.has_talked = true;
        let is_steering = self.is_working() && self.display.transcript.is_working();
        self.display.transcript.add_prompt(shown);
        match &self.session.active {
            Some(session) if is_steering => session.handle.steer(content),
            _ => self.send_action(UserAction::Prompt(content)),
        }
    }

    /// Runs a slash command.
    pub(super) fn command(&mut self, typed: &str) {
        let (name, arguments) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        let log = self.session.active.as_ref().map(|session| session.log.clone());
        let outcome = self.commands.run(&name, &arguments, log.as_deref());
        if !matches!(outcome, SlashOutcome::Pick { .. } | SlashOutcome::Prompt(_) | SlashOutcome::Leave) {
            self.display.transcript.add_command(&format!("/{name} {arguments}"));
        }
        match outcome {
            SlashOutcome::Print(text) => self.display.transcript.add(ansi::lines(&text)),
            SlashOutcome::Notes(lines) => lines.iter().for_each(|line| self.display.transcript.note(line)),
            SlashOutcome::Leave => self.leave(),
            SlashOutcome::NeedsSession => self.send_action(UserAction::Command { name, arguments }),
            SlashOutcome::Prompt(prompt) => self.say(&prompt, &format!("/{name} {arguments}"), &[]),
            SlashOutcome::Pick { title, choices } if choices.is_empty() => {
                self.display.transcript.note(&format!("{title}: nothing to choose from"));
            }
            SlashOutcome::Pick { title, choices } => self.dialogs.picker = Some(Picker::new(title, choices)),
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
        self.input.suggestion = None;
        self.work.pending_actions += 1;
        self.work.since.get_or_insert_with(Instant::now);
        if self.session.actions.send(action).is_err() {
            self.exit = Some(None);
        }
    }
}
