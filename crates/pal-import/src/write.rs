//! Steps become a log: session, prefix, and an entry for each step, each following the one before.

use std::collections::BTreeSet;

use pal_model::{
    BlockType, CarriedWords, Content, Draft, EntryId, IdSource, Origin, Prefix, Preserved, Reference,
    RequestSent, ResponseGot, ResponseId, Snapshot, Source, Text, Timestamp, unescape,
};

use crate::Imported;
use crate::aside::KeptAside;
use crate::blocks::{self, quoted, text_block, tool_name};
use crate::format::Format;
use crate::report::Report;
use crate::step::{Act, Boundary, Session, Step};

/// What an image or a document counts, whatever its size.
const MEDIA_TOKENS: f64 = 2000.0;

/// Estimates tokens.
pub trait Measure {
    /// Tokens that `model` would see in `text`.
    fn text(&self, model: &str, text: &str) -> f64;
    /// Tokens that `model` would see in raw JSON.
    fn json(&self, model: &str, json: &str) -> f64;
}

/// Writes the log of a session.
pub(crate) fn write(source: &[u8], format: Format, session: &Session<'_>, measure: &dyn Measure) -> Imported {
    let tools = tools(&session.steps);
    let unseen_tokens = unseen(session, measure);
    let first = session.steps.iter().find_map(|step| step.at).unwrap_or_default();
    let mut writer = Writer::new(source, format, session, first);
    writer.report.unseen_tokens = unseen_tokens;
    writer.push("session", Draft::session(&session.about));
    let system = blocks::list(
        session
            .system
            .iter()
            .map(|text| text_block(&quoted(text)))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    );
    let prefix = Prefix {
        system: Text::from(system),
        tools: Text::from(tool_schemas(&tools)),
        context: Content::default(),
        unseen_tokens,
        notes: Default::default(),
    };
    let place = writer.push("prefix", Draft::prefix(&prefix));
    writer.snapshot.prefix = Some(Reference { id: place.0, offset: Some(place.1) });
    for step in &session.steps {
        writer.step(step);
    }
    Imported { log: writer.log, report: writer.report }
}

/// Where an entry stands.
type Place = (EntryId, u64);

struct Writer {
    log: String,
    report: Report,
    ids: IdSource,
    last: Option<EntryId>,
    /// The time of the step at hand, or of the last one that had any.
    at: Timestamp,
    /// The newest time so far: ids are dated no earlier, so that they sort.
    newest: Timestamp,
    /// Where each step's entry stands.
    places: Vec<Option<Place>>,
    snapshot: Snapshot,
}

impl Writer {
    fn new(source: &[u8], format: Format, session: &Session<'_>, at: Timestamp) -> Writer {
        let seen = &session.seen;
        let report = Report {
            format,
            foreign_id: session.about.foreign_id.clone(),
            title: session.about.title.clone(),
            lines: seen.lines,
            records: seen.records,
            mended_lines: seen.mended,
            entries: Default::default(),
            messages: 0,
            user_messages: 0,
            tool_calls: 0,
            tool_results: 0,
            responses: 0,
            boundaries: 0,
            rewinds: seen.rewinds,
            withdrawn: seen.withdrawn,
            models: Default::default(),
            usage: Default::default(),
            unseen_tokens: 0,
            kept_aside: Vec::new(),
        };
        Writer {
            log: String::with_capacity(source.len() + session.steps.len() * 192 + 4096),
            report,
            ids: IdSource::seeded(fingerprint(source)),
            last: None,
            at,
            newest: at,
            places: Vec::with_capacity(session.steps.len()),
            snapshot: Snapshot { title: session.about.title.clone(), ..Snapshot::default() },
        }
    }

    fn push(&mut self, kind: &'static str, draft: Draft) -> Place {
        self.newest = self.newest.max(self.at);
        let id = self.ids.next_id(self.newest);
        let offset = self.log.len() as u64;
        self.log.push_str(&draft.into_line(id, self.last, self.at, None));
        self.log.push('\n');
        self.last = Some(id);
        *self.report.entries.entry(kind).or_default() += 1;
        (id, offset)
    }

    fn step(&mut self, step: &Step<'_>) {
        self.at = step.at.unwrap_or(self.at);
        let foreign = |draft: Draft| match step.foreign {
            Some(id) => draft.extra("foreign", id),
            None => draft,
        };
        let place = match &step.act {
            Act::Nothing => None,
            Act::User { origin, content, results } => {
                self.report.messages += 1;
                self.report.user_messages += u64::from(*origin == Origin::Person);
                self.report.tool_results += results;
                let place = self.push("user", foreign(Draft::user(*origin, content)));
                if *origin == Origin::Person {
                    self.carry(place.0, content);
                }
                Some(place)
            }
            Act::Assistant { response, model, content, calls } => {
                self.report.messages += 1;
                self.report.tool_calls += calls.len() as u64;
                let response = ResponseId::from(response.as_ref());
                let model = (!model.is_empty()).then_some(model.as_ref());
                Some(self.push("assistant", foreign(Draft::assistant(Some(&response), model, content))))
            }
            Act::Attachment { what, content, raw } => {
                let draft = foreign(Draft::attachment(what, content));
                let draft = match raw {
                    Some(raw) => draft.extra("raw", raw),
                    None => draft,
                };
                Some(self.push("attachment", draft))
            }
            Act::Shown { content } => Some(self.push("virtual", foreign(Draft::shown(content)))),
            Act::Internal { what, raw, reason, detail } => {
                let mut draft = Draft::internal(what, raw);
                if let Some(detail) = detail {
                    draft = draft.extra("line", &step.line.to_string()).extra("reason", &quoted(detail));
                }
                self.report.kept_aside.push(KeptAside {
                    line: step.line,
                    what: what.to_string(),
                    reason: *reason,
                    detail: detail.clone(),
                });
                Some(self.push("internal", draft))
            }
            Act::Request { model } => {
                let request = RequestSent::plain(Source::main(), self.last, model.as_ref().into());
                Some(self.push("request", Draft::request(&request)))
            }
            Act::Response { response, model, usage, stop_reason } => {
                self.report.responses += 1;
                *self.report.models.entry(model.to_string()).or_default() += 1;
                self.snapshot.totals.add(usage, None);
                self.report.usage = self.snapshot.totals;
                self.snapshot.model = Some(model.as_ref().into());
                let response = ResponseGot {
                    source: Source::main(),
                    response: response.as_ref().into(),
                    model: model.as_ref().into(),
                    usage: usage.clone(),
                    stop_reason: stop_reason.as_deref().map(Into::into),
                    cost: None,
                    cache_break: None,
                };
                Some(self.push("response", Draft::response(&response)))
            }
            Act::Boundary(boundary) => Some(self.boundary(boundary, foreign)),
            Act::Decision(decision) => Some(self.push("decision", Draft::decision(decision))),
        };
        self.places.push(place);
    }

    /// What a person said is carried on by later boundaries, the newest as far as there is room.
    fn carry(&mut self, entry: EntryId, content: &str) {
        const BYTES_MAX: usize = 48_000;
        let content = Content::parse(&Text::from(content));
        let texts: Vec<_> = content.blocks().iter().filter_map(|block| block.string("text")).collect();
        let text = texts.join("\n").trim().to_owned();
        if text.is_empty() {
            return;
        }
        let carried = &mut self.snapshot.carried;
        carried.words.push(CarriedWords { entry, text });
        let mut bytes: usize = carried.words.iter().map(|words| words.text.len()).sum();
        while bytes > BYTES_MAX {
            bytes -= carried.words.remove(0).text.len();
            carried.pointed += 1;
        }
    }

    fn boundary(&mut self, boundary: &Boundary<'_>, foreign: impl Fn(Draft) -> Draft) -> Place {
        self.report.boundaries += 1;
        let preserved = boundary.preserved.and_then(|(head, tail, placement)| {
            let stretch = self.places.get(head..=tail)?;
            let head = stretch.iter().flatten().next()?;
            let tail = stretch.iter().flatten().next_back()?;
            Some(Preserved { head: head.0, tail: tail.0, placement, offset: Some(head.1) })
        });
        let written = pal_model::Boundary {
            trigger: boundary.trigger.as_ref().into(),
            how: "imported".into(),
            summary: Content::parse(&Text::from(boundary.summary.as_ref())),
            tokens_before: boundary.tokens_before,
            tokens_after: boundary.tokens_after,
            messages_summarised: boundary.messages_summarised,
            preserved,
            instructions: boundary.instructions.clone(),
            snapshot: self.snapshot.clone(),
            ..pal_model::Boundary::default()
        };
        self.push("boundary", foreign(Draft::boundary(&written)))
    }
}

/// The names of all tools that were called, fit for a request.
fn tools(steps: &[Step<'_>]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in steps {
        if let Act::Assistant { calls, .. } = &step.act {
            for name in calls {
                if !names.contains(name.as_ref()) {
                    names.insert(tool_name(name));
                }
            }
        }
    }
    names
}

/// The smallest schemas that make calls of these tools valid.
fn tool_schemas(names: &BTreeSet<String>) -> String {
    let schemas: Vec<String> = names
        .iter()
        .map(|name| {
            let description = quoted(&format!("The tool {name} as it occurs in the imported session."));
            format!(r#"{{"name":"{name}","description":{description},"input_schema":{{"type":"object"}}}}"#)
        })
        .collect();
    blocks::list(schemas.iter().map(String::as_str))
}

/// Tokens that the first response with a usage reports beyond what the session shows before it.
fn unseen(session: &Session<'_>, measure: &dyn Measure) -> u64 {
    let answered = session.steps.iter().enumerate().find_map(|(at, step)| match &step.act {
        Act::Response { response, model, usage, .. } if usage.prompt_tokens() > 0 => {
            Some((at, response, model, usage.prompt_tokens()))
        }
        _ => None,
    });
    let Some((at, response, model, prompt_tokens)) = answered else { return 0 };
    let before = &session.steps[..at];
    let start = before.iter().rposition(|step| matches!(step.act, Act::Boundary(_))).unwrap_or(0);
    let mut seen: f64 = session.system.iter().map(|text| measure.text(model, text)).sum();
    for step in &before[start..] {
        let content = match &step.act {
            // What follows the first record of a response was not part of its prompt.
            Act::Assistant { response: of, .. } if of == response => break,
            Act::Assistant { content, .. } | Act::User { content, .. } | Act::Attachment { content, .. } => {
                content
            }
            Act::Boundary(boundary) => &boundary.summary,
            _ => continue,
        };
        seen += measured(content, model, measure);
    }
    prompt_tokens.saturating_sub(seen.max(0.0).ceil() as u64)
}

fn measured(content: &str, model: &str, measure: &dyn Measure) -> f64 {
    let of_block = |(block, raw): (blocks::Block<'_>, &str)| match block.kind {
        BlockType::Text => block.text.and_then(unescape).map_or(0.0, |text| measure.text(model, &text)),
        BlockType::Image | BlockType::Document => MEDIA_TOKENS,
        _ => measure.json(model, raw),
    };
    blocks::scan(content).into_iter().zip(blocks::raw_blocks(content)).map(of_block).sum()
}

/// A number that follows from all bytes of the source, on every machine the same. Four words at a time, each in a
/// lane of its own.
fn fingerprint(source: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(ODD).rotate_left(29);
    let mut lanes = [1u64, 2, 3, 4];
    let (words, rest) = source.as_chunks::<8>();
    let (groups, single) = words.as_chunks::<4>();
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let hash = lanes.into_iter().fold(source.len() as u64, mix);
    let hash = single.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let source = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ!";
        for at in 0..source.len() {
            let mut other = *source;
            other[at] ^= 1;
            assert_ne!(fingerprint(source), fingerprint(&other));
        }
    }
}
