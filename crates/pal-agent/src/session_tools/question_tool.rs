//! `AskUserQuestion` tool: the user has answered before the call runs, because asking is what its permission check does.

use pal_events::{ASK_USER_QUESTION, CallApproval, PermissionAnswer, QuestionAnswer, UserQuestion};
use pal_model::SharedText;
use pal_permissions::ToolAccess;
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Puts questions to the user.
pub(crate) struct AskUserQuestionTool;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionToolInput {
    questions: Vec<UserQuestion>,
    /// Answers, which the user or a hook adds; the model's schema has none.
    #[serde(default)]
    answers: Option<Vec<QuestionAnswer>>,
}

impl ToolHandler for AskUserQuestionTool {
    fn name(&self) -> &'static str {
        ASK_USER_QUESTION
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: QuestionToolInput = input.read()?;
        UserQuestion::check(&fields.questions).map(|()| Vec::new())
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        match input.read().map(|fields: QuestionToolInput| fields.answers) {
            Ok(Some(answers)) => ToolOutput::text(&render_answers(&answers)),
            Ok(None) => ToolOutput::error("The user was not asked."),
            Err(wrong) => ToolOutput::error(&wrong),
        }
    }
}

/// Returns whether an input has answers already.
pub(crate) fn has_answers(input: &SharedText) -> bool {
    let fields: Result<QuestionToolInput, _> = serde_json::from_str(input);
    fields.is_ok_and(|fields| fields.answers.is_some())
}

/// Returns the input with the answers of the user, or the refusal for the model.
pub(crate) fn answered_input(input: &SharedText, answer: PermissionAnswer) -> Result<SharedText, String> {
    Err(match answer {
        PermissionAnswer::Answered(answers) => return Ok(with_answers(input, answers)),
        PermissionAnswer::Approved(CallApproval { input: Some(answered), .. }) => {
            match host_answers(&answered) {
                Some(answers) => return Ok(with_answers(input, answers)),
                None => String::from(NO_FORM),
            }
        }
        PermissionAnswer::No(None) => String::from("Not answered: the user closed the questions."),
        PermissionAnswer::No(Some(words)) => format!("Not answered. The user says instead: {words}"),
        PermissionAnswer::Refused(words) => format!("Not asked: {words}"),
        // A client that knows only yes and no has not shown the questions.
        PermissionAnswer::Once | PermissionAnswer::Session | PermissionAnswer::Approved(_) => {
            String::from(NO_FORM)
        }
        PermissionAnswer::Unavailable => String::from(NO_USER),
    })
}

/// Answers in an input that a program filled in: a list as in our own input, or an object of question and answer.
fn host_answers(input: &str) -> Option<Vec<QuestionAnswer>> {
    let fields: Value = serde_json::from_str(input).ok()?;
    let answers = fields.get("answers")?;
    let Value::Object(given) = answers else { return serde_json::from_value(answers.clone()).ok() };
    let texts = |answer: &Value| match answer {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let answer = |(question, answer): (&String, &Value)| QuestionAnswer {
        question: question.clone(),
        answers: texts(answer),
    };
    Some(given.iter().map(answer).collect())
}

/// Returns the input with these answers.
fn with_answers(input: &SharedText, answers: Vec<QuestionAnswer>) -> SharedText {
    let fields: Result<QuestionToolInput, _> = serde_json::from_str(input);
    let fields = fields.map(|fields| QuestionToolInput { answers: Some(answers), ..fields });
    fields.and_then(|fields| serde_json::to_string(&fields)).map_or_else(|_| input.clone(), SharedText::from)
}

/// Text of a refusal without a user. Text for the model.
const NO_USER: &str = "Not asked: no user is available to answer. Decide yourself by what the project and the task say, \
                                  and state in your last message what you assumed.";

/// Text of a refusal by a client that cannot show questions. Text for the model.
const NO_FORM: &str = "Not asked: the user's client cannot show questions with options. Ask in your answer, as plain \
                                  text, and end your turn.";

fn render_answers(answers: &[QuestionAnswer]) -> String {
    let line = |answer: &QuestionAnswer| match answer.answers.is_empty() {
        true => format!("{}\n→ (no answer)", answer.question),
        false => format!("{}\n→ {}", answer.question, answer.answers.join("; ")),
    };
    let lines: Vec<String> = answers.iter().map(line).collect();
    format!("The user answered:\n\n{}", lines.join("\n\n"))
}
