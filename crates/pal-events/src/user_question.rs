//! Questions of the model with options to choose from, which the tool `AskUserQuestion` puts to the user.

use serde::{Deserialize, Serialize};

/// Name of the tool that asks the user.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// Maximum number of questions in one call.
const QUESTIONS_MAX: usize = 4;

/// Number of options that a question may have; the user can always give another answer.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;

/// A question with options.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserQuestion {
    /// The question.
    pub question: String,
    /// Label of a few characters.
    pub header: String,
    /// Options to choose from.
    pub options: Vec<QuestionOption>,
    /// True if several options may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// An option of a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionOption {
    /// The answer in a few words.
    pub label: String,
    /// Meaning and consequences of the answer.
    #[serde(default)]
    pub description: String,
}

/// Answer of the user to one question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The question.
    pub question: String,
    /// Labels of the chosen options, or the user's own words.
    pub answers: Vec<String>,
}

impl UserQuestion {
    /// Checks the questions of a call; the error is a sentence for the model.
    pub fn check(questions: &[UserQuestion]) -> Result<(), String> {
        if questions.is_empty() || questions.len() > QUESTIONS_MAX {
            return Err(format!("Ask 1 to {QUESTIONS_MAX} questions at once, not {}.", questions.len()));
        }
        for (at, asked) in questions.iter().enumerate() {
            let number = at + 1;
            if asked.question.trim().is_empty() {
                return Err(format!("Question {number} is empty."));
            }
            if questions[..at].iter().any(|other| other.question == asked.question) {
                return Err(format!("Question {number} is asked twice."));
            }
            if !OPTIONS.contains(&asked.options.len()) {
                return Err(format!(
                    "Question {number} has {} options: give {} to {}. The user can always answer in other words.",
                    asked.options.len(),
                    OPTIONS.start(),
                    OPTIONS.end()
                ));
            }
            let is_repeated = |(at, option): (usize, &QuestionOption)| {
                asked.options[..at].iter().any(|other| other.label == option.label)
            };
            if asked.options.iter().any(|option| option.label.trim().is_empty())
                || asked.options.iter().enumerate().any(is_repeated)
            {
                return Err(format!(
                    "Question {number} has two options of the same label, or one without a label."
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_checked_before_anyone_sees_them() {
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: String::new() };
        let question = |text: &str, labels: &[&str]| UserQuestion {
            question: text.to_owned(),
            header: String::from("x"),
            options: labels.iter().map(|label| option(label)).collect(),
            multi_select: false,
        };
        let good = question("Which?", &["a", "b"]);
        assert_eq!(UserQuestion::check(std::slice::from_ref(&good)), Ok(()));
        for (questions, why) in [
            (vec![], "1 to 4 questions"),
            (vec![good.clone(); 5], "1 to 4 questions"),
            (vec![good.clone(), good.clone()], "Question 2 is asked twice"),
            (vec![question(" ", &["a", "b"])], "Question 1 is empty"),
            (vec![good, question("Why?", &["a"])], "Question 2 has 1 options"),
            (vec![question("Why?", &["a", "b", "c", "d", "e"])], "has 5 options"),
            (vec![question("Why?", &["a", "a"])], "two options of the same label"),
            (vec![question("Why?", &["a", ""])], "one without a label"),
        ] {
            let error = UserQuestion::check(&questions).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
