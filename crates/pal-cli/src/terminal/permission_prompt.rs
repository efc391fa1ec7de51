//! Permission prompts of the agent, shown by the terminal.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use pal_events::{AgentEvent, CallApproval, PermissionAnswer, PermissionAsker, PermissionQuestion};
use pal_permissions::PermissionMode;
use pal_tui::{Consent, UiEvent};

/// Asks through the terminal. Rules that the user allows for the project are added to the file `allowed`.
pub(super) fn permission_prompt(told: Sender<UiEvent>, allowed: Option<PathBuf>) -> PermissionAsker {
    let turn = Mutex::new(());
    Arc::new(move |asked: &PermissionQuestion| {
        // Subagents ask the same user: one after the other.
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, answered) = channel();
        if told.send(UiEvent::PermissionAsked(asked.clone(), answer)).is_err() {
            return PermissionAnswer::No(None);
        }
        match answered.recv() {
            Ok(Consent::Once) => PermissionAnswer::Once,
            Ok(Consent::Project) => {
                let notice = pal_settings::allow_and_tell(allowed.as_deref(), &asked.rule);
                // The terminal that showed the prompt still runs.
                let _ = told.send(UiEvent::Event(AgentEvent::Notice(notice)));
                PermissionAnswer::Session
            }
            Ok(Consent::Plan { changed, accepts_edits }) => {
                let input = changed.map(|plan| serde_json::json!({"plan": plan, "edited": true}).to_string());
                let mode = accepts_edits.then(|| PermissionMode::AcceptEdits.name().to_owned());
                PermissionAnswer::Approved(CallApproval { input, mode, ..CallApproval::default() })
            }
            Ok(Consent::Answers(answers)) => PermissionAnswer::Answered(answers),
            Ok(Consent::No(words)) => PermissionAnswer::No(words),
            // The terminal has gone.
            Err(_) => PermissionAnswer::No(None),
        }
    })
}
