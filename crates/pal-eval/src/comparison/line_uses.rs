//! Lines of tool results that the agent uses again, and how many of them condensing drops.
//!
//! A line is *used again* if one of its distinctive words (a path, a number, an identifier) appears in the agent's text or calls within
//! the next messages, and the conversation contains that word nowhere else. A condenser should keep such lines. The figures give, per
//! kind of text, the characters saved and the used lines lost.

use std::collections::BTreeMap;

use pal_context::{CONDENSE_CHARACTERS, OutputOrigin, VisibleCall, condense_output};
use pal_extract::distinctive_words;
use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, ToolKind, ToolUseId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// Messages of the agent in which a line must be used again to count.
const MESSAGES: usize = 60;
/// Target sizes of a condensed result: half the default, the default, and twice that.
const AIMS: [usize; 3] = [AIM / 2, AIM, AIM * 2];
/// Default target size.
pub(crate) const AIM: usize = CONDENSE_CHARACTERS as usize;

/// Effect of condensing on one kind of text, at one target size.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CondenseLoss {
    /// Results that were condensed.
    pub results: u64,
    /// Their characters, before and after.
    pub characters: (u64, u64),
    /// Their lines, and those that were left out.
    pub lines: (u64, u64),
    /// Lines that are used again, and those of them that were left out with all that is used of them.
    pub used: (u64, u64),
}

/// Results of one kind of tool, before and after condensing to the default target size.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ToolLines {
    /// Results.
    pub results: u64,
    /// Their characters, before and after condensing.
    pub characters: (u64, u64),
    /// Of these, characters of lines that are used again.
    pub used_characters: u64,
    /// Lines that are used again, and those of them that were left out with all that is used of them.
    pub used: (u64, u64),
}

/// Uses of the lines of results.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineUses {
    /// Effect of condensing by target size in characters and by kind of text.
    pub(crate) condensed: BTreeMap<(usize, &'static str), CondenseLoss>,
    /// By kind of tool.
    pub(crate) tools: BTreeMap<&'static str, ToolLines>,
}

impl LineUses {
    /// Adds those of another session.
    pub(crate) fn absorb(&mut self, other: &LineUses) {
        for (key, cell) in &other.condensed {
            self.condensed.entry(*key).or_default().absorb(cell);
        }
        for (tool, cell) in &other.tools {
            self.tools.entry(tool).or_default().absorb(cell);
        }
    }
}

fn sum(one: &mut (u64, u64), other: (u64, u64)) {
    *one = (one.0 + other.0, one.1 + other.1);
}

impl ToolLines {
    fn absorb(&mut self, other: &ToolLines) {
        self.results += other.results;
        sum(&mut self.characters, other.characters);
        self.used_characters += other.used_characters;
        sum(&mut self.used, other.used);
    }
}

impl CondenseLoss {
    fn absorb(&mut self, other: &CondenseLoss) {
        self.results += other.results;
        sum(&mut self.characters, other.characters);
        sum(&mut self.lines, other.lines);
        sum(&mut self.used, other.used);
    }
}

/// One message: text and calls of the agent, or other content.
struct TraceMessage<'a> {
    is_agents: bool,
    text: String,
    /// The call that it is the result of.
    call: Option<&'a ContentBlock>,
}

/// Counts the uses of the lines of a session's results.
pub(crate) fn count_line_uses(entries: &[LogEntry]) -> LineUses {
    let messages = messages(entries);
    let mut first: FxHashMap<&str, usize> = FxHashMap::default();
    let mut said: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (at, message) in messages.iter().enumerate() {
        for word in distinctive_words(&message.text) {
            first.entry(word).or_insert(at);
            if message.is_agents {
                said.entry(word).or_default().push(at);
            }
        }
    }
    let mut found = LineUses::default();
    for (at, message) in messages.iter().enumerate() {
        let Some(call) = message.call.and_then(VisibleCall::read) else { continue };
        let is_used = |word: &&str| {
            let comes_from_here = first.get(word) == Some(&at);
            let later = said.get(word).into_iter().flatten();
            comes_from_here && later.copied().any(|said| said > at && said - at <= MESSAGES)
        };
        let used_lines: Vec<(u64, Vec<&str>)> = message
            .text
            .lines()
            .map(|line| (characters(line) + 1, distinctive_words(line).filter(is_used).collect::<Vec<_>>()))
            .filter(|(_, used)| !used.is_empty())
            .collect();
        let left_out = |kept: &FxHashSet<&str>| {
            let is_out = |used: &[&str]| !used.iter().any(|word| kept.contains(word));
            used_lines.iter().filter(|(_, used)| is_out(used)).count() as u64
        };
        let command = call.command();
        let asked = OutputOrigin { tool: &call.name, command: command.as_deref() };
        let before = characters(&message.text);
        let tool = found.tools.entry(kind_name(call.kind)).or_default();
        let mut of_tool = ToolLines {
            results: 1,
            characters: (before, before),
            used_characters: used_lines.iter().map(|(characters, _)| characters).sum(),
            used: (used_lines.len() as u64, 0),
        };
        for aim in AIMS {
            let Some(condensed) = condense_output(asked, &message.text, aim) else { continue };
            let kept: FxHashSet<&str> = distinctive_words(&condensed.text).collect();
            let (after, left_out) = (characters(&condensed.text), left_out(&kept));
            if aim == AIM {
                of_tool.characters.1 = after;
                of_tool.used.1 = left_out;
            }
            found.condensed.entry((aim, condensed.format.name())).or_default().absorb(&CondenseLoss {
                results: 1,
                characters: (before, after),
                lines: (message.text.lines().count() as u64, condensed.lines_left_out),
                used: (used_lines.len() as u64, left_out),
            });
        }
        tool.absorb(&of_tool);
    }
    found
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

fn kind_name(kind: Option<ToolKind>) -> &'static str {
    match kind {
        Some(ToolKind::Read) => "reads of files",
        Some(ToolKind::Shell) => "the shell",
        Some(ToolKind::Search) => "searches in files",
        Some(ToolKind::List) => "listings of files",
        Some(ToolKind::WebSearch | ToolKind::WebFetch) => "the web",
        Some(ToolKind::Edit | ToolKind::Write) => "changes of files",
        None => "others",
    }
}

fn messages(entries: &[LogEntry]) -> Vec<TraceMessage<'_>> {
    let mut calls: FxHashMap<&ToolUseId, &ContentBlock> = FxHashMap::default();
    let mut messages = Vec::new();
    for entry in entries {
        let (content, is_agents) = match &entry.body {
            EntryBody::Assistant(assistant) => (&assistant.content, true),
            EntryBody::User(user) => (&user.content, false),
            _ => continue,
        };
        for block in content.blocks() {
            let call = match (block.kind(), block.tool_use_id()) {
                (BlockType::ToolUse, Some(id)) => {
                    calls.insert(id, block);
                    None
                }
                (BlockType::ToolResult, Some(id)) => calls.remove(id),
                _ => None,
            };
            let text = match block.kind() {
                BlockType::ToolUse => unescaped(block.field("input").unwrap_or_default()),
                BlockType::ToolResult => {
                    let content = block.content();
                    let texts = content.blocks().iter().filter_map(|block| block.string("text"));
                    texts.collect::<Vec<_>>().join("\n")
                }
                _ => block.string("text").map(|text| text.into_owned()).unwrap_or_default(),
            };
            messages.push(TraceMessage { is_agents, text, call });
        }
    }
    messages
}

/// Raw JSON with what ends lines taken for that, so that words stay words.
fn unescaped(json: &str) -> String {
    json.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_testkit::script;

    #[test]
    fn lines_that_are_used_and_left_out_are_counted() {
        let mut log =
            String::from("user: go\nmodel m1: call c1 Bash {\"command\":\"cargo build\"}\nresult c1: ");
        let built: Vec<String> = (0..200).map(|part| format!("   Compiling part-{part:04} v0.1.0")).collect();
        log += &built.join("\\n");
        log += "\\nerror[E0425]: cannot find value in this scope\\n --> src/broken.rs:3:5\n";
        log += "model m2: call c2 Bash {\"command\":\"cat src/broken.rs; cargo tree -p part-0100\"}\nresult c2: done\n";
        let entries = script(&log).unwrap();
        let found = count_line_uses(&entries);
        let cell = found.condensed[&(AIM, "build log")];
        assert_eq!((cell.results, cell.lines.0), (1, 202));
        assert!(cell.lines.1 > 150 && cell.characters.1 < cell.characters.0 / 4);
        // The place of the error stays; the part that was asked for by name does not.
        assert_eq!(cell.used, (2, 1));
        let shell = found.tools["the shell"];
        assert_eq!(
            (shell.results, shell.used, shell.characters),
            (2, (2, 1), (cell.characters.0 + 4, cell.characters.1 + 4))
        );
    }
}
