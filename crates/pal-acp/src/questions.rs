//! Asking the user of a client before a call.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    Notice, NoticeSeverity, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use pal_agent::{Answer, Asked, Asking};
use pal_permissions::{reveal, reveal_character};
use serde_json::Value;

use crate::calls::Called;
use crate::content::fenced;
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

    /// The call as the client shows it with the question: all of it, its marks in words, the reason and the rule.
    fn shown(&self, asked: &Asked) -> ToolCallUpdate {
        let called = Called {
            id: asked.call.as_str(),
            name: &asked.tool,
            input: &asked.input,
            directory: &self.directory,
        };
        let mut shown = called.shown(true);
        if let Some(command) = asked.command() {
            // A title stands for the call in many clients: what is to be allowed is not cut there either.
            shown.title = format!("`{}`", reveal(&command));
        }
        shown.content.extend(consent_texts(asked).into_iter().map(ToolCallContent::from));
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

/// Texts of a question, each in full: what is called with, where no change says it; marks; reason; rule. Characters that cannot
/// be seen are spelt out.
fn consent_texts(asked: &Asked) -> Vec<String> {
    let mut texts = Vec::new();
    match asked.command() {
        Some(command) => texts.push(fenced(&reveal(&command))),
        // Their changes stand in the question as such.
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

/// Characters in the strings of a JSON text that cannot be seen, each once.
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

/// What can be answered. Where no rule would cover the call, it cannot be allowed for good.
fn options(asked: &Asked) -> Vec<PermissionOption> {
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

    fn asked(tool: &str, input: &Value, rule: &str) -> Asked {
        Asked {
            agent: None,
            call: "call".into(),
            tool: tool.to_owned(),
            input: input.to_string(),
            why: String::from("no rule allows it"),
            rule: rule.to_owned(),
            marks: Vec::new(),
        }
    }

    #[test]
    fn a_question_carries_the_whole_call_its_marks_and_the_rule() {
        let command = format!("bash <<END\n{}rm -rf ~/x\u{202e}\nEND", "echo fine\n".repeat(300));
        let mut bash = asked("Bash", &serde_json::json!({ "command": command }), "Bash(bash:*)");
        bash.marks.push(pal_agent::ConsentMark {
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
