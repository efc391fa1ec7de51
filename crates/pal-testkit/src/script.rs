//! Scripts: a log written as a few lines that a person can read, for scenarios.
//!
//! ```text
//! user: fix it                      what a person said; `\n` is a line end
//! model m1: hello                   text of response m1 (`model -:` has no response id)
//! model m1: think deep thoughts     a signed thinking block
//! model m1: call a Read {"file_path":"/x"}
//! result a: the file                a tool result; `result a error: …` is marked as an error
//! note: remember this               an attachment; `note memory: …` is one of that sort
//! tools Read Bash                   the session declares these tools
//! agent: observed                   said on the user's side, but not by a person
//! image                             a picture that a person pasted
//! raw user [..json..]               any content on the user's side; `raw tool [..]` of a tool, `raw model m1 [..]`
//! sent                              a request left;  `sent compact` by a fork
//! usage m1 1200 30                  response m1 reported a prompt of 1200 and an output of 30 tokens
//! clear a: gone                     decisions; entries are named by their line number in the script
//! spill a: see a.txt
//! keep a b
//! delete a b                        from the provider's cache
//! snip 2 3
//! fold 2 5: what happened
//! strip 4: no picture               all media of line 4; `strip image 4`: only its images
//! undo 7
//! factor claude47 12000
//! switch claude-haiku-4-5           another model answers from here on
//! boundary 4 6 after: summary       a boundary that keeps lines 4 to 6 behind the summary (`before`, or `- -` for none)
//! rewind 3                          the next line continues line 3
//! model-of m1 claude-opus-4-6       response m1 is that model's from here on
//! ```

use std::collections::BTreeMap;

use pal_model::{
    Boundary, Content, ContentBlock, Decision, DecisionCost, DecisionKind, EntryDraft, EntryId, IdSource,
    LogEntry, MediaKind, MessageOrigin, PreservedPlacement, PreservedRange, PromptPrefix, RequestRecord,
    RequestSource, ResponseRecord, SharedText, Timestamp, Usage, escape_into,
};

/// A log as a script tells it.
struct Writer {
    ids: IdSource,
    entries: Vec<LogEntry>,
    /// The entry of each line of the script, from 1.
    by_line: BTreeMap<usize, EntryId>,
    models: BTreeMap<String, String>,
    parent: Option<EntryId>,
}

/// The entries that a script describes, in the order of their log. Fails with the line that makes no sense.
pub fn script(text: &str) -> Result<Vec<LogEntry>, String> {
    let mut writer = Writer {
        ids: IdSource::seeded(5),
        entries: Vec::new(),
        by_line: BTreeMap::new(),
        models: BTreeMap::new(),
        parent: None,
    };
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() {
            writer.line(at + 1, line).ok_or_else(|| format!("line {}: what is `{line}`?", at + 1))?;
        }
    }
    Ok(writer.entries)
}

impl Writer {
    fn line(&mut self, number: usize, line: &str) -> Option<()> {
        let (head, text) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
        let text = text.replace("\\n", "\n");
        let words: Vec<&str> = head.split(' ').collect();
        match words.as_slice() {
            ["rewind", to] => {
                self.parent = Some(self.entry(to)?);
                return Some(());
            }
            ["model-of", response, model] => {
                self.models.insert((*response).into(), (*model).into());
                return Some(());
            }
            _ => {}
        }
        let draft = self.said(line, &words, &text).or_else(|| self.decided(&words, &text))?;
        let at = Timestamp::from_milliseconds(1_800_000_000_000 + number as i64 * 1000);
        let id = self.ids.next_id(at);
        let entry = draft.into_entry(id, self.parent, at).ok()?;
        self.parent = Some(id);
        self.by_line.insert(number, id);
        self.entries.push(entry);
        Some(())
    }

    fn said(&self, line: &str, words: &[&str], text: &str) -> Option<EntryDraft> {
        let list = |block: &ContentBlock| format!("[{}]", block.raw());
        Some(match words {
            ["user"] => EntryDraft::user(MessageOrigin::Person, &list(&ContentBlock::text(text))),
            ["agent"] => EntryDraft::user(MessageOrigin::Agent, &list(&ContentBlock::text(text))),
            ["note"] => EntryDraft::attachment("note", &list(&ContentBlock::text(text))),
            ["note", what] => EntryDraft::attachment(what, &list(&ContentBlock::text(text))),
            ["tools", names @ ..] => EntryDraft::prefix(&tools(names)),
            ["image"] => EntryDraft::user(
                MessageOrigin::Person,
                r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]"#,
            ),
            ["result", id] => EntryDraft::user(MessageOrigin::Tool, &result(id, text, "")),
            ["result", id, "error"] => {
                EntryDraft::user(MessageOrigin::Tool, &result(id, text, r#","is_error":true"#))
            }
            ["raw", "user", ..] => EntryDraft::user(MessageOrigin::Person, line.strip_prefix("raw user ")?),
            ["raw", "tool", ..] => EntryDraft::user(MessageOrigin::Tool, line.strip_prefix("raw tool ")?),
            ["raw", "model", response, ..] => {
                let content = line.strip_prefix("raw model ")?.split_once(' ')?.1;
                self.model(response, content)
            }
            ["model", response] => match text.split_once(' ') {
                Some(("call", rest)) => {
                    let mut parts = rest.splitn(3, ' ');
                    let (id, name) = (parts.next()?, parts.next()?);
                    let input = parts.next().unwrap_or("{}");
                    self.model(
                        response,
                        &format!(r#"[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]"#),
                    )
                }
                Some(("think", rest)) => {
                    let mut block = String::from(r#"[{"type":"thinking","thinking":"#);
                    escape_into(&mut block, rest);
                    self.model(response, &format!(r#"{block},"signature":"signed"}}]"#))
                }
                _ => self.model(response, &list(&ContentBlock::text(text))),
            },
            ["sent"] => self.sent("main"),
            ["sent", source] => self.sent(source),
            ["usage", response, prompt, output] => EntryDraft::response(&ResponseRecord {
                response: (*response).into(),
                source: RequestSource::main(),
                model: self.model_of(response).into(),
                usage: Usage {
                    input_tokens: prompt.parse().ok()?,
                    output_tokens: output.parse().ok()?,
                    ..Usage::default()
                },
                stop_reason: None,
                cost: None,
                cache_break: None,
            }),
            _ => return None,
        })
    }

    fn decided(&self, words: &[&str], text: &str) -> Option<EntryDraft> {
        let text = String::from(text);
        let kind = match words {
            ["clear", ids @ ..] => {
                DecisionKind::Clear { tool_use_ids: ids.iter().map(|id| (*id).into()).collect(), text }
            }
            ["spill", id] => DecisionKind::Spill {
                tool_use_id: Some((*id).into()),
                entry: None,
                path: format!("{id}.txt"),
                text,
            },
            ["keep", ids @ ..] => {
                DecisionKind::Keep { tool_use_ids: ids.iter().map(|id| (*id).into()).collect() }
            }
            ["delete", ids @ ..] => {
                DecisionKind::CacheEdit { tool_use_ids: ids.iter().map(|id| (*id).into()).collect() }
            }
            ["snip", lines @ ..] => DecisionKind::Snip {
                entries: lines.iter().map(|line| self.entry(line)).collect::<Option<_>>()?,
            },
            ["fold", head, tail] => {
                DecisionKind::Fold { head: self.entry(head)?, tail: self.entry(tail)?, text }
            }
            ["strip", line] => DecisionKind::Strip { entry: self.entry(line)?, media: None, text },
            ["strip", media, line] => {
                let media = MediaKind::ALL.into_iter().find(|kind| kind.name() == *media)?;
                DecisionKind::Strip { entry: self.entry(line)?, media: Some(media), text }
            }
            ["undo", line] => DecisionKind::Undo { target: self.entry(line)? },
            ["switch", model] => DecisionKind::Model { model: (*model).into() },
            ["factor", generation, factor] => {
                DecisionKind::Factors { factors: [((*generation).into(), factor.parse().ok()?)].into() }
            }
            ["boundary", head, tail, rest @ ..] => {
                let placement = match rest {
                    ["before"] => PreservedPlacement::BeforeSummary,
                    _ => PreservedPlacement::AfterSummary,
                };
                let ends = self.entry(head).zip(self.entry(tail));
                let preserved =
                    ends.map(|(head, tail)| PreservedRange { head, tail, placement, offset: None });
                let summary = [ContentBlock::text(&text)].into_iter().collect();
                let how = "fork".into();
                return Some(EntryDraft::boundary(&Boundary {
                    method: how,
                    summary,
                    preserved,
                    ..Boundary::default()
                }));
            }
            _ => return None,
        };
        let cost = DecisionCost { tokens_freed: 100, ..DecisionCost::default() };
        Some(EntryDraft::decision(&Decision { kind, reason: "script".into(), cost }))
    }

    fn entry(&self, line: &str) -> Option<EntryId> {
        self.by_line.get(&line.parse().ok()?).copied()
    }

    fn model_of(&self, response: &str) -> &str {
        self.models.get(response).map_or("claude-opus-5-5", String::as_str)
    }

    fn model(&self, response: &str, content: &str) -> EntryDraft {
        let model = Some(self.model_of(response));
        let response = (response != "-").then(|| response.into());
        EntryDraft::assistant(response.as_ref(), model, content)
    }

    fn sent(&self, source: &str) -> EntryDraft {
        EntryDraft::request(&RequestRecord::new(
            RequestSource::from_name(source),
            self.parent,
            "claude-opus-5-5".into(),
        ))
    }
}

fn result(id: &str, text: &str, error: &str) -> String {
    let mut content = String::new();
    escape_into(&mut content, text);
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{content}{error}}}]"#)
}

/// A prefix that declares tools of these names.
fn tools(names: &[&str]) -> PromptPrefix {
    let tool = |name: &&str| format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#);
    let tools: Vec<String> = names.iter().map(tool).collect();
    PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from(format!("[{}]", tools.join(","))),
        context: Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    }
}
