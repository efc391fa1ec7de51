//! The language of the `render` target: text in, entries out, whatever the text.
//!
//! One line is one step. Its first letter says what it is, letters and digits behind it say which, and the rest is
//! content: raw JSON where it is JSON, else blocks, one letter each, with an id's digit and an argument in
//! parentheses. An argument that is JSON stands as it is, any other becomes a JSON string. So a changed byte is a
//! changed block far more often than a broken line.
//!
//! ```text
//! u x(fix the test)          a person says: fix the test
//! a1 k c1({"path":"a"})      response 1 thinks and calls tool 1
//! r                          a request left
//! t r1(ok)+("mood":7)        tool 1 answers, with a field that nobody knows
//! dc1 gone                   result 1 is cleared
//! ```

use pal_model::{
    Boundary, Content, Decision, DecisionKind, EntryDraft, EntryId, EntryRef, IdSource, LogEntry,
    MessageOrigin, PreservedPlacement, PreservedRange, PromptPrefix, RequestRecord, RequestSource,
    ResponseRecord, SessionSnapshot, SharedText, Timestamp, Usage, escape_into,
};
use serde_json::value::RawValue;

/// Longer inputs say nothing that shorter ones cannot.
const STEPS_MAX: usize = 64;
const BLOCKS_MAX: usize = 16;
const IDS: [&str; 10] =
    ["toolu_a", "toolu_b", "toolu_c", "call|e.1", "ünï", "", "srvtoolu_1", "srvtoolu_2", "srvtoolu-3", "_"];
const RESULTS: [&str; 10] = [
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_result",
    "compaction",
    "container_upload",
];

/// The entries that a text stands for, in the order of their log.
pub fn entries(text: &str) -> Vec<LogEntry> {
    let mut pot = Pot { ids: IdSource::seeded(1), entries: Vec::new(), prefix: None, rewind: 0 };
    for line in text.lines().take(STEPS_MAX) {
        pot.step(line);
    }
    pot.entries
}

/// A log as it is being written.
struct Pot {
    ids: IdSource,
    entries: Vec<LogEntry>,
    prefix: Option<EntryId>,
    /// How many entries before the last one the next entry continues.
    rewind: usize,
}

/// What follows the first letter of a line.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    letter: char,
    digits: &'a [u8],
    rest: &'a str,
}

impl Arguments<'_> {
    fn digit(self, at: usize) -> usize {
        self.digits.get(at).map_or(0, |digit| usize::from(digit - b'0'))
    }
}

impl Pot {
    fn step(&mut self, line: &str) {
        let mut letters = line.chars();
        let Some(kind) = letters.next() else { return };
        let rest = letters.as_str();
        let letter = rest.chars().next().filter(char::is_ascii_alphabetic);
        let rest = if letter.is_some() { &rest[1..] } else { rest };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).take(4).count();
        let (digits, rest) = rest.split_at(digits);
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        let arguments = Arguments { letter: letter.unwrap_or(' '), digits: digits.as_bytes(), rest };
        if kind == '<' {
            self.rewind = arguments.digit(0) * 10 + arguments.digit(1);
            return;
        }
        let time = Timestamp::from_milliseconds(1_800_000_000_000 + self.entries.len() as i64);
        let id = self.ids.next_id(time);
        let back = std::mem::take(&mut self.rewind);
        let parent = self.earlier(back);
        let line = match self.draft(kind, arguments, id) {
            Some(draft) => draft.into_line(id, parent, time, None),
            None => {
                let parent = parent.map_or("null".into(), |parent| format!("\"{parent}\""));
                format!(r#"{{"v":1,"id":"{id}","parent":{parent},"at":"{time}",{}}}"#, arguments.rest)
            }
        };
        self.entries.extend(LogEntry::parse(SharedText::from(line)));
    }

    /// The id of the entry so many before the last.
    fn earlier(&self, back: usize) -> Option<EntryId> {
        let last = self.entries.len().checked_sub(1)?;
        self.entries.get(last.saturating_sub(back)).map(|entry| entry.id)
    }

    /// The same; where there is no entry yet, an id that none has.
    fn target(&self, back: usize) -> EntryId {
        self.earlier(back).unwrap_or(EntryId::from_bits(7))
    }

    fn draft(&mut self, kind: char, arguments: Arguments<'_>, id: EntryId) -> Option<EntryDraft> {
        let Arguments { letter, rest, .. } = arguments;
        Some(match kind {
            'u' => EntryDraft::user(MessageOrigin::Person, &content(rest)),
            't' => EntryDraft::user(MessageOrigin::Tool, &content(rest)),
            'g' => EntryDraft::user(MessageOrigin::Agent, &content(rest)),
            'y' => EntryDraft::user(MessageOrigin::Synthetic, &content(rest)),
            'a' => {
                let response = arguments.digit(0);
                let response = (response > 0).then(|| format!("msg_{response}").as_str().into());
                let model = if letter == 'o' { "claude-opus-4-6" } else { "claude-opus-5-5-20260901" };
                EntryDraft::assistant(response.as_ref(), Some(model), &content(rest))
            }
            'm' => EntryDraft::attachment("reminder", &content(rest)),
            'r' => EntryDraft::request(&RequestRecord::new(
                RequestSource::from_name(if letter == 'c' { "compact" } else { "main" }),
                self.earlier(arguments.digit(0)),
                "claude-opus-5-5".into(),
            )),
            's' => EntryDraft::response(&ResponseRecord {
                response: format!("msg_{}", arguments.digit(0)).as_str().into(),
                source: RequestSource::main(),
                model: "claude-opus-5-5".into(),
                usage: Usage { input_tokens: rest.len() as u64 * 1000, ..Usage::default() },
                stop_reason: None,
                cost: None,
                cache_break: None,
            }),
            'd' => EntryDraft::decision(&self.decision(arguments)),
            'b' => EntryDraft::boundary(&self.boundary(arguments)),
            'p' => {
                self.prefix = Some(id);
                EntryDraft::prefix(&prefix(arguments))
            }
            _ => return None,
        })
    }

    fn decision(&self, arguments: Arguments<'_>) -> Decision {
        let (one, two) = (arguments.digit(0), arguments.digit(1));
        let text = String::from(arguments.rest);
        let call = |digit: usize| IDS[digit].into();
        let kind = match arguments.letter {
            's' => DecisionKind::Spill { tool_use_id: Some(call(one)), entry: None, path: "a".into(), text },
            'e' => {
                let entry = Some(self.target(one));
                DecisionKind::Spill { tool_use_id: None, entry, path: "a".into(), text }
            }
            'n' => DecisionKind::Snip { entries: vec![self.target(one), self.target(two)] },
            'f' => DecisionKind::Fold { head: self.target(one), tail: self.target(two), text },
            't' => DecisionKind::Strip { entry: self.target(one), media: None, text },
            'u' => DecisionKind::Undo { target: self.target(one) },
            'p' => DecisionKind::Pin { text },
            'm' => DecisionKind::Model { model: text.into() },
            _ => DecisionKind::Clear { tool_use_ids: vec![call(one), call(two)], text },
        };
        Decision { kind, reason: "fuzz".into(), cost: Default::default() }
    }

    fn boundary(&self, arguments: Arguments<'_>) -> Boundary {
        let placement = match arguments.letter {
            'b' => PreservedPlacement::BeforeSummary,
            _ => PreservedPlacement::AfterSummary,
        };
        let preserved = (arguments.digits.len() > 1).then(|| PreservedRange {
            head: self.target(arguments.digit(0)),
            tail: self.target(arguments.digit(1)),
            placement,
            offset: None,
        });
        let prefix = self.prefix.map(|id| EntryRef { id, offset: None });
        Boundary {
            trigger: "auto".into(),
            method: if arguments.digit(2) > 0 { "provider" } else { "fork" }.into(),
            summary: Content::parse(&SharedText::from(content(arguments.rest))),
            preserved,
            snapshot: SessionSnapshot { prefix, ..SessionSnapshot::default() },
            ..Boundary::default()
        }
    }
}

/// System blocks, tools and a context, parted by `|`.
fn prefix(arguments: Arguments<'_>) -> PromptPrefix {
    let mut parts = arguments.rest.split('|');
    let mut next = || content(parts.next().unwrap_or_default());
    let list = |raw: String| SharedText::from(if raw.starts_with('[') { raw } else { format!("[{raw}]") });
    PromptPrefix {
        system: list(next()),
        tools: list(next()),
        context: Content::parse(&SharedText::from(next())),
        unseen_tokens: arguments.digit(0) as u64,
        notes: Default::default(),
    }
}

/// Raw content: JSON as it stands, anything else read as blocks.
fn content(text: &str) -> String {
    if is_json(text) {
        return text.into();
    }
    let mut blocks: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let digit = rest.bytes().next().filter(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
        rest = if digit.is_some() { &rest[1..] } else { rest };
        let argument = match rest.strip_prefix('(') {
            Some(inner) => {
                let (argument, after) = inner.split_once(')').unwrap_or((inner, ""));
                rest = after;
                Some(argument)
            }
            None => None,
        };
        match (letter, blocks.last_mut()) {
            ('+', Some(last)) => {
                add_field(last, argument.unwrap_or(r#""cache_control":{"type":"ephemeral"}"#))
            }
            _ => blocks.extend(block(letter, digit.unwrap_or(0), argument)),
        }
        if blocks.len() >= BLOCKS_MAX {
            break;
        }
    }
    format!("[{}]", blocks.join(","))
}

fn is_json(text: &str) -> bool {
    // A line with a raw line end would be two; `lines` has cut those already, but for a lone carriage return.
    !text.contains('\r') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A block of the kind that the letter names; none for letters that name none.
fn block(letter: char, digit: usize, argument: Option<&str>) -> Option<String> {
    let value = |other: &str| match argument {
        None => other.into(),
        Some(json) if is_json(json) => json.into(),
        Some(text) => quoted(text),
    };
    let id = quoted(IDS[digit]);
    Some(match letter {
        'x' => format!(r#"{{"type":"text","text":{}}}"#, value(r#""word""#)),
        'X' => {
            let text = format!("<system-reminder>{}</system-reminder>", argument.unwrap_or("note"));
            format!(r#"{{"type":"text","text":{}}}"#, quoted(&text))
        }
        'z' => format!(r#"{{"type":"text","text":"cited","citations":{}}}"#, value("[]")),
        'k' => format!(r#"{{"type":"thinking","thinking":{},"signature":"EqQB"}}"#, value(r#""hm""#)),
        'K' => format!(r#"{{"type":"thinking","thinking":"","signature":{}}}"#, value(r#""""#)),
        'q' => format!(r#"{{"type":"redacted_thinking","data":{}}}"#, value(r#""opaque""#)),
        'c' => format!(r#"{{"type":"tool_use","id":{id},"name":"Read","input":{}}}"#, value("{}")),
        'C' => format!(r#"{{"type":"tool_use","id":{id},"name":{},"input":{{}}}}"#, value(r#""no name!""#)),
        'r' => format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{}}}"#, value(r#""ok""#)),
        'e' => format!(
            r#"{{"type":"tool_result","tool_use_id":{id},"content":[],"is_error":{}}}"#,
            value("true")
        ),
        'i' => format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":{}}}}}"#,
            value(r#""AAAA""#)
        ),
        'I' => format!(r#"{{"type":"image","source":{}}}"#, value(r#"{"type":"file","file_id":"f_1"}"#)),
        'D' => format!(
            r#"{{"type":"document","source":{}}}"#,
            value(r#"{"type":"text","media_type":"text/plain","data":"page"}"#)
        ),
        'h' => format!(
            r#"{{"type":"search_result","source":"s","title":"t","content":{}}}"#,
            value(r#"[{"type":"text","text":"hit"}]"#)
        ),
        'v' => format!(
            r#"{{"type":"server_tool_use","id":{id},"name":"web_search","input":{}}}"#,
            value(r#"{"query":"x"}"#)
        ),
        'V' => {
            format!(
                r#"{{"type":"server_tool_use","id":{id},"name":{},"input":{{}}}}"#,
                value(r#""web_fetch""#)
            )
        }
        'w' => {
            format!(r#"{{"type":"web_search_tool_result","tool_use_id":{id},"content":{}}}"#, value("[]"))
        }
        'W' => format!(
            r#"{{"type":"{}","tool_use_id":"srvtoolu_1","content":{}}}"#,
            RESULTS[digit],
            value(r#"{"type":"x"}"#)
        ),
        'T' => format!(
            r#"{{"name":{},"description":"d","input_schema":{{"type":"object"}}}}"#,
            value(r#""Read""#)
        ),
        'S' => format!(r#"{{"name":"Schema","input_schema":{}}}"#, value(r#"{"type":"object"}"#)),
        'j' => value("{}"),
        _ => return None,
    })
}

/// Puts a raw field at the end of an object, if it stays one.
fn add_field(object: &mut String, field: &str) {
    let Some(inner) = object.strip_suffix('}') else { return };
    let comma = if inner.ends_with('{') { "" } else { "," };
    let longer = format!("{inner}{comma}{field}}}");
    if is_json(&longer) {
        *object = longer;
    }
}

fn quoted(text: &str) -> String {
    let mut json = String::new();
    escape_into(&mut json, text);
    json
}
