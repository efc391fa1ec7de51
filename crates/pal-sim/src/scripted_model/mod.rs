//! A scripted model: turns from a TOML file, chosen by order and condition, with templates.
//!
//! A turn is used up after its repeat count. An identical request gets the same answer again without using up
//! a turn, so a retry after a broken connection sees what the first attempt would have seen. The format is in
//! `docs/simulator.md`.

mod parser;
mod reply_template;
mod turn_condition;

use std::collections::VecDeque;

use pal_model::SharedText;
use serde_json::Value;

use crate::prompt_text::fingerprint;
use crate::{ModelOutput, ModelPrompt, OutputBlock, SimulatedModel, StopOverride};
pub use parser::ScriptError;
use reply_template::ReplyTemplate;
use turn_condition::TurnCondition;

/// A model that answers from a script.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    turns: Vec<ScriptTurn>,
    default: ScriptTurn,
    order: TurnOrder,
    again: RepeatPolicy,
    /// Number of uses of each turn.
    used: Vec<u64>,
    /// Recent answers by request fingerprint.
    given: VecDeque<(u64, ModelOutput)>,
}

/// Number of answers remembered for repeated requests.
const REMEMBERED: usize = 64;

/// Selection of the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnOrder {
    /// The first turn in the file that is not used up and whose condition holds.
    FirstMatch,
    /// The first turn that is not used up; if its condition fails, the default answers.
    Sequence,
}

/// Handling of a repeated request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepeatPolicy {
    Same,
    Next,
}

/// One turn of a script.
#[derive(Clone, Debug, Default)]
struct ScriptTurn {
    thinking: Option<ReplyTemplate>,
    text: Option<ReplyTemplate>,
    tools: Vec<ScriptCall>,
    stop: Option<StopOverride>,
    when: Option<TurnCondition>,
    /// Maximum number of uses; `None` is unlimited.
    repeat: Option<u64>,
}

/// A scripted tool call.
#[derive(Clone, Debug)]
struct ScriptCall {
    name: String,
    id: Option<ReplyTemplate>,
    /// Input; strings in it are templates.
    input: InputTemplate,
}

/// A JSON value whose strings are templates.
#[derive(Clone, Debug)]
enum InputTemplate {
    Plain(Value),
    Text(ReplyTemplate),
    List(Vec<InputTemplate>),
    Table(Vec<(String, InputTemplate)>),
}

impl ScriptedModel {
    /// Parses a script; see `docs/simulator.md` for the format.
    pub fn parse(toml: &str) -> Result<ScriptedModel, ScriptError> {
        parser::script(toml)
    }

    /// Index of the turn that answers this request; `None` for the default.
    fn choose_turn(&self, ask: &ModelPrompt<'_>) -> Option<usize> {
        let fresh = |index: &usize| match (self.turns.get(*index), self.used.get(*index)) {
            (Some(turn), Some(used)) => turn.repeat.is_none_or(|most| *used < most),
            _ => false,
        };
        let holds = |index: &usize| {
            self.turns.get(*index).is_some_and(|turn| turn.when.as_ref().is_none_or(|when| when.holds(ask)))
        };
        let mut open = (0..self.turns.len()).filter(fresh);
        match self.order {
            TurnOrder::FirstMatch => open.find(holds),
            TurnOrder::Sequence => open.next().filter(holds),
        }
    }
}

impl SimulatedModel for ScriptedModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let print = fingerprint(ask);
        if self.again == RepeatPolicy::Same
            && let Some((_, answer)) = self.given.iter().find(|(given, _)| *given == print)
        {
            return answer.clone();
        }
        let chosen = self.choose_turn(ask);
        let turn = chosen.and_then(|index| self.turns.get(index)).unwrap_or(&self.default);
        let time = chosen.and_then(|index| self.used.get(index)).map_or(1, |used| used + 1);
        let answer = turn.say(ask, time);
        if let Some(used) = chosen.and_then(|index| self.used.get_mut(index)) {
            *used += 1;
        }
        if self.given.len() == REMEMBERED {
            self.given.pop_front();
        }
        self.given.push_back((print, answer.clone()));
        answer
    }
}

impl ScriptTurn {
    /// Answer of this turn, used for the `time`-th time.
    fn say(&self, ask: &ModelPrompt<'_>, time: u64) -> ModelOutput {
        let mut blocks = Vec::new();
        if let Some(thinking) = &self.thinking {
            blocks.push(OutputBlock::Thinking(thinking.fill(ask, time)));
        }
        if let Some(text) = &self.text {
            blocks.push(OutputBlock::Text(text.fill(ask, time)));
        }
        for call in &self.tools {
            blocks.push(OutputBlock::ToolUse {
                id: call.id.as_ref().map(|id| id.fill(ask, time)),
                name: call.name.clone(),
                input: SharedText::from(call.input.fill(ask, time).to_string()),
            });
        }
        ModelOutput { blocks, stop: self.stop }
    }
}

impl InputTemplate {
    fn fill(&self, ask: &ModelPrompt<'_>, time: u64) -> Value {
        match self {
            InputTemplate::Plain(value) => value.clone(),
            InputTemplate::Text(template) => Value::String(template.fill(ask, time)),
            InputTemplate::List(items) => items.iter().map(|item| item.fill(ask, time)).collect(),
            InputTemplate::Table(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.fill(ask, time))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
