//! What a list says of a session, read from its log in one pass.
//!
//! All bytes are looked at, because what a session cost stands all over its log, and what was left by a rewind was paid for,
//! too. But only lines that matter are read as JSON: of the others it is seen that they begin and end as entries do.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use pal_model::{
    BlockType, Body, Cards, DecisionKind, Entry, Origin, ResponseGot, Session, Source, Text, Timestamp,
    Totals,
};
use smol_str::SmolStr;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes within which the kind of an entry stands: ids, offsets and times have a bounded length.
const HEAD_BYTES: usize = 400;
/// Prompts that are looked at for one that can stand for a title.
const PROMPTS_MAX: usize = 20;
/// Characters of a title.
const TITLE_MAX: usize = 200;

/// What is known of a session.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Digest {
    /// How it began.
    pub(super) session: Option<Session>,
    /// Its title, else how its first prompt begins.
    pub(super) title: Option<String>,
    /// When its last entry was written.
    pub(super) last: Option<Timestamp>,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// The model that answered or was chosen last.
    pub(super) model: Option<SmolStr>,
    /// What was used up; the cost counts only where it is known of any response.
    pub(super) spent: Totals,
    /// Responses whose price is known.
    pub(super) priced: u64,
    /// Responses that reported what they took, and have no price.
    pub(super) unpriced: u64,
    /// The first thing that is wrong with the log.
    pub(super) problem: Option<String>,
    /// Lines that could not be read.
    pub(super) bad_lines: u64,
}

impl Digest {
    /// What the session cost; none if no price is known.
    pub(super) fn cost(&self) -> Option<f64> {
        (self.priced > 0).then_some(self.spent.cost)
    }

    /// All tokens of prompts and answers.
    pub(super) fn tokens(&self) -> u64 {
        self.spent.tokens()
    }
}

/// Reads a log. It may be written meanwhile: what it holds by now counts.
pub(super) fn of(log: &Path, cards: &Cards) -> Digest {
    let mut pass = Pass {
        cards,
        digest: Digest::default(),
        prompt: None,
        prompts: 0,
        asked: HashMap::new(),
        head: Vec::new(),
    };
    if let Err(error) = pass.read(log) {
        pass.digest.problem = Some(error.to_string());
    }
    pass.finish()
}

/// The pass over a log, as far as it has come.
struct Pass<'a> {
    cards: &'a Cards,
    digest: Digest,
    /// What stands for a title where there is none.
    prompt: Option<String>,
    prompts: usize,
    /// The models that were asked, by who asked: some answers do not say who gives them.
    asked: HashMap<Source, SmolStr>,
    /// How the last good line begins.
    head: Vec<u8>,
}

impl Pass<'_> {
    fn read(&mut self, log: &Path) -> std::io::Result<()> {
        let file = File::open(log)?;
        self.digest.bytes = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            number += 1;
            let is_whole = line.ends_with(b"\n");
            let text = line.trim_ascii_end();
            if let Err(why) = self.line(text) {
                self.digest.bad_lines += 1;
                let why = if is_whole { why } else { String::from("the last line is torn") };
                self.digest.problem.get_or_insert(format!("line {number}: {why}"));
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let head = &line[..line.len().min(HEAD_BYTES)];
        let kind = text_of(head, b"\"kind\":\"");
        let is_plain = line.starts_with(b"{\"v\":1,") && line.ends_with(b"}");
        let matters = match kind {
            Some(b"user") => self.prompts < PROMPTS_MAX && self.prompt.is_none(),
            Some(kind) => {
                matches!(kind, b"session" | b"request" | b"response" | b"title" | b"model")
            }
            None => true,
        };
        if matters || !is_plain {
            let text = std::str::from_utf8(line).map_err(|_| String::from("not UTF-8"))?;
            self.entry(&Entry::parse(Text::from(text)).map_err(|error| error.to_string())?);
        }
        self.digest.entries += 1;
        self.head.clear();
        self.head.extend_from_slice(head);
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Session(session) if self.digest.session.is_none() => {
                self.digest.title = session.title.clone().filter(|title| !title.trim().is_empty());
                self.digest.session = Some(session.clone());
            }
            Body::User(user) if user.origin == Origin::Person => self.prompt(entry),
            Body::Request(request) => {
                self.asked.insert(request.source.clone(), request.model.clone());
                self.model(&request.source, &request.model);
            }
            Body::Response(response) => self.response(response),
            Body::Decision(decision) => match &decision.kind {
                DecisionKind::Title { title } if !title.trim().is_empty() => {
                    self.digest.title = Some(shortened(title));
                }
                DecisionKind::Model { model } => self.model(&Source::main(), model),
                _ => {}
            },
            _ => {}
        }
    }

    fn model(&mut self, source: &Source, model: &SmolStr) {
        if source.is_conversation() && !model.is_empty() {
            self.digest.model = Some(model.clone());
        }
    }

    /// What a response took and cost: as the ledger books it.
    fn response(&mut self, response: &ResponseGot) {
        let asked = self.asked.remove(&response.source).unwrap_or_default();
        let model = if response.model.is_empty() { asked } else { response.model.clone() };
        let usage = &response.usage;
        let is_reported = usage.has_prompt();
        let cost = response.cost.or_else(|| self.cards.find(&model).card.cost(usage)).filter(|_| is_reported);
        self.digest.spent.add(usage, cost);
        self.digest.priced += u64::from(cost.is_some());
        self.digest.unpriced += u64::from(is_reported && cost.is_none());
        self.model(&response.source, &model);
    }

    /// A prompt that says something by itself; one in tags was written by a program.
    fn prompt(&mut self, entry: &Entry) {
        let Body::User(user) = &entry.body else { return };
        self.prompts += 1;
        let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
        let text = texts.filter_map(|block| block.string("text")).find(|text| !text.trim().is_empty());
        if let Some(text) = text.filter(|text| !text.trim_start().starts_with('<')) {
            self.prompt = Some(shortened(&text));
        }
    }

    fn finish(mut self) -> Digest {
        let at = text_of(&self.head, b"\"at\":\"").and_then(|at| std::str::from_utf8(at).ok());
        self.digest.last = at.and_then(|at| at.parse().ok());
        self.digest.title = self.digest.title.or(self.prompt);
        self.digest
    }
}

/// The characters of the string behind a label, if they stand there plainly.
fn text_of<'a>(head: &'a [u8], label: &[u8]) -> Option<&'a [u8]> {
    let from = memchr::memmem::find(head, label)? + label.len();
    let rest = &head[from..];
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

/// One line of bounded length.
fn shortened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_MAX).collect()
}
