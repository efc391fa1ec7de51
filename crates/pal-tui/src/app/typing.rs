//! What is typed.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::App;
use crate::ansi;
use crate::asking::{Answered, plan};
use crate::attach::{content, pasted_picture};
use crate::live::typed_columns;
use crate::picker::{Picked, Picker};
use crate::suggest::{self, Suggestions, Wanted};
use crate::told::{Outcome, REMEMBER, Wish, to_remember};

impl App {
    pub(super) fn key(&mut self, key: &KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if self.picker.is_some() {
            return self.picker_key(key);
        }
        if let Some(question) = self.questions.first_mut() {
            match question.key(key) {
                Answered::Open => return,
                Answered::Done => return self.close_question(),
                Answered::Stopped => {
                    self.close_question();
                    return self.interrupt();
                }
                Answered::NotMeant => {}
            }
        }
        if !self.suggestion_key(key) {
            self.editing_key(key);
        }
        self.suggest();
    }

    /// Takes the question away that was answered. A plan stays in the conversation.
    fn close_question(&mut self) {
        let question = self.questions.remove(0);
        if let Some(plan) = plan(&question.asked, self.screen.columns()) {
            self.transcript.add(plan);
        }
    }

    pub(super) fn pasted(&mut self, text: &str) {
        match self.questions.first_mut() {
            Some(question) => question.paste(text),
            None => match pasted_picture(text, &self.start.directory) {
                Some(path) => self.editor.paste_picture(path),
                None => self.editor.paste(text),
            },
        }
        self.suggest();
    }

    fn picker_key(&mut self, key: &KeyEvent) {
        let Some(picker) = &mut self.picker else { return };
        match picker.key(key) {
            Picked::Open => {}
            Picked::Closed => self.picker = None,
            Picked::Chosen(choice) => {
                self.picker = None;
                let (name, arguments) = choice.command;
                self.command(&format!("{name} {arguments}"));
            }
        }
    }

    /// Keys that choose among suggestions; whether it was one.
    fn suggestion_key(&mut self, key: &KeyEvent) -> bool {
        let Some(suggestions) = &self.suggestions else { return false };
        let count = suggestions.offered.len();
        match key.code {
            KeyCode::Up => self.suggested = self.suggested.checked_sub(1).unwrap_or(count - 1),
            KeyCode::Down => self.suggested = (self.suggested + 1) % count,
            KeyCode::Tab => self.complete(),
            KeyCode::Enter if key.modifiers.is_empty() => {
                let is_whole = self.is_whole_command();
                self.complete();
                if is_whole {
                    self.submit();
                }
            }
            KeyCode::Esc => self.suggestions = None,
            _ => return false,
        }
        true
    }

    /// Whether the suggestion at hand is a command that needs nothing behind it.
    fn is_whole_command(&self) -> bool {
        let offered = self.suggestions.as_ref().and_then(|known| known.offered.get(self.suggested));
        let name = offered.and_then(|(text, _)| text.strip_prefix('/'));
        let command = self.known.iter().find(|command| Some(command.name.as_str()) == name);
        command.is_some_and(|command| command.arguments.is_empty() || command.arguments.starts_with('['))
    }

    fn complete(&mut self) {
        let Some(Suggestions { range, offered }) = self.suggestions.take() else { return };
        let Some((text, _)) = offered.get(self.suggested) else { return };
        // A directory is gone into, anything else is done with.
        let text = if text.ends_with('/') { text.clone() } else { format!("{text} ") };
        self.editor.replace(range, &text);
    }

    /// What could be meant now.
    pub(super) fn suggest(&mut self) {
        self.awaits_files = false;
        let text = self.editor.text();
        let found = suggest::wanted(text, self.editor.cursor()).map(|wanted| match wanted {
            Wanted::Command(range) => {
                // Servers come and go, and their prompts with them.
                self.known = self.commands.list();
                let offered = suggest::commands(&text[range.clone()], &self.known);
                Suggestions { range, offered }
            }
            Wanted::File(range) => {
                let offered = suggest::files(&text[range.clone()], &self.files.known());
                Suggestions { range, offered }
            }
        });
        self.awaits_files = matches!(suggest::wanted(text, self.editor.cursor()), Some(Wanted::File(_)))
            && self.files.is_reading();
        let found = found.filter(|found| !found.offered.is_empty());
        if found.as_ref().map(|found| &found.offered) != self.suggestions.as_ref().map(|known| &known.offered)
        {
            self.suggested = 0;
        }
        self.suggestions = found;
    }

    fn editing_key(&mut self, key: &KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_other = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let width = typed_columns(self.screen.columns());
        let is_twice = !matches!(key.code, KeyCode::Esc | KeyCode::Char('c'));
        if is_twice {
            (self.pressed.escape, self.pressed.control_c) = (None, None);
        }
        match key.code {
            KeyCode::Enter if is_other || is_control => self.editor.insert("\n"),
            KeyCode::Enter if self.editor.text()[..self.editor.cursor()].ends_with('\\') => {
                self.editor.backspace();
                self.editor.insert("\n");
            }
            KeyCode::Enter => self.submit(),
            KeyCode::Esc => self.escape(),
            KeyCode::BackTab => self.next_mode(),
            KeyCode::Char(character) if is_control => self.control(character),
            KeyCode::Char('b') if key.modifiers.contains(KeyModifiers::ALT) => self.editor.word_left(),
            KeyCode::Char('f') if key.modifiers.contains(KeyModifiers::ALT) => self.editor.word_right(),
            KeyCode::Char(character) => self.editor.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if is_other => self.editor.kill_word(),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left if is_control || is_other => self.editor.word_left(),
            KeyCode::Right if is_control || is_other => self.editor.word_right(),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Up => self.editor.up(width),
            KeyCode::Down => self.editor.down(width),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            _ => {}
        }
    }

    fn control(&mut self, character: char) {
        match character {
            'a' => self.editor.home(),
            'b' => self.editor.left(),
            'c' => self.control_c(),
            'd' if self.editor.is_empty() => self.leave(),
            'd' => self.editor.delete(),
            'e' => self.editor.end(),
            'f' => self.editor.right(),
            'h' => self.editor.backspace(),
            'j' => self.editor.insert("\n"),
            'k' => self.editor.kill_to_end(),
            // A terminal that cannot be cleared will tell so at the next frame.
            'l' => drop(self.screen.clear()),
            'n' => self.editor.down(typed_columns(self.screen.columns())),
            'o' => self.transcript.unfold(),
            'p' => self.editor.up(typed_columns(self.screen.columns())),
            'u' => self.editor.kill_to_start(),
            'w' => self.editor.kill_word(),
            'y' => self.editor.yank(),
            'z' => self.suspend(),
            _ => {}
        }
    }

    /// Stops what goes on; with nothing going on and nothing typed, twice goes back to an earlier prompt.
    fn escape(&mut self) {
        if self.is_working() {
            return self.interrupt();
        }
        if !self.editor.is_empty() {
            return;
        }
        if self.pressed.escape.take().is_some() {
            self.command("rewind");
        } else {
            self.pressed.escape = Some(Instant::now());
        }
    }

    pub(super) fn control_c(&mut self) {
        if self.pressed.control_c.take().is_some() {
            return self.leave();
        }
        self.pressed.control_c = Some(Instant::now());
        if self.is_working() {
            self.interrupt();
        } else if !self.editor.is_empty() {
            self.editor.set("");
        }
    }

    pub(super) fn interrupt(&mut self) {
        self.is_stopping = true;
        if let Some(facts) = &self.facts {
            facts.handle.interrupt();
        }
    }

    pub(super) fn leave(&mut self) {
        // Whoever asks hears a no.
        self.questions.clear();
        if self.is_working() {
            self.interrupt();
        }
        self.wish(Wish::Leave);
    }

    /// What was typed is meant.
    pub(super) fn submit(&mut self) {
        self.suggestions = None;
        let typed = self.editor.take();
        if typed.sent.trim().is_empty() {
            return;
        }
        self.history.add(&typed.sent);
        if let Some(command) = typed.sent.strip_prefix('/').filter(|command| !command.starts_with('/')) {
            return self.command(command);
        }
        if let Some(text) = to_remember(&typed.sent) {
            return self.command(&format!("{REMEMBER} {text}"));
        }
        self.say(&typed.sent, &typed.shown, &typed.pictures);
    }

    /// Says something: to a session that works, it steers it.
    fn say(&mut self, sent: &str, shown: &str, pictures: &[PathBuf]) {
        let (content, problems) = content(sent, pictures, &self.start.directory);
        problems.iter().for_each(|problem| self.transcript.complain(problem));
        self.has_talked = true;
        let is_steering = self.is_working() && self.transcript.is_working();
        self.transcript.said(shown);
        match &self.facts {
            Some(facts) if is_steering => facts.handle.steer(content),
            _ => self.wish(Wish::Prompt(content)),
        }
    }

    /// Carries a command out.
    pub(super) fn command(&mut self, typed: &str) {
        let (name, arguments) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        match name.as_str() {
            "exit" | "quit" => return self.leave(),
            "tasks" if arguments.is_empty() => return self.tasks(),
            _ => {}
        }
        let log = self.facts.as_ref().map(|facts| facts.log.clone());
        let outcome = self.commands.run(&name, &arguments, log.as_deref());
        if !matches!(outcome, Outcome::Pick { .. } | Outcome::Prompt(_)) {
            self.transcript.commanded(&format!("/{name} {arguments}"));
        }
        match outcome {
            Outcome::Print(text) => self.transcript.add(ansi::lines(&text)),
            Outcome::Session => self.wish(Wish::Command { name, arguments }),
            Outcome::Prompt(prompt) => self.say(&prompt, &format!("/{name} {arguments}"), &[]),
            Outcome::Pick { title, choices } if choices.is_empty() => {
                self.transcript.note(&format!("{title}: there is nothing to choose from"));
            }
            Outcome::Pick { title, choices } => self.picker = Some(Picker::new(title, choices)),
            Outcome::Failed(why) => self.transcript.complain(&why),
            Outcome::Unknown => {
                self.transcript.complain(&format!("there is no command /{name}; /help lists them"));
            }
        }
    }

    /// The next permission mode holds.
    fn next_mode(&mut self) {
        let Some(facts) = &self.facts else { return };
        let mode = self.modes.next(&self.status.mode);
        facts.handle.choose_mode(mode);
        self.status.mode = mode.name().to_owned();
    }

    /// What runs in the background.
    fn tasks(&mut self) {
        self.transcript.commanded("/tasks");
        let tasks = self.facts.as_ref().map_or(Vec::new(), |facts| (facts.background)());
        if tasks.is_empty() {
            self.transcript.note("nothing runs in the background");
        }
        tasks.iter().for_each(|task| self.transcript.note(task));
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        self.outstanding += 1;
        self.since.get_or_insert_with(Instant::now);
        if self.wishes.send(wish).is_err() {
            self.left = Some(None);
        }
    }
}
