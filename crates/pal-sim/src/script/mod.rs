//! A scripted model: turns from a TOML file, chosen by order and condition, with templates in their words.
//!
//! A turn is used up once it was said as often as it may be. The same request again gets the same answer and uses
//! nothing up, so that a client's second attempt after a broken connection hears what the first would have heard.
//! The format is in `docs/simulator.md`.

mod condition;
mod read;
mod template;

use std::collections::VecDeque;

use pal_model::Text;
use serde_json::Value;

use crate::heard::fingerprint;
use crate::{Answer, Ask, Model, Said, Stop};
use condition::Condition;
pub use read::ScriptError;
use template::Template;

/// A model that says what a script tells it to.
#[derive(Clone, Debug)]
pub struct Script {
    turns: Vec<Turn>,
    default: Turn,
    order: Order,
    again: Again,
    /// How often each turn was used.
    used: Vec<u64>,
    /// The newest answers by the fingerprint of their request.
    given: VecDeque<(u64, Answer)>,
}

/// How many answers are remembered for requests that come again.
const REMEMBERED: usize = 64;

/// Which turn is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The first one in the file that is not used up and whose condition holds.
    FirstMatch,
    /// The first one that is not used up; if its condition does not hold, the default speaks.
    Sequence,
}

/// What a request hears that was answered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Same,
    Next,
}

/// One turn of a script.
#[derive(Clone, Debug, Default)]
struct Turn {
    thinking: Option<Template>,
    text: Option<Template>,
    tools: Vec<Call>,
    stop: Option<Stop>,
    when: Option<Condition>,
    /// How often it may be used; none if without end.
    repeat: Option<u64>,
}

/// A call of a tool.
#[derive(Clone, Debug)]
struct Call {
    name: String,
    id: Option<Template>,
    /// What it is called with; strings in it are templates.
    input: Input,
}

/// A value with templates for strings.
#[derive(Clone, Debug)]
enum Input {
    Plain(Value),
    Text(Template),
    List(Vec<Input>),
    Table(Vec<(String, Input)>),
}

impl Script {
    /// Reads a script.
    pub fn parse(toml: &str) -> Result<Script, ScriptError> {
        read::script(toml)
    }

    /// The turn that answers this request, by its number.
    fn chosen(&self, ask: &Ask<'_>) -> Option<usize> {
        let fresh = |index: &usize| match (self.turns.get(*index), self.used.get(*index)) {
            (Some(turn), Some(used)) => turn.repeat.is_none_or(|most| *used < most),
            _ => false,
        };
        let holds = |index: &usize| {
            self.turns.get(*index).is_some_and(|turn| turn.when.as_ref().is_none_or(|when| when.holds(ask)))
        };
        let mut open = (0..self.turns.len()).filter(fresh);
        match self.order {
            Order::FirstMatch => open.find(holds),
            Order::Sequence => open.next().filter(holds),
        }
    }
}

impl Model for Script {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let print = fingerprint(ask);
        if self.again == Again::Same
            && let Some((_, answer)) = self.given.iter().find(|(given, _)| *given == print)
        {
            return answer.clone();
        }
        let chosen = self.chosen(ask);
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

impl Turn {
    /// What this turn says to a request, said for the `time`-th time.
    fn say(&self, ask: &Ask<'_>, time: u64) -> Answer {
        let mut blocks = Vec::new();
        if let Some(thinking) = &self.thinking {
            blocks.push(Said::Thinking(thinking.fill(ask, time)));
        }
        if let Some(text) = &self.text {
            blocks.push(Said::Text(text.fill(ask, time)));
        }
        for call in &self.tools {
            blocks.push(Said::ToolUse {
                id: call.id.as_ref().map(|id| id.fill(ask, time)),
                name: call.name.clone(),
                input: Text::from(call.input.fill(ask, time).to_string()),
            });
        }
        Answer { blocks, stop: self.stop }
    }
}

impl Input {
    fn fill(&self, ask: &Ask<'_>, time: u64) -> Value {
        match self {
            Input::Plain(value) => value.clone(),
            Input::Text(template) => Value::String(template.fill(ask, time)),
            Input::List(items) => items.iter().map(|item| item.fill(ask, time)).collect(),
            Input::Table(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.fill(ask, time))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
