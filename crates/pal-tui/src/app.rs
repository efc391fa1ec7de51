//! The event loop: keys first, events in time slices, a limited frame rate, and no work while idle.

mod event_handling;
mod key_input;
mod raw_terminal;

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crossterm::event::Event as Input;
use crossterm::terminal;
use ratatui_core::text::Line;

use crate::alarm::NotificationProtocol;
use crate::completion::Suggestions;
use crate::dialog::Dialog;
use crate::dialog_focus::{DialogFocus, answer_hint};
use crate::editor::Editor;
use crate::event_inbox::{EventInbox, connect};
use crate::live_region::{LiveParts, compose, note_question_shown, question_rows};
use crate::mode_choice::ModeChoice;
use crate::picker::Picker;
use crate::project_files::ProjectFiles;
use crate::prompt_history::PromptHistory;
use crate::screen::Screen;
use crate::status_command::StatusCommand;
use crate::status_line::StatusLine;
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::ui_events::{
    ActiveSession, CommandHandler, CommandInfo, TerminalOptions, TextEditorFn, UiChannels, UserAction,
};
use crate::vi_keys::ViKeys;
use raw_terminal::RawTerminal;

/// Minimum time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(16);
/// Maximum time for events before keys are checked again.
const SLICE: Duration = Duration::from_millis(6);
/// Interval of animations and timers.
const TICK: Duration = Duration::from_millis(250);
/// Interval at which background tasks are counted.
const BACKGROUND_TICK: Duration = Duration::from_secs(2);
/// Maximum time between two presses of a key that count as a double press.
const TWICE: Duration = Duration::from_secs(2);
/// Minimum rows of a screen that shows the user's status command.
const STATUS_ROWS_MIN: usize = 10;
/// Frames of the working indicator.
const SIGNS: [&str; 4] = ["·", "✢", "✻", "✢"];

/// Runs the terminal until the user exits or the agent's thread ends; returns the reason in the latter case.
pub fn run(start: TerminalOptions, channels: UiChannels) -> io::Result<Option<String>> {
    let (width, height) = terminal::size()?;
    let terminal = RawTerminal::enter()?;
    let (inbox, actions) = connect(channels);
    let screen = Screen::new(io::stdout(), width.into(), height.into(), start.is_colored);
    let mut app = App::new(start, screen, actions, &inbox);
    app.begin();
    let left = app.work(&inbox);
    app.display.screen.leave()?;
    drop(terminal);
    if let Some(id) = app.session_to_name() {
        println!("to resume this session: pal --resume {id}");
    }
    left
}

/// State of the running terminal.
struct App {
    display: Display,
    input: PromptInput,
    completion: CompletionState,
    dialogs: OpenDialogs,
    session: SessionLink,
    work: WorkProgress,
    start: InitialInput,
    commands: Box<dyn CommandHandler>,
    modes: ModeChoice,
    programs: OtherPrograms,
    /// Set when the program exits, with the reason if the user did not ask for it.
    exit: Option<Option<String>>,
}

/// Programs that get the terminal for a while.
struct OtherPrograms {
    inbox: EventInbox,
    edit_text: TextEditorFn,
    wake_reader: fn(),
    suspend: fn(),
    /// Time at which raw mode was entered again after a suspension.
    taken_over: Option<Instant>,
}

/// The screen and its content.
struct Display {
    screen: Screen<io::Stdout>,
    theme: Theme,
    transcript: Transcript,
    status: StatusLine,
    status_command: Option<StatusCommand>,
    /// Notifications that the terminal emulator shows.
    notifications: NotificationProtocol,
    /// The panel with the keys is open.
    has_key_help: bool,
    /// No session has been shown yet.
    is_first_session: bool,
}

/// The prompt editor with its history and double-press keys.
struct PromptInput {
    editor: Editor,
    /// Suggestion for the next prompt, shown while the editor is empty.
    suggestion: Option<String>,
    history: PromptHistory,
    armed_keys: ArmedKeys,
    /// Keys of vi, if the user wants them.
    vi: Option<ViKeys>,
}

/// Suggestions for the word at the cursor, and their sources.
struct CompletionState {
    files: ProjectFiles,
    known_commands: Vec<CommandInfo>,
    suggestions: Option<Suggestions>,
    selected: usize,
    /// A suggestion waits for the list of project files.
    awaits_files: bool,
}

/// Questions to the user, oldest first, and the open picker.
#[derive(Default)]
struct OpenDialogs {
    questions: Vec<Box<dyn Dialog>>,
    focus: DialogFocus,
    picker: Option<Picker>,
    picker_use: PickerUse,
    /// Messages that were queued when the agent was stopped, until the user decides about them.
    held_prompts: Vec<String>,
}

/// Use of the chosen item of a picker.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum PickerUse {
    /// Run its command.
    #[default]
    Command,
    /// Put an earlier prompt into the editor.
    History,
    /// Decide about queued messages.
    Queue,
}

/// Connection to the agent's thread.
struct SessionLink {
    actions: mpsc::Sender<UserAction>,
    active: Option<ActiveSession>,
    /// A prompt was sent in this session.
    has_talked: bool,
}

/// Actions in progress.
#[derive(Default)]
struct WorkProgress {
    /// Number of actions that are not done yet.
    pending_actions: usize,
    /// Start of the current work.
    since: Option<Instant>,
    is_stopping: bool,
}

/// Initial prompt and command.
struct InitialInput {
    directory: std::path::PathBuf,
    prompt: Option<String>,
    command: Option<String>,
}

/// Times of keys whose second press has another meaning.
#[derive(Default)]
struct ArmedKeys {
    escape: Option<Instant>,
    control_c: Option<Instant>,
}

impl App {
    fn new(
        start: TerminalOptions,
        screen: Screen<io::Stdout>,
        actions: mpsc::Sender<UserAction>,
        inbox: &EventInbox,
    ) -> App {
        let (bell, status_command) = (inbox.clone(), start.status_command);
        let status_command =
            status_command.map(|command| StatusCommand::start(command, move || bell.redraw()));
        let theme = start.theme;
        let history = PromptHistory::new(start.history);
        App {
            display: Display {
                transcript: Transcript::new(screen.columns(), theme),
                screen,
                theme,
                status: StatusLine::default(),
                status_command,
                notifications: start.notifications,
                has_key_help: false,
                is_first_session: true,
            },
            input: PromptInput {
                editor: Editor::new(history.read()),
                suggestion: None,
                history,
                armed_keys: ArmedKeys::default(),
                vi: start.has_vi_keys.then(ViKeys::default),
            },
            completion: CompletionState {
                files: ProjectFiles::new(start.directory.clone()),
                known_commands: start.commands.list(),
                suggestions: None,
                selected: 0,
                awaits_files: false,
            },
            dialogs: OpenDialogs::default(),
            session: SessionLink { actions, active: None, has_talked: false },
            work: WorkProgress::default(),
            start: InitialInput { directory: start.directory, prompt: start.prompt, command: start.command },
            commands: start.commands,
            modes: ModeChoice::default(),
            programs: OtherPrograms {
                inbox: inbox.clone(),
                edit_text: start.edit_text,
                wake_reader: start.wake_reader,
                suspend: start.suspend,
                taken_over: None,
            },
            exit: None,
        }
    }

    /// Runs the initial command and prompt.
    fn begin(&mut self) {
        if let Some(command) = self.start.command.take() {
            self.command(&command);
        }
        if let Some(prompt) = self.start.prompt.take() {
            self.input.editor.insert(&prompt);
            self.submit();
        }
    }

    fn work(&mut self, inbox: &EventInbox) -> io::Result<Option<String>> {
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
            if let Some(left) = self.exit.take() {
                return Ok(left);
            }
            let pause = if is_changed { Some(next_frame - now.min(next_frame)) } else { self.pause() };
            inbox.wait(pause);
            is_changed |= inbox.take_redraw();
            let mut is_typed = false;
            while let Some(input) = inbox.next_input() {
                self.input(input);
                is_typed = true;
            }
            // Typed text is drawn at once, before any events.
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
                && let Some(event) = inbox.next_event()
            {
                self.handle_event(event);
                is_changed = true;
            }
        }
    }

    /// Time until the next timer; `None` waits for input.
    fn pause(&self) -> Option<Duration> {
        let is_armed = self.input.armed_keys.control_c.or(self.input.armed_keys.escape).is_some();
        let has_background = self.display.status.background > 0;
        match () {
            () if self.is_working() || is_armed || self.completion.awaits_files => Some(TICK),
            () if has_background => Some(BACKGROUND_TICK),
            () => self.display.status.until_cache_changes(),
        }
    }

    /// Advances timers; returns `true` if the frame may have changed.
    fn tick(&mut self) -> bool {
        if self.completion.awaits_files {
            self.suggest();
        }
        let is_over = |pressed: &mut Option<Instant>| {
            let is_over = pressed.is_some_and(|at| at.elapsed() >= TWICE);
            if is_over {
                *pressed = None;
            }
            is_over
        };
        let is_disarmed =
            is_over(&mut self.input.armed_keys.control_c) | is_over(&mut self.input.armed_keys.escape);
        is_disarmed
            || self.is_working()
            || self.display.status.background > 0
            || self.display.status.cache.is_some()
            || self.completion.suggestions.is_some()
    }

    /// Session id to print at exit; `None` if nothing was said.
    fn session_to_name(&self) -> Option<String> {
        let log = self.session.active.as_ref().filter(|_| self.session.has_talked)?.log.clone();
        Some(log.parent()?.file_name()?.to_string_lossy().into_owned())
    }

    fn is_working(&self) -> bool {
        self.work.pending_actions > 0
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Key(key) => self.key(&key),
            Input::Paste(text) => self.pasted(&text),
            // Every frame queries the size itself.
            _ => {}
        }
    }

    /// Draws a frame, for the current size of the terminal: a frame for another width would be garbled.
    fn draw(&mut self) -> io::Result<()> {
        if let Ok((width, height)) = terminal::size() {
            self.display.screen.resize(width.into(), height.into());
            self.display.transcript.set_width(self.display.screen.columns());
        }
        if let Some(session) = &self.session.active {
            self.display.status.background = (session.background)().len();
        }
        let finished = self.display.transcript.take_finished();
        let (columns, rows) = (self.display.screen.columns(), self.display.screen.rows());
        if let Some(question) = self.dialogs.questions.first_mut() {
            question.lay_out(columns, question_rows(rows), self.display.theme);
        }
        let working = self.working();
        let hint = self.hint();
        let status_lines = self.status_lines(rows);
        let parts = LiveParts {
            transcript: &self.display.transcript,
            status: &self.display.status,
            editor: &self.input.editor,
            suggestion: self.input.suggestion.as_deref(),
            question: self.dialogs.questions.first().map(AsRef::as_ref),
            picker: self.dialogs.picker.as_ref(),
            suggestions: self
                .completion
                .suggestions
                .as_ref()
                .map(|suggestions| (suggestions, self.completion.selected)),
            working,
            hint: hint.as_deref(),
            status_lines,
            vi_mode: self.input.vi.as_ref().map(ViKeys::mode_name),
            has_key_help: self.display.has_key_help,
            is_on_dialog: self.dialogs.focus.is_on_dialog(),
        };
        let (live, question_at) = compose(&parts, columns, rows, self.display.theme);
        self.display.screen.frame(&finished, &live)?;
        if let Some((question, first)) = self.dialogs.questions.first_mut().zip(question_at) {
            note_question_shown(question.as_mut(), first, &live, rows);
        }
        Ok(())
    }

    fn working(&self) -> Option<String> {
        let since = self.work.since.filter(|_| self.is_working() && self.dialogs.questions.is_empty())?;
        let passed = since.elapsed();
        let sign = SIGNS[(passed.as_millis() / TICK.as_millis()) as usize % SIGNS.len()];
        let words = if self.work.is_stopping { "stopping" } else { "working" };
        let hint = match self.session.active.as_ref().map_or(0, |session| session.handle.unread_messages()) {
            0 => String::from("type to steer"),
            1 => String::from("1 message queued, ↑ edits it"),
            count => format!("{count} messages queued, ↑ edits them"),
        };
        Some(format!("{sign} {words}, {} s · Esc to stop · {hint}", passed.as_secs()))
    }

    /// Output of the user's status command, on a screen with room for it.
    fn status_lines(&mut self, rows: usize) -> Vec<Line<'static>> {
        let Some(command) = self.display.status_command.as_mut().filter(|_| rows >= STATUS_ROWS_MIN) else {
            return Vec::new();
        };
        if let Some(session) = &self.session.active {
            command.update(self.display.status.json(&session.log, &self.start.directory));
        }
        command.lines()
    }

    fn hint(&self) -> Option<String> {
        if self.input.armed_keys.control_c.is_some() {
            return Some(String::from("press Ctrl-C again to exit"));
        }
        if let Some(question) =
            self.dialogs.questions.first().filter(|_| self.dialogs.focus.is_enter_ignored())
        {
            return Some(answer_hint(question.n_answers()));
        }
        if self.input.armed_keys.escape.is_some() && self.input.editor.is_empty() && !self.is_working() {
            return Some(String::from("press Esc again to go back to an earlier prompt"));
        }
        if self.input.armed_keys.escape.is_some() && !self.is_working() {
            return Some(String::from("press Esc again to clear the line"));
        }
        None
    }
}
