//! Tests of the run state machine.

// A test that panics has failed.
#![allow(clippy::unwrap_used)]

mod loops;
mod properties;
mod scenarios;

use pal_model::{Content, ContentBlock, SharedText, ToolUseId, UsageTotals};
use pal_run::{ModelAnswer, Run, RunOutput, RunRecord, ToolCall, ToolCallResult};

/// A tool call.
pub(crate) fn call(id: &str, only_looks: bool) -> ToolCall {
    ToolCall {
        id: ToolUseId::from(id),
        name: "Tool".into(),
        input: SharedText::from("{}"),
        is_read_only: only_looks,
        problem: None,
    }
}

/// An answer with this text and these calls.
pub(crate) fn answer(words: &str, calls: Vec<ToolCall>, stop: &str) -> ModelAnswer {
    let blocks =
        if words.is_empty() && calls.is_empty() { Vec::new() } else { vec![ContentBlock::text(words)] };
    ModelAnswer { blocks, calls, stop_reason: Some(stop.into()), spent: UsageTotals::default() }
}

/// Result of a call.
pub(crate) fn returned(id: &ToolUseId) -> ToolCallResult {
    ToolCallResult {
        call: id.clone(),
        content: vec![ContentBlock::text("ok")],
        is_error: false,
        effects: Default::default(),
        took: Default::default(),
        notes: Vec::new(),
        stop: None,
    }
}

/// All pending outputs, in short form.
pub(crate) fn wants(run: &mut Run) -> Vec<String> {
    std::iter::from_fn(|| run.poll()).map(|output| short(&output)).collect()
}

fn words(content: &Content) -> String {
    content.blocks().iter().filter_map(|block| block.string("text")).collect()
}

fn short(output: &RunOutput) -> String {
    match output {
        RunOutput::CheckPrompt(_) => "check".into(),
        RunOutput::RequestModel { max_tokens } => format!("ask {max_tokens}"),
        RunOutput::BackOff { wait, .. } => format!("back off {}", wait.as_secs()),
        RunOutput::DiscardAnswer => "discard".into(),
        RunOutput::AuthorizeCall(call) => format!("authorize {}", call.id.as_str()),
        RunOutput::ExecuteCall(call) => format!("execute {}", call.id.as_str()),
        RunOutput::Cancel => "cancel".into(),
        RunOutput::CheckStop { is_repeated, .. } => format!("stop? {is_repeated}"),
        RunOutput::Ended(end) => format!("end {end:?}"),
        RunOutput::Record(record) => match record {
            RunRecord::Message(said) => format!("{} {}", said.origin.name(), words(&said.content)),
            RunRecord::Answer(_) => "answer".into(),
            RunRecord::DisplayedAnswer(_) => "displayed".into(),
            RunRecord::Result(returned) => format!("result {}", returned.call.as_str()),
            RunRecord::NotRun { call, .. } => format!("not run {}", call.as_str()),
            RunRecord::Note { what, .. } => format!("note {what}"),
        },
    }
}
