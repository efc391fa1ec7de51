//! Texts for models (provisional).
use super::order::Reach;
pub(crate) const PLAIN_SYSTEM: &str = "You summarise conversations between a user and a coding agent.";
pub(crate) struct Directive<'a> {
    pub(crate) reach: Reach,
    pub(crate) has_earlier_summary: bool,
    pub(crate) instructions: Option<&'a str>,
    pub(crate) hook_instructions: Option<&'a str>,
    pub(crate) pins: usize,
}
pub(crate) fn directive(directive: &Directive<'_>) -> String {
    let _ = (
        directive.reach,
        directive.has_earlier_summary,
        directive.instructions,
        directive.hook_instructions,
        directive.pins,
    );
    String::from(
        "Your task is to write a detailed summary of the conversation so far, in text only. Do not call tools. Write <analysis> then <summary>.",
    )
}
pub(crate) struct SummaryMessage<'a> {
    pub(crate) summary: Option<&'a str>,
    pub(crate) repairs: &'a str,
    pub(crate) pins: &'a [String],
    pub(crate) transcript: &'a str,
    pub(crate) goes_on: bool,
    pub(crate) is_attended: bool,
}
pub(crate) fn summary_message(message: &SummaryMessage<'_>) -> String {
    let _ = (message.goes_on, message.is_attended);
    format!(
        "This session continues an earlier one ({}).\n{}\n{}\n{}",
        message.transcript,
        message.summary.unwrap_or_default(),
        message.repairs,
        message.pins.join("\n")
    )
}
