//! Questions of the model in the plain terminal: printed as a numbered list and answered by a typed line.

use pal_events::UserQuestion;
use ratatui_core::text::{Line, Span};

use crate::styled_text::{sanitize_line, wrap};

/// Lines of one question; `number` counts from 1.
pub(crate) fn question_lines(
    question: &UserQuestion,
    (number, count): (usize, usize),
    width: usize,
) -> Vec<Line<'static>> {
    let title = match count {
        1 => sanitize_line(&question.question),
        _ => format!("{number} of {count}: {}", sanitize_line(&question.question)),
    };
    let indent = [Span::raw("  ")];
    let mut lines = wrap(&[Span::raw(title)], &[], &indent, width);
    for (at, option) in question.options.iter().enumerate() {
        let text = match option.description.as_str() {
            "" => format!("{}. {}", at + 1, option.label),
            description => format!("{}. {}: {description}", at + 1, option.label),
        };
        lines.extend(wrap(&[Span::raw(sanitize_line(&text))], &indent, &indent, width));
    }
    lines.push(Line::from(instructions(question)));
    lines
}

/// Instructions for answering a question.
pub(crate) fn instructions(question: &UserQuestion) -> &'static str {
    match question.multi_select {
        true => "Type one or more numbers, or your answer in other words; /stop ends the work.",
        false => "Type a number, or your answer in other words; /stop ends the work.",
    }
}

/// Answers of a typed line; none if it is empty or names no option.
pub(crate) fn parse_choice(line: &str, question: &UserQuestion) -> Option<Vec<String>> {
    let is_separator = |character: char| character == ',' || character.is_whitespace();
    let words: Vec<&str> = line.split(is_separator).filter(|word| !word.is_empty()).collect();
    let numbers: Result<Vec<usize>, _> = words.iter().map(|word| word.parse()).collect();
    let label = |number: &usize| Some(question.options.get(number.checked_sub(1)?)?.label.clone());
    match numbers {
        Ok(numbers) if numbers.len() == 1 || (question.multi_select && !numbers.is_empty()) => {
            numbers.iter().map(label).collect()
        }
        _ => Some(line.trim()).filter(|words| !words.is_empty()).map(|words| vec![words.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use pal_events::QuestionOption;

    use super::*;

    #[test]
    fn a_typed_line_is_a_choice_or_other_words() {
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: String::from("x") };
        let question = |multi_select: bool| UserQuestion {
            question: String::from("Which?"),
            header: String::from("Choice"),
            options: vec![option("red"), option("blue")],
            multi_select,
        };
        for (is_multi, line, answer) in [
            (false, "1", Some("red")),
            (false, " 2 ", Some("blue")),
            (false, "3", None),
            (false, "0", None),
            (false, "", None),
            (false, "1 2", Some("1 2")),
            (false, "2 of them", Some("2 of them")),
            (true, "2, 1", Some("blue;red")),
            (true, "1 5", None),
            (true, "none", Some("none")),
        ] {
            let parsed = parse_choice(line, &question(is_multi)).map(|answers| answers.join(";"));
            assert_eq!(parsed.as_deref(), answer, "{line:?}");
        }
        let shown: Vec<String> =
            question_lines(&question(false), (2, 3), 60).iter().map(ToString::to_string).collect();
        assert_eq!(shown[..3], ["2 of 3: Which?", "  1. red: x", "  2. blue: x"]);
    }
}
