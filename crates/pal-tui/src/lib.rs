//! Terminal user interface: the conversation grows in the terminal's own scrollback; a small live region below it shows the
//! end of the answer, running tools, the prompt editor and the status line.
//!
//! The crate does not create agents. [`run`] receives [`UiEvent`]s and sends [`UserAction`]s over [`UiChannels`]; a
//! [`CommandHandler`] runs slash commands. Finished lines are printed once and never touched again, so the scrollback survives
//! any resize. Pure modules compute the content (`transcript`, `markdown`, `diff`, `editor`, `picker`, `permission_dialog`,
//! `question_dialog`, `consent_document`); only `screen` writes, only `app` waits.

mod alarm;
mod ansi;
mod app;
mod attachments;
mod cold_turn_dialog;
mod completion;
mod consent_document;
mod dialog;
mod dialog_focus;
mod dialog_page;
mod diff;
mod editor;
mod event_inbox;
mod key_help;
mod live_region;
mod markdown;
mod markdown_stream;
mod mode_choice;
mod permission_dialog;
mod picker;
mod plain_questions;
mod plain_terminal;
mod project_files;
mod prompt_history;
mod question_dialog;
mod screen;
mod status_command;
mod status_line;
mod styled_text;
mod theme;
mod transcript;
mod ui_events;
mod vi_keys;
mod welcome;

pub use alarm::NotificationProtocol;
pub use app::run;
pub use key_help::KEY_HELP;
pub use markdown::render_markdown;
pub use markdown_stream::MarkdownStream;
pub use plain_terminal::run_plain;
pub use screen::{LiveRegion, Screen};
pub use theme::Theme;
pub use transcript::Transcript;
pub use ui_events::{
    ActiveSession, CacheClock, ColdTurnAnswer, CommandHandler, CommandInfo, Consent, PickerChoice,
    SlashOutcome, StatusCommandFn, TerminalOptions, TextEditorFn, UiChannels, UiEvent, UserAction,
};
