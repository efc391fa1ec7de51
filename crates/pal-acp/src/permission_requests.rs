//! Permission requests to the user of a client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ElicitationAction, ElicitationContentValue, Notice, NoticeSeverity, PermissionOption,
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, SessionId, SessionNotification,
    SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use pal_events::{PermissionAnswer, PermissionAsker, PermissionQuestion, UserQuestion};
use pal_permissions::{reveal, reveal_character};
use serde_json::Value;

use crate::prompt_content::fenced;
use crate::question_forms::{form_answers, question_form};
use crate::session_updates::{ClientCapabilities, update};
use crate::tool_calls::ToolCallView;

const ONCE: &str = "allow-once";
const ALWAYS: &str = "allow-always";
const NO: &str = "reject";

/// Refusal of questions that the client cannot show. Text for the model.
const NO_FORMS: &str = "the user's editor cannot show questions with options. Ask in your answer, as plain text, and end your turn.";

/// Answer of the client's user.
enum ClientAnswer {
    /// Id of the chosen option.
    Chosen(String),
    /// Content of a completed form.
    Form(BTreeMap<String, ElicitationContentValue>),
}

/// Permission requests of one session.
pub(crate) struct PermissionRequests {
    connection: ConnectionTo<Client>,
    directory: PathBuf,
    capabilities: ClientCapabilities,
    session: OnceLock<SessionId>,
    /// Serializes requests: subagents ask the same person.
    turn: Mutex<()>,
    waiting: Mutex<PendingAnswer>,
}

#[derive(Default)]
struct PendingAnswer {
    /// The prompt was cancelled: further requests are refused.
    is_cancelled: bool,
    /// Sender that wakes the waiting request.
    answer: Option<Sender<Option<ClientAnswer>>>,
}

impl PermissionRequests {
    pub(crate) fn new(
        connection: ConnectionTo<Client>,
        directory: PathBuf,
        capabilities: ClientCapabilities,
    ) -> PermissionRequests {
        let (session, turn, waiting) = (OnceLock::new(), Mutex::default(), Mutex::default());
        PermissionRequests { connection, directory, capabilities, session, turn, waiting }
    }

    /// Sets the session id, once.
    pub(crate) fn set_session(&self, session: SessionId) {
        // A restarted agent has the same session.
        let _ = self.session.set(session);
    }

    /// Refuses the pending and all further requests: the user stops everything, or the client is gone.
    pub(crate) fn cancel_pending(&self) {
        let mut waiting = self.waiting();
        waiting.is_cancelled = true;
        if let Some(answer) = waiting.answer.take() {
            let _ = answer.send(None);
        }
    }

    /// Accepts requests again, for the next prompt.
    pub(crate) fn allow_requests(&self) {
        self.waiting().is_cancelled = false;
    }

    /// Creates the asker of an agent; rules that the user allows permanently go to `allowed`.
    pub(crate) fn asker(self: &Arc<Self>, allowed: Option<PathBuf>) -> PermissionAsker {
        let questions = Arc::clone(self);
        Arc::new(move |asked: &PermissionQuestion| {
            let answer = match asked.user_questions() {
                Some(list) => questions.ask_questions(asked, &list),
                None => match questions.ask(asked).as_deref() {
                    Some(ONCE) => PermissionAnswer::Once,
                    Some(ALWAYS) => {
                        let notice = pal_settings::allow_and_tell(allowed.as_deref(), &asked.rule);
                        questions.send_notice(&notice);
                        PermissionAnswer::Session
                    }
                    _ => PermissionAnswer::No(None),
                },
            };
            questions.close(asked, &answer);
            answer
        })
    }

    /// Returns the id of the chosen option; `None` if the request was cancelled.
    fn ask(&self, asked: &PermissionQuestion) -> Option<String> {
        let answer = self.await_answer(|sender| {
            let session = self.session.get()?.clone();
            let request = RequestPermissionRequest::new(session, self.shown(asked), options(asked));
            let sent = self.connection.prepare_request(request).on_receiving_result(move |answered| {
                let chosen = answered.ok().and_then(|answered| match answered.outcome {
                    RequestPermissionOutcome::Selected(selected) => {
                        Some(ClientAnswer::Chosen(selected.option_id.to_string()))
                    }
                    _ => None,
                });
                // The request may have been cancelled.
                let _ = sender.send(chosen);
                std::future::ready(Ok(()))
            });
            sent.ok()
        });
        match answer? {
            ClientAnswer::Chosen(id) => Some(id),
            ClientAnswer::Form(_) => None,
        }
    }

    /// Puts questions to the user, as a form.
    fn ask_questions(&self, asked: &PermissionQuestion, questions: &[UserQuestion]) -> PermissionAnswer {
        if !self.capabilities.forms {
            return PermissionAnswer::Refused(String::from(NO_FORMS));
        }
        let answer = self.await_answer(|sender| {
            let request =
                question_form(self.session.get()?, asked.call.as_str(), asked.agent.as_deref(), questions);
            let sent = self.connection.prepare_request(request).on_receiving_result(move |answered| {
                let form = answered.ok().and_then(|answered| match answered.action {
                    ElicitationAction::Accept(accepted) => {
                        Some(ClientAnswer::Form(accepted.content.unwrap_or_default()))
                    }
                    _ => None,
                });
                let _ = sender.send(form);
                std::future::ready(Ok(()))
            });
            sent.ok()
        });
        match answer {
            Some(ClientAnswer::Form(content)) => {
                PermissionAnswer::Answered(form_answers(questions, &content))
            }
            _ => PermissionAnswer::No(None),
        }
    }

    /// Sends a request and waits for its answer; `None` if it was cancelled or could not be sent.
    fn await_answer(
        &self,
        send: impl FnOnce(Sender<Option<ClientAnswer>>) -> Option<()>,
    ) -> Option<ClientAnswer> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, answer) = channel();
        {
            let mut waiting = self.waiting();
            if waiting.is_cancelled {
                return None;
            }
            waiting.answer = Some(sender.clone());
        }
        send(sender)?;
        let chosen = answer.recv().ok().flatten();
        self.waiting().answer = None;
        chosen
    }

    /// Builds the call to show with the request: in full, with its marks, the reason and the rule.
    fn shown(&self, asked: &PermissionQuestion) -> ToolCallUpdate {
        let called = ToolCallView {
            id: asked.call.as_str(),
            name: &asked.tool,
            input: &asked.input,
            directory: &self.directory,
        };
        let mut shown = called.shown(true);
        if let Some(command) = asked.command() {
            // Many clients show only the title, so it has the whole command.
            shown.title = format!("`{}`", reveal(&command));
        }
        shown.content.extend(consent_texts(asked).into_iter().map(ToolCallContent::from));
        if let Some(agent) = &asked.agent {
            shown.title = format!("{agent}: {}", shown.title);
        }
        ToolCallUpdate::from(shown)
    }

    /// Ends a subagent's call, which only its permission request shows.
    fn close(&self, asked: &PermissionQuestion, answer: &PermissionAnswer) {
        let Some(session) = self.session.get().filter(|_| asked.agent.is_some()) else { return };
        let status = match answer {
            PermissionAnswer::No(_) | PermissionAnswer::Refused(_) => ToolCallStatus::Failed,
            _ => ToolCallStatus::Completed,
        };
        let update = update(&asked.call, ToolCallUpdateFields::new().status(status));
        // A client that is gone wants to know nothing.
        let _ = self.connection.send_notification(SessionNotification::new(session.clone(), update));
    }

    /// Notifies the user where a rule is stored, or why it is not.
    fn send_notice(&self, text: &str) {
        tracing::info!(notice = text, "allowed");
        let Some(session) = self.session.get().filter(|_| self.capabilities.notices) else { return };
        let notice = SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, text));
        let _ = self.connection.send_notification(SessionNotification::new(session.clone(), notice));
    }

    fn waiting(&self) -> MutexGuard<'_, PendingAnswer> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Texts of a request, each in full: the input (unless a diff shows it), marks, reason and rule. Invisible characters are
/// spelled out.
fn consent_texts(asked: &PermissionQuestion) -> Vec<String> {
    let mut texts = Vec::new();
    match asked.command() {
        Some(command) => texts.push(fenced(&reveal(&command))),
        // Their diffs are in the request.
        None if matches!(asked.tool.as_str(), "Edit" | "Write") => {}
        None => {
            let input: Result<Value, _> = serde_json::from_str(&asked.input);
            let pretty = input.and_then(|input| serde_json::to_string_pretty(&input));
            texts.push(fenced(&reveal(&pretty.unwrap_or_else(|_| asked.input.clone()))));
        }
    }
    let mut sentences: Vec<String> = asked
        .mark_sentences()
        .into_iter()
        .map(|sentence| match sentence.is_dangerous {
            true => format!("- **{}**", sentence.text),
            false => format!("- {}", sentence.text),
        })
        .collect();
    let hidden = hidden_characters(&asked.input);
    if asked.command().is_none() && !hidden.is_empty() {
        sentences.push(format!("- **it holds characters that cannot be seen: {}**", hidden.join(" ")));
    }
    if !sentences.is_empty() {
        texts.push(format!("Look at this before you allow it:\n{}", sentences.join("\n")));
    }
    texts.push(format!("Why you are asked: {}", reveal(&asked.why)));
    if !asked.rule.is_empty() {
        texts.push(format!(
            "\"Always allow\" stores this rule for the project:\n{}",
            fenced(&reveal(&asked.rule))
        ));
    }
    texts
}

/// Names of the distinct invisible characters in the strings of a JSON text.
fn hidden_characters(json: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        let mut add = |text: &str| {
            for name in text.chars().filter_map(reveal_character) {
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        };
        match value {
            Value::String(text) => add(text),
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    collect(&Value::from(name.as_str()), found);
                    collect(value, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str(json) {
        collect(&value, &mut found);
    }
    found
}

/// Options of the answer. "Always" is missing if no rule covers the call.
fn options(asked: &PermissionQuestion) -> Vec<PermissionOption> {
    let always = (!asked.rule.is_empty()).then(|| {
        let name = format!("Always allow {} in this project", reveal(&asked.rule));
        PermissionOption::new(ALWAYS, name, PermissionOptionKind::AllowAlways)
    });
    let once = PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce);
    let no = PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce);
    [Some(once), always, Some(no)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, input: &Value, rule: &str) -> PermissionQuestion {
        PermissionQuestion {
            agent: None,
            call: "call".into(),
            tool: tool.to_owned(),
            input: input.to_string(),
            why: String::from("no rule allows it"),
            rule: rule.to_owned(),
            marks: Vec::new(),
            directory: String::new(),
        }
    }

    #[test]
    fn a_request_shows_the_whole_call_its_marks_and_the_rule() {
        let command = format!("bash <<END\n{}rm -rf ~/x\u{202e}\nEND", "echo fine\n".repeat(300));
        let mut bash = asked("Bash", &serde_json::json!({ "command": command }), "Bash(bash:*)");
        bash.marks.push(pal_events::ConsentMark {
            start: command.find("rm").unwrap_or_default(),
            end: command.len() - 4,
            kind: String::from("deletion"),
            is_dangerous: true,
            sentence: String::from("`rm -rf ~/x` deletes files"),
        });
        let texts = consent_texts(&bash);
        assert_eq!(texts[0].matches("echo fine\n").count(), 300);
        assert!(texts[0].contains("rm -rf ~/x⟨U+202E⟩\nEND"), "{}", texts[0]);
        assert!(texts[1].contains("- **line 302: `rm -rf ~/x` deletes files**"), "{}", texts[1]);
        assert!(texts[3].contains("Bash(bash:*)"), "{texts:?}");
        let long = "y".repeat(5_000);
        let input = serde_json::json!({"query": long, "deep": {"list": ["a\u{200b}b"]}});
        let texts = consent_texts(&asked("mcp__db__query", &input, ""));
        assert!(texts[0].contains(&long) && texts[0].contains("a⟨U+200B⟩b"), "{}", texts[0]);
        assert!(texts[1].contains("cannot be seen: ⟨U+200B⟩"), "{}", texts[1]);
        let edit = serde_json::json!({"file_path": "x", "old_string": "a", "new_string": "b\u{202e}"});
        let texts = consent_texts(&asked("Edit", &edit, ""));
        assert!(texts[0].contains("cannot be seen: ⟨U+202E⟩"), "{texts:?}");
    }
}
