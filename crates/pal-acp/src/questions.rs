//! Asking the user of a client before a call.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    Notice, NoticeSeverity, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use pal_agent::{Answer, Asked, Asking};

use crate::calls::Called;
use crate::teller::{Abilities, update};

const ONCE: &str = "allow-once";
const ALWAYS: &str = "allow-always";
const NO: &str = "reject";

/// The questions of one session.
pub(crate) struct Questions {
    connection: ConnectionTo<Client>,
    directory: PathBuf,
    can: Abilities,
    session: OnceLock<SessionId>,
    /// One question at a time: agents that were sent ask the same person.
    turn: Mutex<()>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Whether the prompt was cancelled: nothing more is asked for it.
    is_given_up: bool,
    /// Who waits for an answer.
    answer: Option<Sender<Option<String>>>,
}

impl Questions {
    pub(crate) fn new(connection: ConnectionTo<Client>, directory: PathBuf, can: Abilities) -> Questions {
        let (session, turn, waiting) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Questions { connection, directory, can, session, turn, waiting }
    }

    /// The session has this id.
    pub(crate) fn belong_to(&self, session: SessionId) {
        // An agent that is opened anew is of the same session.
        let _ = self.session.set(session);
    }

    /// Answers whatever is asked with a no: the user wants everything to stop, or the client is gone.
    pub(crate) fn give_up(&self) {
        let mut waiting = self.waiting();
        waiting.is_given_up = true;
        if let Some(answer) = waiting.answer.take() {
            let _ = answer.send(None);
        }
    }

    /// Another prompt begins.
    pub(crate) fn renew(&self) {
        self.waiting().is_given_up = false;
    }

    /// What an agent asks with; what is allowed for good is kept in this file.
    pub(crate) fn asking(self: &Arc<Self>, allowed: Option<PathBuf>) -> Asking {
        let questions = Arc::clone(self);
        Arc::new(move |asked: &Asked| {
            let answer = match questions.ask(asked).as_deref() {
                Some(ONCE) => Answer::Once,
                Some(ALWAYS) => {
                    let told = pal_settings::allow_and_tell(allowed.as_deref(), &asked.rule);
                    questions.tell(&told);
                    Answer::Session
                }
                _ => Answer::No(None),
            };
            questions.close(asked, &answer);
            answer
        })
    }

    /// The option that the user chose; none if nobody answers any more.
    fn ask(&self, asked: &Asked) -> Option<String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, answer) = channel();
        {
            let mut waiting = self.waiting();
            if waiting.is_given_up {
                return None;
            }
            waiting.answer = Some(sender.clone());
        }
        let request =
            RequestPermissionRequest::new(self.session.get()?.clone(), self.shown(asked), options(asked));
        let sent = self.connection.prepare_request(request).on_receiving_result(move |answered| {
            let chosen = answered.ok().and_then(|answered| match answered.outcome {
                RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.to_string()),
                _ => None,
            });
            // Who asked may have given up.
            let _ = sender.send(chosen);
            std::future::ready(Ok(()))
        });
        if sent.is_err() {
            return None;
        }
        let chosen = answer.recv().ok().flatten();
        self.waiting().answer = None;
        chosen
    }

    fn shown(&self, asked: &Asked) -> ToolCallUpdate {
        let called = Called {
            id: asked.call.as_str(),
            name: &asked.tool,
            input: &asked.input,
            directory: &self.directory,
        };
        let mut shown = called.shown(true);
        shown.content.push(asked.why.clone().into());
        if let Some(agent) = &asked.agent {
            shown.title = format!("{agent}: {}", shown.title);
        }
        ToolCallUpdate::from(shown)
    }

    /// Calls of agents that were sent are shown only by the question: nobody else tells how they ended.
    fn close(&self, asked: &Asked, answer: &Answer) {
        let Some(session) = self.session.get().filter(|_| asked.agent.is_some()) else { return };
        let status = match answer {
            Answer::No(_) => ToolCallStatus::Failed,
            _ => ToolCallStatus::Completed,
        };
        let update = update(&asked.call, ToolCallUpdateFields::new().status(status));
        // A client that is gone wants to know nothing.
        let _ = self.connection.send_notification(SessionNotification::new(session.clone(), update));
    }

    /// Tells where a rule is kept, or why it is not.
    fn tell(&self, text: &str) {
        tracing::info!(notice = text, "allowed");
        let Some(session) = self.session.get().filter(|_| self.can.notices) else { return };
        let notice = SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, text));
        let _ = self.connection.send_notification(SessionNotification::new(session.clone(), notice));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What can be answered. Where no rule would cover the call, it cannot be allowed for good.
fn options(asked: &Asked) -> Vec<PermissionOption> {
    let always = (!asked.rule.is_empty()).then(|| {
        let name = format!("Always allow {} in this project", asked.rule);
        PermissionOption::new(ALWAYS, name, PermissionOptionKind::AllowAlways)
    });
    let once = PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce);
    let no = PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce);
    [Some(once), always, Some(no)].into_iter().flatten().collect()
}
