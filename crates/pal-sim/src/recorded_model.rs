//! A model that replays a recorded session.
//!
//! The position is found from the request: its newest assistant block known to the recording, by call id or
//! text, is followed by the next recorded response, so retries get the same answer. A request without any
//! assistant block (at the start, or right after a compaction) continues after the furthest response given.
//! Directives are answered extractively and do not advance the position.

use std::collections::VecDeque;

use pal_model::{ContentBlock, EntryBody, LogEntry, Role, ToolUseId};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::extractive::{ExtractiveModel, recognize_directive};
use crate::prompt_text::{self, fingerprint};
use crate::{ModelOutput, ModelPrompt, OutputBlock, SimulatedModel};
use pal_extract::MessageBlock;

/// A model that replays a recorded session.
#[derive(Clone, Debug)]
pub struct RecordedModel {
    responses: Vec<Vec<OutputBlock>>,
    /// Response of each call.
    calls: FxHashMap<ToolUseId, usize>,
    /// Responses by the hash of their text, in order.
    texts: FxHashMap<u64, Vec<usize>>,
    /// Hashes of recorded user texts: these are not directives.
    asked: FxHashSet<u64>,
    /// First response not given yet.
    furthest: usize,
    /// Responses given to requests without a position.
    given: VecDeque<(u64, usize)>,
}

/// Number of remembered requests without a position.
const REMEMBERED: usize = 64;

impl RecordedModel {
    /// Collects the responses from log entries.
    pub fn new(entries: &[LogEntry]) -> RecordedModel {
        let mut replay = RecordedModel {
            responses: Vec::new(),
            calls: FxHashMap::default(),
            texts: FxHashMap::default(),
            asked: FxHashSet::default(),
            furthest: 0,
            given: VecDeque::new(),
        };
        for response in responses(entries) {
            replay.add(&response);
        }
        for entry in entries {
            let content = match &entry.body {
                EntryBody::User(user) => &user.content,
                EntryBody::Boundary(boundary) => &boundary.summary,
                _ => continue,
            };
            let texts = content.blocks().iter().filter_map(|block| block.string("text"));
            replay.asked.extend(texts.map(|text| hash(&text)));
        }
        replay
    }

    /// Number of responses in the recording.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    /// True if the recording has no response.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    fn add(&mut self, blocks: &[ContentBlock]) {
        let said: Vec<OutputBlock> = blocks.iter().filter_map(OutputBlock::from_recorded).collect();
        // A response with thinking only is never sent back, so no request could refer to it.
        if said.iter().all(|said| matches!(said, OutputBlock::Thinking(_))) {
            return;
        }
        let index = self.responses.len();
        for block in &said {
            match block {
                OutputBlock::ToolUse { id: Some(id), .. } => {
                    self.calls.insert(ToolUseId::from(id.as_str()), index);
                }
                OutputBlock::Text(text) => self.texts.entry(hash(text)).or_default().push(index),
                OutputBlock::ToolUse { id: None, .. }
                | OutputBlock::Thinking(_)
                | OutputBlock::ServerTool(_) => {}
            }
        }
        self.responses.push(said);
    }

    /// Response after the newest known assistant block.
    fn next_by_request(&self, ask: &ModelPrompt<'_>) -> Option<usize> {
        let messages = ask.messages.iter().rev().filter(|message| message.role == Role::Assistant);
        let mut blocks = messages.flat_map(|message| prompt_text::blocks(message).rev());
        blocks.find_map(|block| self.place_of(&block)).map(|index| index + 1)
    }

    /// Response that a block comes from; of several with the same text, the newest given.
    fn place_of(&self, block: &MessageBlock<'_>) -> Option<usize> {
        match block {
            MessageBlock::ToolCall { id, .. } => self.calls.get(&ToolUseId::from(id.as_ref())).copied(),
            MessageBlock::Text(text) => {
                let places = self.texts.get(&hash(text))?;
                places.iter().rev().find(|place| **place < self.furthest).or(places.first()).copied()
            }
            MessageBlock::ToolResult { .. } | MessageBlock::Other => None,
        }
    }

    /// Response for a request without a position.
    fn next_by_order(&mut self, ask: &ModelPrompt<'_>) -> usize {
        let print = fingerprint(ask);
        if let Some((_, index)) = self.given.iter().find(|(given, _)| *given == print) {
            return *index;
        }
        if self.given.len() == REMEMBERED {
            self.given.pop_front();
        }
        self.given.push_back((print, self.furthest));
        self.furthest
    }

    /// True if the request is a directive that is not part of the recording.
    fn is_directive(&self, ask: &ModelPrompt<'_>) -> bool {
        recognize_directive(ask)
            .is_some_and(|found| found.at.is_none() || !self.asked.contains(&hash(&found.words)))
    }
}

impl SimulatedModel for RecordedModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        if self.is_directive(ask) {
            return ExtractiveModel.answer(ask);
        }
        let index = self.next_by_request(ask).unwrap_or_else(|| self.next_by_order(ask));
        let Some(response) = self.responses.get(index) else {
            let end =
                format!("The recording ends here: all of its {} answers were given.", self.responses.len());
            return ModelOutput { blocks: vec![OutputBlock::Text(end)], stop: None };
        };
        self.furthest = self.furthest.max(index + 1);
        let shown = |said: &&OutputBlock| ask.thinks || !matches!(said, OutputBlock::Thinking(_));
        ModelOutput { blocks: response.iter().filter(shown).cloned().collect(), stop: None }
    }
}

/// Blocks of each response, in the order in which responses began. Entries without an id belong together
/// until the next user entry.
fn responses(entries: &[LogEntry]) -> Vec<Vec<ContentBlock>> {
    let mut responses: Vec<Vec<ContentBlock>> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut open: Option<usize> = None;
    for entry in entries {
        match &entry.body {
            EntryBody::Assistant(assistant) => {
                let known = match &assistant.response {
                    Some(id) => places.get(id.as_str()).copied(),
                    None => open,
                };
                let place = known.unwrap_or_else(|| {
                    responses.push(Vec::new());
                    responses.len() - 1
                });
                match &assistant.response {
                    Some(id) => {
                        places.insert(id.as_str(), place);
                    }
                    None => open = Some(place),
                }
                if let Some(blocks) = responses.get_mut(place) {
                    blocks.extend(assistant.content.blocks().iter().cloned());
                }
            }
            EntryBody::User(_) => open = None,
            _ => {}
        }
    }
    responses
}

/// Hash of a text without surrounding white space.
fn hash(text: &str) -> u64 {
    xxh3_64(text.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use pal_model::SharedText;

    use super::*;
    use crate::PromptMessage;

    /// Builds entries from kind, response id and content.
    fn entries(said: &[(&str, &str, &str)]) -> Vec<LogEntry> {
        let entry = |(at, (kind, response, content)): (usize, &(&str, &str, &str))| {
            let line = format!(
                r#"{{"v":1,"id":"01890000-0000-7000-8000-{at:012}","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"{kind}","response":"{response}","content":{content}}}"#
            );
            LogEntry::parse(SharedText::from(line)).unwrap()
        };
        said.iter().enumerate().map(entry).collect()
    }

    /// A session in which two calls of one response were logged separately, with a result between them.
    fn session() -> RecordedModel {
        RecordedModel::new(&entries(&[
            ("user", "", r#""start""#),
            (
                "assistant",
                "m1",
                r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Looking."}]"#,
            ),
            ("assistant", "m1", r#"[{"type":"tool_use","id":"t1","name":"Read","input":{"a": 1}}]"#),
            ("user", "", r#"[{"type":"tool_result","tool_use_id":"t1","content":"x"}]"#),
            ("assistant", "m1", r#"[{"type":"tool_use","id":"t2","name":"List","input":{}}]"#),
            ("assistant", "m2", r#"[{"type":"thinking","thinking":"alone","signature":"s"}]"#),
            ("assistant", "m3", r#"[{"type":"text","text":"Done."}]"#),
            ("user", "", r#""summarise the conversation, create a short summary""#),
            ("assistant", "m4", r#"[{"type":"text","text":"Done."}]"#),
            ("user", "", r#""more""#),
            ("assistant", "m5", r#"[{"type":"text","text":"Last."}]"#),
        ]))
    }

    fn ask<'a>(messages: &[(Role, &'a str)]) -> ModelPrompt<'a> {
        let message =
            |(role, raw): &(Role, &'a str)| PromptMessage { role: *role, blocks: vec![Cow::Borrowed(*raw)] };
        ModelPrompt {
            model: "m",
            system: vec![],
            tools: vec![],
            messages: messages.iter().map(message).collect(),
            max_tokens: 1000,
            thinks: false,
            compaction: None,
        }
    }

    const START: (Role, &str) = (Role::User, r#"{"type":"text","text":"start"}"#);
    const DONE: (Role, &str) = (Role::Assistant, r#"{"type":"text","text":"Done."}"#);
    const MORE: (Role, &str) = (Role::User, r#"{"type":"text","text":"more"}"#);

    fn shown(answer: &ModelOutput) -> Vec<&str> {
        let block = |block| match block {
            &OutputBlock::Text(ref text) | &OutputBlock::Thinking(ref text) => text.as_str(),
            OutputBlock::ToolUse { id, .. } => id.as_deref().unwrap_or_default(),
            OutputBlock::ServerTool(raw) => raw.as_str(),
        };
        answer.blocks.iter().map(block).collect()
    }

    #[test]
    fn entries_of_one_response_are_one_answer() {
        let mut replay = session();
        assert_eq!(replay.len(), 4, "thinking alone is no answer");
        assert_eq!(shown(&replay.answer(&ask(&[START]))), ["Looking.", "t1", "t2"]);
        let thinking = ModelPrompt { thinks: true, ..ask(&[START]) };
        assert_eq!(shown(&session().answer(&thinking)), ["hm", "Looking.", "t1", "t2"]);
        let OutputBlock::ToolUse { input, .. } = &session().answer(&ask(&[START])).blocks[1] else {
            panic!()
        };
        assert_eq!(input.as_str(), r#"{"a": 1}"#, "inputs keep their bytes");
    }

    #[test]
    fn blank_recorded_text_is_not_replayed() {
        let mut replay = RecordedModel::new(&entries(&[
            ("user", "", r#""start""#),
            (
                "assistant",
                "m1",
                r#"[{"type":"text","text":"\n\n"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"Read","input":{}}]"#,
            ),
            ("user", "", r#"[{"type":"tool_result","tool_use_id":"t1","content":"x"}]"#),
            ("assistant", "m2", r#"[{"type":"text","text":" "}]"#),
            ("assistant", "m3", r#"[{"type":"text","text":"Done."}]"#),
        ]));
        assert_eq!(replay.len(), 2, "a response without a word is none");
        let thinking = ModelPrompt { thinks: true, ..ask(&[START]) };
        assert_eq!(shown(&replay.answer(&thinking)), ["hm", "t1"]);
        let called = (Role::Assistant, r#"{"type":"tool_use","id":"t1","name":"Read","input":{}}"#);
        let result = (Role::User, r#"{"type":"tool_result","tool_use_id":"t1","content":"x"}"#);
        assert_eq!(shown(&replay.answer(&ask(&[START, called, result]))), ["Done."]);
    }

    #[test]
    fn position_follows_from_the_request() {
        let mut replay = session();
        let called = (Role::Assistant, r#"{"type":"tool_use","id":"t1","name":"Read","input":{}}"#);
        let result = (Role::User, r#"{"type":"tool_result","tool_use_id":"t1","content":"x"}"#);
        for _ in 0..3 {
            assert_eq!(shown(&replay.answer(&ask(&[START, called, result]))), ["Done."]);
        }
        let asked =
            (Role::User, r#"{"type":"text","text":"summarise the conversation, create a short summary"}"#);
        assert_eq!(
            shown(&replay.answer(&ask(&[START, DONE, asked]))),
            ["Done."],
            "the recorded words are no directive"
        );
        assert_eq!(
            shown(&replay.answer(&ask(&[START, DONE, asked, DONE, MORE]))),
            ["Last."],
            "of equal words the newest"
        );
    }

    #[test]
    fn requests_without_a_position_continue_to_the_end() {
        let mut replay = session();
        let fresh = |words: &str| format!(r#"{{"type":"text","text":"{words}"}}"#);
        let mut hear = |words: &str| {
            let raw = fresh(words);
            shown(&replay.answer(&ask(&[(Role::User, raw.as_str())]))).join(" ")
        };
        assert_eq!(hear("a"), "Looking. t1 t2");
        assert_eq!(hear("a"), "Looking. t1 t2", "a second attempt hears the same");
        assert_eq!(hear("b"), "Done.");
        assert!(
            hear("Your task is to create a detailed summary of the conversation so far.")
                .starts_with("## 1.")
        );
        assert_eq!(hear("c"), "Done.");
        assert_eq!(hear("d"), "Last.");
        assert_eq!(hear("e"), "The recording ends here: all of its 4 answers were given.");
    }
}
