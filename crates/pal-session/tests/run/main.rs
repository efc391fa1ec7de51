//! The machine, told everything that can happen, in any order.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod laws;
mod progress;
mod stories;

use pal_model::{Block, Content, Text, ToolUseId, Totals};
use pal_session::{Answer, Call, Output, Record, Returned, Run};

/// A call of a tool.
pub(crate) fn call(id: &str, only_looks: bool) -> Call {
    Call { id: ToolUseId::from(id), name: "Tool".into(), input: Text::from("{}"), only_looks, problem: None }
}

/// An answer with these words and calls.
pub(crate) fn answer(words: &str, calls: Vec<Call>, stop: &str) -> Answer {
    let blocks = if words.is_empty() && calls.is_empty() { Vec::new() } else { vec![Block::text(words)] };
    Answer { blocks, calls, stop_reason: Some(stop.into()), spent: Totals::default() }
}

/// What a call returned.
pub(crate) fn returned(id: &ToolUseId) -> Returned {
    Returned {
        call: id.clone(),
        content: vec![Block::text("ok")],
        is_error: false,
        aftermath: Default::default(),
        took: Default::default(),
        notes: Vec::new(),
        stop: None,
    }
}

/// Everything that it wants now, in short words.
pub(crate) fn wants(run: &mut Run) -> Vec<String> {
    std::iter::from_fn(|| run.poll()).map(|output| short(&output)).collect()
}

fn words(content: &Content) -> String {
    content.blocks().iter().filter_map(|block| block.string("text")).collect()
}

fn short(output: &Output) -> String {
    match output {
        Output::CheckPrompt(_) => "check".into(),
        Output::Ask { max_tokens } => format!("ask {max_tokens}"),
        Output::BackOff { wait, .. } => format!("back off {}", wait.as_secs()),
        Output::Void => "void".into(),
        Output::Judge(call) => format!("judge {}", call.id.as_str()),
        Output::Carry(call) => format!("carry {}", call.id.as_str()),
        Output::Cancel => "cancel".into(),
        Output::CheckStop { is_repeated, .. } => format!("stop? {is_repeated}"),
        Output::Ended(end) => format!("end {end:?}"),
        Output::Record(record) => match record {
            Record::Said(said) => format!("{} {}", said.origin.name(), words(&said.content)),
            Record::Answer(_) => "answer".into(),
            Record::Shown(_) => "shown".into(),
            Record::Result(returned) => format!("result {}", returned.call.as_str()),
            Record::NotRun { call, .. } => format!("not run {}", call.as_str()),
            Record::Note { what, .. } => format!("note {what}"),
        },
    }
}
