//! Token usage of session files, read without importing them.
//!
//! A [`UsageScan`] takes the bytes of a file in order and keeps one [`UsageRow`] for each response. Lines without usage
//! are skipped unparsed, so a scan costs little more than reading the file. The scan of a file that grows continues
//! where it ended: [`UsageScan::push`] consumes whole lines only and says how many bytes it took. Formats that are one
//! JSON object, or rare, are read as a whole ([`UsageScan::is_incremental`]).

mod claude_lines;
mod codex_lines;
mod pal_lines;

use pal_model::{Timestamp, TokenEstimator, Usage};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::Hasher;

use crate::content_blocks;
use crate::import_step::{ImportStep, ParsedSession, StepAction};
use crate::session_format::{SessionFormat, detect};
use crate::{copilot, gemini, mini_swe_agent, pi};

/// Units of an estimate in a token.
const ESTIMATE_UNIT: u32 = 1_024;

/// One response of a session: tokens, time and how far the counts can be trusted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct UsageRow {
    /// Hash of the response's identity, for counting copies once; 0 if it has none.
    pub key: u64,
    /// Time of the response in milliseconds since 1970; 0 if unknown.
    pub at_ms: i64,
    /// Index of the model in [`UsageScan::models`].
    pub model: u16,
    /// Properties of the response.
    pub flags: UsageFlags,
    /// Cache-break cause recorded with the response, as an index into [`RECORDED_CAUSES`] plus 1; 0 for none.
    pub cause: u8,
    /// Uncached prompt tokens.
    pub uncached: u32,
    /// Cache-read tokens.
    pub read: u32,
    /// Cache-write tokens, all TTLs.
    pub written: u32,
    /// Of these, tokens written with a TTL of one hour.
    pub written_1h: u32,
    /// Output tokens as recorded.
    pub output: u32,
    /// Estimated tokens of the content in units of 1/1,024, if the response is not known to be complete.
    pub estimate: u32,
    /// Tokens of the recorded cache break.
    pub break_tokens: u32,
    /// Cost in US dollars recorded at the time, in nano-dollars plus 1; 0 for none.
    pub recorded_cost: u64,
}

/// Properties of a [`UsageRow`], as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UsageFlags(pub u8);

impl UsageFlags {
    /// The transcript has the end of the response, so its output count is final.
    pub const COMPLETE: UsageFlags = UsageFlags(1);
    /// A request of a subagent.
    pub const SUBAGENT: UsageFlags = UsageFlags(2);
    /// Answered by the simulator: no money was spent.
    pub const SIMULATED: UsageFlags = UsageFlags(4);
    /// The first request after a compaction or another announced change of the prompt.
    pub const AFTER_CHANGE: UsageFlags = UsageFlags(8);
    /// A pass that is billed beside the response, such as a compaction by the provider; not a request.
    pub const EXTRA_PASS: UsageFlags = UsageFlags(16);
    /// Written by pal itself.
    pub const OWN: UsageFlags = UsageFlags(32);

    /// Returns true if all bits of `other` are set.
    pub fn has(self, other: UsageFlags) -> bool {
        self.0 & other.0 == other.0
    }

    fn set(&mut self, other: UsageFlags, is_set: bool) {
        if is_set {
            self.0 |= other.0;
        }
    }
}

/// Names of cache-break causes that a log may record, in the order of [`UsageRow::cause`].
pub const RECORDED_CAUSES: [&str; 20] = [
    "expected",
    "model",
    "tool",
    "speed",
    "section",
    "scopes",
    "betas",
    "thinking",
    "effort",
    "tool_choice",
    "edits",
    "member",
    "message",
    "lifetimes",
    "look_back",
    "unmarked",
    "expired",
    "provider",
    "unseen",
    "other",
];

impl UsageRow {
    /// Output tokens: as recorded, or estimated from the content where the transcript has only a placeholder.
    pub fn output_tokens(&self) -> u64 {
        if self.is_estimated() { self.estimated_tokens() } else { u64::from(self.output) }
    }

    /// Tokens that the content needs by estimate.
    fn estimated_tokens(&self) -> u64 {
        u64::from(self.estimate / ESTIMATE_UNIT)
    }

    /// Adds to the estimate of the content; fractions count, since a response has many small parts.
    fn add_estimate(&mut self, tokens: f64) {
        let units = (tokens.max(0.0) * f64::from(ESTIMATE_UNIT)).min(f64::from(u32::MAX));
        self.estimate = self.estimate.saturating_add(units as u32);
    }

    /// Returns true if the recorded output count is a placeholder: far below what the content needs.
    pub fn is_estimated(&self) -> bool {
        const DIFFERENCE_MIN: u64 = 50;
        let enough = u64::from(self.output) * 2 + DIFFERENCE_MIN;
        !self.flags.has(UsageFlags::COMPLETE) && self.has_prompt() && self.estimated_tokens() > enough
    }

    /// Returns true if the prompt size was reported.
    pub fn has_prompt(&self) -> bool {
        self.prompt_tokens() > 0
    }

    /// Prompt tokens of all kinds.
    pub fn prompt_tokens(&self) -> u64 {
        u64::from(self.uncached) + u64::from(self.read) + u64::from(self.written)
    }

    /// Cost in US dollars that was recorded at the time.
    pub fn cost_recorded(&self) -> Option<f64> {
        (self.recorded_cost > 0).then(|| (self.recorded_cost - 1) as f64 / 1e9)
    }

    fn set_tokens(&mut self, usage: &Usage) {
        let small = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        self.uncached = small(usage.input_tokens);
        self.read = small(usage.cache_read_input_tokens);
        self.written = small(usage.cache_creation_input_tokens);
        let long = usage.cache_creation.map_or(0, |written| written.ephemeral_1h_input_tokens);
        self.written_1h = small(long).min(self.written);
        self.output = small(usage.output_tokens);
    }
}

/// Usage of one session file, as far as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageScan {
    /// Format of the file.
    pub format: SessionFormat,
    /// Program that wrote the session: of an imported log, the other agent.
    pub program: String,
    /// The other agent's session id.
    pub foreign_id: Option<String>,
    /// Directory that the session worked in.
    pub cwd: Option<String>,
    /// Models of the rows.
    pub models: Vec<String>,
    /// Responses in file order.
    pub rows: Vec<UsageRow>,
    /// State for continuing.
    pub progress: ScanProgress,
}

/// State that a scan of the rest of a file needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScanProgress {
    /// Bytes consumed: up to the end of the last whole line.
    pub bytes: u64,
    /// Lines that could not be read.
    pub bad_lines: u64,
    /// Model of the next response, where the format states it ahead.
    pub model: String,
    /// Hash of the newest totals, where the format repeats them.
    pub totals: u64,
    /// A compaction or another announced change since the last response.
    pub is_changed: bool,
    /// The newest request was sent by pal itself.
    pub is_own: bool,
}

impl UsageScan {
    /// Starts the scan of a file; `start` is its beginning, at least one line. `None` if no known agent wrote it.
    pub fn start(start: &[u8]) -> Option<UsageScan> {
        Some(UsageScan::new(detect(start)?))
    }

    /// Starts the scan of a file in a known format.
    pub fn new(format: SessionFormat) -> UsageScan {
        UsageScan {
            format,
            program: format.program().to_owned(),
            foreign_id: None,
            cwd: None,
            models: Vec::new(),
            rows: Vec::new(),
            progress: ScanProgress::default(),
        }
    }

    /// Returns true if a file that grew is read from where the scan ended; otherwise it is read as a whole again.
    pub fn is_incremental(&self) -> bool {
        matches!(self.format, SessionFormat::Claude | SessionFormat::Codex | SessionFormat::Palimpsest)
    }

    /// Reads the next bytes of the file and returns how many were consumed: whole lines only, unless `is_end`.
    pub fn push(&mut self, bytes: &[u8], is_end: bool, measure: &dyn TokenEstimator) -> usize {
        if !self.is_incremental() {
            self.read_whole(bytes, measure);
            self.progress.bytes = bytes.len() as u64;
            return bytes.len();
        }
        let end = match memchr::memrchr(b'\n', bytes) {
            _ if is_end => bytes.len(),
            Some(at) => at + 1,
            None => return 0,
        };
        match self.format {
            SessionFormat::Claude => claude_lines::read(self, &bytes[..end], measure),
            SessionFormat::Codex => codex_lines::read(self, &bytes[..end]),
            _ => pal_lines::read(self, &bytes[..end]),
        }
        self.progress.bytes += end as u64;
        end
    }

    fn model_index(&mut self, model: &str) -> u16 {
        let at = self.models.iter().rposition(|known| known == model).unwrap_or_else(|| {
            self.models.push(model.to_owned());
            self.models.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// Adds the passes of a response that are billed beside it.
    fn push_extra_passes(&mut self, row: &UsageRow, usage: &Usage) {
        let passes = usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction");
        for (number, pass) in passes.enumerate() {
            let mut extra = UsageRow {
                key: if row.key == 0 {
                    0
                } else {
                    hash_parts(&[&row.key.to_le_bytes(), &[number as u8 + 1]])
                },
                at_ms: row.at_ms,
                model: row.model,
                flags: UsageFlags(row.flags.0 | UsageFlags::EXTRA_PASS.0 | UsageFlags::COMPLETE.0),
                ..UsageRow::default()
            };
            extra.set_tokens(&Usage {
                input_tokens: pass.input_tokens,
                cache_creation_input_tokens: pass.cache_creation_input_tokens,
                cache_read_input_tokens: pass.cache_read_input_tokens,
                output_tokens: pass.output_tokens,
                ..Usage::default()
            });
            if !self.rows.iter().rev().take(16).any(|known| known.key != 0 && known.key == extra.key) {
                self.rows.push(extra);
            }
        }
    }

    /// Reads a whole file with the importer of its format.
    fn read_whole(&mut self, source: &[u8], measure: &dyn TokenEstimator) {
        self.rows.clear();
        self.models.clear();
        let parsed = match self.format {
            SessionFormat::Pi => pi::read(source, false),
            SessionFormat::Copilot => copilot::read(source, false),
            SessionFormat::Gemini => gemini::read(source, false),
            SessionFormat::MiniSweAgent => Ok(mini_swe_agent::read(source)),
            SessionFormat::Claude | SessionFormat::Codex | SessionFormat::Palimpsest => return,
        };
        // Reading is not strict, so it does not fail.
        if let Ok(session) = parsed {
            self.take_session(&session, measure);
        }
    }

    fn take_session(&mut self, session: &ParsedSession<'_>, measure: &dyn TokenEstimator) {
        self.foreign_id.clone_from(&session.about.foreign_id);
        self.cwd.clone_from(&session.about.cwd);
        let mut contents: FxHashMap<&str, f64> = FxHashMap::default();
        let mut is_changed = false;
        for step in &session.steps {
            match &step.act {
                StepAction::Boundary(_) => is_changed = true,
                StepAction::Assistant { response, model, content, .. } => {
                    *contents.entry(response).or_default() +=
                        content_blocks::estimate(content, model, measure);
                }
                StepAction::Response { .. } => {
                    let row = self.imported_row(step, &contents, is_changed);
                    self.rows.extend(row);
                    is_changed = false;
                }
                _ => {}
            }
        }
    }

    fn imported_row(
        &mut self,
        step: &ImportStep<'_>,
        contents: &FxHashMap<&str, f64>,
        is_changed: bool,
    ) -> Option<UsageRow> {
        let StepAction::Response { response, model, usage, stop_reason } = &step.act else { return None };
        let session = self.foreign_id.clone().unwrap_or_default();
        let estimated = contents.get(response.as_ref()).copied().unwrap_or(0.0);
        let mut row = UsageRow {
            key: match session.is_empty() {
                true => 0,
                false => hash_parts(&[self.program.as_bytes(), session.as_bytes(), response.as_bytes()]),
            },
            at_ms: step.at.map_or(0, Timestamp::milliseconds),
            model: self.model_index(model),
            ..UsageRow::default()
        };
        row.add_estimate(estimated);
        row.flags.set(UsageFlags::COMPLETE, stop_reason.is_some());
        row.flags.set(UsageFlags::AFTER_CHANGE, is_changed);
        row.set_tokens(usage);
        Some(row)
    }
}

/// Rows of one file by key, while it is read.
struct RowsByKey {
    at: FxHashMap<u64, usize>,
    /// Records already counted, by hash of their ids: a resumed session may repeat them.
    records: FxHashSet<u64>,
}

impl RowsByKey {
    fn of(rows: &[UsageRow]) -> RowsByKey {
        let keyed = rows.iter().enumerate().filter(|(_, row)| row.key != 0);
        RowsByKey { at: keyed.map(|(at, row)| (row.key, at)).collect(), records: FxHashSet::default() }
    }
}

/// Hashes byte strings, never to 0. Equal on every machine of this program's version; used in an index that names its
/// version.
fn hash_parts(parts: &[&[u8]]) -> u64 {
    let mut hasher = FxHasher::default();
    for part in parts {
        hasher.write(part);
        hasher.write_usize(part.len());
    }
    hasher.finish().max(1)
}

/// Calls `each` with every non-blank line.
fn for_each_line<'a>(bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) {
    let mut from = 0;
    while from < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at);
        let line = bytes[from..end].trim_ascii();
        from = end + 1;
        if !line.is_empty() {
            each(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Quarters;

    impl TokenEstimator for Quarters {
        fn text(&self, _model: &str, text: &str) -> f64 {
            text.len() as f64 / 4.0
        }
        fn json(&self, _model: &str, json: &str) -> f64 {
            json.len() as f64 / 4.0
        }
    }

    fn assistant(uuid: &str, id: &str, usage: &str, stop: &str, text: &str) -> String {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","sessionId":"s","cwd":"/src/app","timestamp":"2026-11-15T09:00:00.000Z","requestId":"r-{id}","message":{{"id":"{id}","role":"assistant","model":"claude-opus-5","stop_reason":{stop},"usage":{usage},"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ) + "\n"
    }

    fn scan(source: &str) -> UsageScan {
        let mut scan = UsageScan::start(source.as_bytes()).unwrap();
        scan.push(source.as_bytes(), true, &Quarters);
        scan
    }

    #[test]
    fn a_response_split_over_lines_counts_once_with_its_final_figures() {
        let early = r#"{"input_tokens":3,"cache_read_input_tokens":100,"output_tokens":1}"#;
        let last = r#"{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_1h_input_tokens":20},"output_tokens":77}"#;
        let source = assistant("u1", "m1", early, "null", "a")
            + &assistant("u2", "m1", last, "\"end_turn\"", "b")
            + &assistant("u2", "m1", last, "\"end_turn\"", "b")
            + &assistant("u3", "m2", early, "null", "c");
        let scan = scan(&source);
        assert_eq!(scan.rows.len(), 2);
        let row = &scan.rows[0];
        assert_eq!((row.uncached, row.read, row.written, row.written_1h, row.output), (3, 100, 50, 20, 77));
        assert!(row.flags.has(UsageFlags::COMPLETE) && !row.is_estimated());
        assert_eq!((scan.cwd.as_deref(), scan.foreign_id.as_deref()), (Some("/src/app"), Some("s")));
    }

    #[test]
    fn a_placeholder_is_replaced_by_an_estimate_of_the_content() {
        let usage = r#"{"input_tokens":3,"output_tokens":1}"#;
        let rows = scan(&assistant("u1", "m1", usage, "null", &"word ".repeat(200))).rows;
        assert!(rows[0].is_estimated() && rows[0].output_tokens() >= 240, "{rows:?}");
        let rows = scan(&assistant("u1", "m1", usage, "\"end_turn\"", &"word ".repeat(200))).rows;
        assert_eq!(rows[0].output_tokens(), 1);
    }

    #[test]
    fn a_scan_in_pieces_equals_a_scan_at_once() {
        let usage = r#"{"input_tokens":3,"cache_read_input_tokens":9000,"output_tokens":10}"#;
        let source = assistant("u1", "m1", usage, "null", "a")
            + r#"{"type":"system","subtype":"compact_boundary","uuid":"b","sessionId":"s"}"#
            + "\n"
            + &assistant("u2", "m2", usage, "null", &"long ".repeat(100))
            + &assistant("u3", "m2", usage, "null", &"long ".repeat(100));
        let whole = scan(&source);
        assert!(whole.rows[1].flags.has(UsageFlags::AFTER_CHANGE));
        for cut in 1..source.len() {
            let mut pieces = UsageScan::new(SessionFormat::Claude);
            let taken = pieces.push(&source.as_bytes()[..cut], false, &Quarters);
            pieces.push(&source.as_bytes()[taken..], true, &Quarters);
            assert_eq!(pieces.rows, whole.rows, "cut at {cut}");
        }
    }

    #[test]
    fn codex_counts_follow_the_totals_and_the_model_of_the_turn() {
        let count = |total: u64, input: u64| {
            format!(
                r#"{{"timestamp":"2026-07-01T10:00:0{total}.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total}}},"last_token_usage":{{"input_tokens":{input},"cached_input_tokens":4,"output_tokens":5}}}}}}}}"#
            ) + "\n"
        };
        let model = |name: &str| {
            format!(
                r#"{{"timestamp":"2026-07-01T10:00:00.000Z","type":"turn_context","payload":{{"model":"{name}"}}}}"#
            ) + "\n"
        };
        let source = model("gpt-5.5") + &count(1, 10) + &count(1, 10) + &model("gpt-5.6-sol") + &count(2, 20);
        let scan = scan(&source);
        let rows: Vec<_> = scan
            .rows
            .iter()
            .map(|row| (row.uncached, row.read, scan.models[row.model as usize].as_str()))
            .collect();
        assert_eq!(rows, [(6, 4, "gpt-5.5"), (16, 4, "gpt-5.6-sol")]);
        let unpriced = pal_model::ModelCatalog::built_in().find("gpt-5.3-codex-spark").card;
        assert_eq!(unpriced.prices, None, "a preview without a published price");
    }

    #[test]
    fn damaged_lines_are_counted_and_skipped() {
        let usage = r#"{"input_tokens":3,"output_tokens":10}"#;
        let mut source = assistant("u1", "m1", usage, "null", "a");
        source.push_str("{\"type\":\"assistant\",\"message\":{\"usage\":{\"input\n");
        source.push_str(&assistant("u2", "m2", usage, "null", "a"));
        let scan = scan(&source);
        assert_eq!((scan.rows.len(), scan.progress.bad_lines), (2, 1));
    }
}
