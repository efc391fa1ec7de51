//! The loop: keys before everything else, news in slices, at most so many frames a second, and no work while nothing happens.

mod raw;
mod typing;
mod working;

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crossterm::event::Event as Input;
use crossterm::terminal;

use crate::asking::Question;
use crate::editor::Editor;
use crate::files::Files;
use crate::history::History;
use crate::keys::{Inbox, parts};
use crate::live::{Parts, composed, note_question_shown, question_rows};
use crate::modes::Modes;
use crate::picker::Picker;
use crate::screen::Screen;
use crate::status::Status;
use crate::suggest::Suggestions;
use crate::theme::Theme;
use crate::told::{CommandInfo, Commands, Facts, Origin, Start, Wish};
use crate::transcript::Transcript;
use raw::Raw;

/// The least time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(16);
/// How long news are dealt with before keys are looked at again.
const SLICE: Duration = Duration::from_millis(6);
/// How often what moves by itself moves.
const TICK: Duration = Duration::from_millis(250);
/// How often what runs in the background is looked at.
const BACKGROUND_TICK: Duration = Duration::from_secs(2);
/// How long a second press of a key counts as one.
const TWICE: Duration = Duration::from_secs(2);
/// What moves while something is worked on.
const SIGNS: [&str; 4] = ["·", "✢", "✻", "✢"];

/// Talks with the user until one of both sides leaves. The words that say why, if it was not the user.
pub fn run(start: Start, origin: Origin) -> io::Result<Option<String>> {
    let (width, height) = terminal::size()?;
    let terminal = Raw::enter()?;
    let (inbox, wishes) = parts(origin);
    let screen = Screen::new(io::stdout(), width.into(), height.into(), start.is_coloured);
    let mut app = App::new(start, screen, wishes);
    app.begin();
    let left = app.work(&inbox);
    app.screen.leave()?;
    drop(terminal);
    if let Some(id) = app.session_to_name() {
        println!("pal --resume {id} goes on with this session");
    }
    left
}

/// What the program knows while it talks.
struct App {
    screen: Screen<io::Stdout>,
    theme: Theme,
    transcript: Transcript,
    status: Status,
    modes: Modes,
    editor: Editor,
    history: History,
    files: Files,
    start: StartLeft,
    suspend: fn(),
    /// When the terminal was taken over again after we were stopped.
    taken_over: Option<Instant>,
    commands: Box<dyn Commands>,
    known: Vec<CommandInfo>,
    wishes: mpsc::Sender<Wish>,
    facts: Option<Facts>,
    questions: Vec<Question>,
    picker: Option<Picker>,
    suggestions: Option<Suggestions>,
    suggested: usize,
    /// Wishes that were not fulfilled yet.
    outstanding: usize,
    /// Whether the files of the project are being read for a suggestion.
    awaits_files: bool,
    /// Whether anything was said.
    has_talked: bool,
    /// Since when something is worked on.
    since: Option<Instant>,
    pressed: Pressed,
    is_stopping: bool,
    left: Option<Option<String>>,
}

/// What is begun with.
struct StartLeft {
    directory: std::path::PathBuf,
    prompt: Option<String>,
    command: Option<String>,
}

/// Keys whose second press means more.
#[derive(Default)]
struct Pressed {
    escape: Option<Instant>,
    control_c: Option<Instant>,
}

impl App {
    fn new(start: Start, screen: Screen<io::Stdout>, wishes: mpsc::Sender<Wish>) -> App {
        let theme = Theme;
        let history = History::new(start.history);
        App {
            transcript: Transcript::new(screen.columns(), theme),
            screen,
            theme,
            status: Status::default(),
            modes: Modes::default(),
            editor: Editor::new(history.read()),
            history,
            files: Files::new(start.directory.clone()),
            known: start.commands.list(),
            commands: start.commands,
            start: StartLeft { directory: start.directory, prompt: start.prompt, command: start.command },
            suspend: start.suspend,
            taken_over: None,
            wishes,
            facts: None,
            questions: Vec::new(),
            picker: None,
            suggestions: None,
            suggested: 0,
            outstanding: 0,
            awaits_files: false,
            has_talked: false,
            since: None,
            pressed: Pressed::default(),
            is_stopping: false,
            left: None,
        }
    }

    /// What the user came with.
    fn begin(&mut self) {
        if let Some(command) = self.start.command.take() {
            self.command(&command);
        }
        if let Some(prompt) = self.start.prompt.take() {
            self.editor.insert(&prompt);
            self.submit();
        }
    }

    fn work(&mut self, inbox: &Inbox) -> io::Result<Option<String>> {
        let mut next_frame = Instant::now();
        let mut next_tick = next_frame;
        let mut is_changed = true;
        loop {
            let now = Instant::now();
            if is_changed && now >= next_frame {
                self.draw()?;
                is_changed = false;
                next_frame = Instant::now() + FRAME;
            }
            if let Some(left) = self.left.take() {
                return Ok(left);
            }
            let pause = if is_changed { Some(next_frame - now.min(next_frame)) } else { self.pause() };
            inbox.wait(pause);
            let mut is_typed = false;
            while let Some(input) = inbox.input() {
                self.input(input);
                is_typed = true;
            }
            // Whoever types sees it at once, whatever else there is to be told.
            if is_typed {
                self.draw()?;
                next_frame = Instant::now() + FRAME;
            }
            let begun = Instant::now();
            if begun >= next_tick {
                next_tick = begun + TICK;
                is_changed |= self.tick();
            }
            while begun.elapsed() < SLICE
                && let Some(told) = inbox.told()
            {
                self.told(told);
                is_changed = true;
            }
        }
    }

    /// How long nothing need be done.
    fn pause(&self) -> Option<Duration> {
        let is_armed = self.pressed.control_c.or(self.pressed.escape).is_some();
        let has_background = self.status.background > 0;
        match () {
            () if self.is_working() || is_armed || self.awaits_files => Some(TICK),
            () if has_background => Some(BACKGROUND_TICK),
            () => None,
        }
    }

    /// Time passed. Whether something looks otherwise by that alone.
    fn tick(&mut self) -> bool {
        if self.awaits_files {
            self.suggest();
        }
        let is_over = |pressed: &mut Option<Instant>| {
            let is_over = pressed.is_some_and(|at| at.elapsed() >= TWICE);
            if is_over {
                *pressed = None;
            }
            is_over
        };
        let is_disarmed = is_over(&mut self.pressed.control_c) | is_over(&mut self.pressed.escape);
        is_disarmed || self.is_working() || self.status.background > 0 || self.suggestions.is_some()
    }

    /// The id of the session, if it is worth going on with.
    fn session_to_name(&self) -> Option<String> {
        let log = self.facts.as_ref().filter(|_| self.has_talked)?.log.clone();
        Some(log.parent()?.file_name()?.to_string_lossy().into_owned())
    }

    fn is_working(&self) -> bool {
        self.outstanding > 0
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Key(key) => self.key(&key),
            Input::Paste(text) => self.pasted(&text),
            // Every frame asks for the size itself.
            _ => {}
        }
    }

    /// Draws a frame. The terminal may have changed since we were last told, and a frame for another width would go astray.
    fn draw(&mut self) -> io::Result<()> {
        if let Ok((width, height)) = terminal::size() {
            self.screen.resize(width.into(), height.into());
            self.transcript.set_width(self.screen.columns());
        }
        if let Some(facts) = &self.facts {
            self.status.background = (facts.background)().len();
        }
        let finished = self.transcript.take_finished();
        let (columns, rows) = (self.screen.columns(), self.screen.rows());
        if let Some(question) = self.questions.first_mut() {
            question.lay_out(columns, question_rows(rows), self.theme);
        }
        let working = self.working();
        let hint = self.hint();
        let parts = Parts {
            transcript: &self.transcript,
            status: &self.status,
            editor: &self.editor,
            question: self.questions.first(),
            picker: self.picker.as_ref(),
            suggestions: self.suggestions.as_ref().map(|suggestions| (suggestions, self.suggested)),
            working,
            hint: hint.as_deref(),
        };
        let (live, question_at) = composed(&parts, columns, rows, self.theme);
        self.screen.frame(&finished, &live)?;
        if let Some((question, first)) = self.questions.first_mut().zip(question_at) {
            note_question_shown(question, first, &live, rows);
        }
        Ok(())
    }

    fn working(&self) -> Option<String> {
        let since = self.since.filter(|_| self.is_working() && self.questions.is_empty())?;
        let passed = since.elapsed();
        let sign = SIGNS[(passed.as_millis() / TICK.as_millis()) as usize % SIGNS.len()];
        let words = if self.is_stopping { "stopping" } else { "working" };
        Some(format!("{sign} {words}, {} s · Esc stops · what you type steers it", passed.as_secs()))
    }

    fn hint(&self) -> Option<String> {
        if self.pressed.control_c.is_some() {
            return Some(String::from("Ctrl-C once more leaves"));
        }
        if self.pressed.escape.is_some() && self.editor.is_empty() && !self.is_working() {
            return Some(String::from("Esc once more goes back to an earlier prompt"));
        }
        None
    }
}
