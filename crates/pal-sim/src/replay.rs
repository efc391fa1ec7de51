//! A recorded session answers again: each request hears what the session's model said at that point.
//!
//! The point is found in the request: its newest block of the model that the recording knows, by the id of a call or
//! by its words, is followed by the next recorded response. So a second attempt hears the same. Where a request holds
//! nothing of the model (at the start, or right after a compaction) the recording goes on from the furthest answer
//! given. Directives are answered extractively and move nothing.

use std::collections::VecDeque;

use pal_model::{Block, Body, Entry, Role, ToolUseId};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::extractive::{Extractive, recognise};
use crate::heard::{self, fingerprint};
use crate::{Answer, Ask, Model, Said};
use pal_extract::Heard;

/// A model that repeats a recorded session.
#[derive(Clone, Debug)]
pub struct Replay {
    responses: Vec<Vec<Said>>,
    /// Which response made a call.
    calls: FxHashMap<ToolUseId, usize>,
    /// Which responses hold a text, by its hash, in order.
    texts: FxHashMap<u64, Vec<usize>>,
    /// Texts that the user's side said, by their hashes: these are no directives.
    asked: FxHashSet<u64>,
    /// The first response that was never given.
    furthest: usize,
    /// Responses given to requests that did not say where they stand.
    given: VecDeque<(u64, usize)>,
}

/// How many requests that do not say where they stand are remembered.
const REMEMBERED: usize = 64;

impl Replay {
    /// Reads the answers from the entries of a log.
    pub fn new(entries: &[Entry]) -> Replay {
        let mut replay = Replay {
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
                Body::User(user) => &user.content,
                Body::Boundary(boundary) => &boundary.summary,
                _ => continue,
            };
            let texts = content.blocks().iter().filter_map(|block| block.string("text"));
            replay.asked.extend(texts.map(|text| hash(&text)));
        }
        replay
    }

    /// How many answers the recording holds.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    /// Whether the recording holds no answer at all.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    fn add(&mut self, blocks: &[Block]) {
        let said: Vec<Said> = blocks.iter().filter_map(Said::recorded).collect();
        // Thinking alone is not sent back, so no request could say that it was given.
        if said.iter().all(|said| matches!(said, Said::Thinking(_))) {
            return;
        }
        let index = self.responses.len();
        for block in &said {
            match block {
                Said::ToolUse { id: Some(id), .. } => {
                    self.calls.insert(ToolUseId::from(id.as_str()), index);
                }
                Said::Text(text) => self.texts.entry(hash(text)).or_default().push(index),
                Said::ToolUse { id: None, .. } | Said::Thinking(_) => {}
            }
        }
        self.responses.push(said);
    }

    /// The response that follows the newest known block of the model.
    fn next_by_request(&self, ask: &Ask<'_>) -> Option<usize> {
        let messages = ask.messages.iter().rev().filter(|message| message.role == Role::Assistant);
        let mut blocks = messages.flat_map(|message| heard::blocks(message).rev());
        blocks.find_map(|block| self.place_of(&block)).map(|index| index + 1)
    }

    /// The response that a block of the model comes from. Of several with the same words it is the newest given.
    fn place_of(&self, block: &Heard<'_>) -> Option<usize> {
        match block {
            Heard::Call { id, .. } => self.calls.get(&ToolUseId::from(id.as_ref())).copied(),
            Heard::Text(text) => {
                let places = self.texts.get(&hash(text))?;
                places.iter().rev().find(|place| **place < self.furthest).or(places.first()).copied()
            }
            Heard::Returned { .. } | Heard::Other => None,
        }
    }

    /// The response for a request that does not say where it stands.
    fn next_by_order(&mut self, ask: &Ask<'_>) -> usize {
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

    /// Whether the request is a directive that the recorded session did not hold.
    fn is_directive(&self, ask: &Ask<'_>) -> bool {
        recognise(ask).is_some_and(|found| found.at.is_none() || !self.asked.contains(&hash(&found.words)))
    }
}

impl Model for Replay {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        if self.is_directive(ask) {
            return Extractive.answer(ask);
        }
        let index = self.next_by_request(ask).unwrap_or_else(|| self.next_by_order(ask));
        let Some(response) = self.responses.get(index) else {
            let end =
                format!("The recording ends here: all of its {} answers were given.", self.responses.len());
            return Answer { blocks: vec![Said::Text(end)], stop: None };
        };
        self.furthest = self.furthest.max(index + 1);
        let shown = |said: &&Said| ask.thinks || !matches!(said, Said::Thinking(_));
        Answer { blocks: response.iter().filter(shown).cloned().collect(), stop: None }
    }
}

/// The blocks of each response, in the order in which the responses began. Entries without an id belong together
/// until the user's side speaks.
fn responses(entries: &[Entry]) -> Vec<Vec<Block>> {
    let mut responses: Vec<Vec<Block>> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut open: Option<usize> = None;
    for entry in entries {
        match &entry.body {
            Body::Assistant(assistant) => {
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
            Body::User(_) => open = None,
            _ => {}
        }
    }
    responses
}

/// The hash of a text, as far as a client may change nothing of it.
fn hash(text: &str) -> u64 {
    xxh3_64(text.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use pal_model::Text;

    use super::*;
    use crate::AskMessage;

    /// Entries of which each is `kind`, the response's id and the content.
    fn entries(said: &[(&str, &str, &str)]) -> Vec<Entry> {
        let entry = |(at, (kind, response, content)): (usize, &(&str, &str, &str))| {
            let line = format!(
                r#"{{"v":1,"id":"01890000-0000-7000-8000-{at:012}","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"{kind}","response":"{response}","content":{content}}}"#
            );
            Entry::parse(Text::from(line)).unwrap()
        };
        said.iter().enumerate().map(entry).collect()
    }

    /// A session in which two calls of one response were logged one by one, with a result between them.
    fn session() -> Replay {
        Replay::new(&entries(&[
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

    fn ask<'a>(messages: &[(Role, &'a str)]) -> Ask<'a> {
        let message =
            |(role, raw): &(Role, &'a str)| AskMessage { role: *role, blocks: vec![Cow::Borrowed(*raw)] };
        Ask {
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

    fn shown(answer: &Answer) -> Vec<&str> {
        let block = |block| match block {
            &Said::Text(ref text) | &Said::Thinking(ref text) => text.as_str(),
            Said::ToolUse { id, .. } => id.as_deref().unwrap_or_default(),
        };
        answer.blocks.iter().map(block).collect()
    }

    #[test]
    fn entries_of_one_response_are_one_answer() {
        let mut replay = session();
        assert_eq!(replay.len(), 4, "thinking alone is no answer");
        assert_eq!(shown(&replay.answer(&ask(&[START]))), ["Looking.", "t1", "t2"]);
        let thinking = Ask { thinks: true, ..ask(&[START]) };
        assert_eq!(shown(&session().answer(&thinking)), ["hm", "Looking.", "t1", "t2"]);
        let Said::ToolUse { input, .. } = &session().answer(&ask(&[START])).blocks[1] else { panic!() };
        assert_eq!(input.as_str(), r#"{"a": 1}"#, "inputs keep their bytes");
    }

    #[test]
    fn recorded_text_without_a_word_is_not_repeated() {
        let mut replay = Replay::new(&entries(&[
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
        let thinking = Ask { thinks: true, ..ask(&[START]) };
        assert_eq!(shown(&replay.answer(&thinking)), ["hm", "t1"]);
        let called = (Role::Assistant, r#"{"type":"tool_use","id":"t1","name":"Read","input":{}}"#);
        let result = (Role::User, r#"{"type":"tool_result","tool_use_id":"t1","content":"x"}"#);
        assert_eq!(shown(&replay.answer(&ask(&[START, called, result]))), ["Done."]);
    }

    #[test]
    fn the_request_says_where_it_stands() {
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
    fn without_a_place_the_recording_goes_on_and_ends() {
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
