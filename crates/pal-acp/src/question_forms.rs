//! Forms for questions of the model, for clients that support elicitation.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationContentValue, ElicitationFormMode, ElicitationSchema,
    ElicitationScope, ElicitationSessionScope, EnumOption, MultiSelectPropertySchema, SessionId,
    StringPropertySchema, ToolCallId,
};
use pal_events::{QuestionAnswer, UserQuestion};
use pal_permissions::reveal;

/// Builds a form with one field for the options of each question, and one for an answer in other words.
pub(crate) fn question_form(
    session: &SessionId,
    call: &str,
    agent: Option<&str>,
    questions: &[UserQuestion],
) -> CreateElicitationRequest {
    let mut schema = ElicitationSchema::new();
    for (at, question) in questions.iter().enumerate() {
        let option = |option: &pal_events::QuestionOption| {
            let text = reveal(&option.description);
            EnumOption::new(option.label.as_str(), reveal(&option.label))
                .description((!text.is_empty()).then_some(text))
        };
        let options: Vec<EnumOption> = question.options.iter().map(option).collect();
        let (title, text) = (reveal(&question.header), reveal(&question.question));
        schema = match question.multi_select {
            true => {
                let field = MultiSelectPropertySchema::titled(options).title(title).description(text);
                schema.property(choice_field(at), field, false)
            }
            false => {
                let field = StringPropertySchema::new().title(title).description(text).one_of(options);
                schema.property(choice_field(at), field, false)
            }
        };
        let other = StringPropertySchema::new().title(String::from("Your own answer"));
        schema = schema.property(words_field(at), other, false);
    }
    let message = match (questions, agent) {
        (_, Some(agent)) => format!("{} asks:", reveal(agent)),
        ([question], None) => reveal(&question.question),
        _ => String::from("The agent has some questions."),
    };
    let call = ToolCallId::new(call.to_owned());
    let scope = ElicitationScope::Session(ElicitationSessionScope::new(session.clone()).tool_call_id(call));
    CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message)
}

/// Reads the answers from a completed form. Labels that are no options of the question count as the user's words.
pub(crate) fn form_answers(
    questions: &[UserQuestion],
    content: &BTreeMap<String, ElicitationContentValue>,
) -> Vec<QuestionAnswer> {
    let values = |name: &str| match content.get(name) {
        Some(ElicitationContentValue::String(text)) => vec![text.clone()],
        Some(ElicitationContentValue::StringArray(texts)) => texts.clone(),
        Some(ElicitationContentValue::Integer(number)) => vec![number.to_string()],
        Some(ElicitationContentValue::Number(number)) => vec![number.to_string()],
        Some(ElicitationContentValue::Boolean(is_true)) => vec![is_true.to_string()],
        _ => Vec::new(),
    };
    let answer = |(at, question): (usize, &UserQuestion)| {
        let texts = [values(&choice_field(at)), values(&words_field(at))].concat();
        let answers = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        QuestionAnswer { question: question.question.clone(), answers }
    };
    questions.iter().enumerate().map(answer).collect()
}

/// Field of the options. Fields sort by their names, so the number comes first.
fn choice_field(at: usize) -> String {
    format!("question_{}", at + 1)
}

fn words_field(at: usize) -> String {
    format!("question_{}_other", at + 1)
}
