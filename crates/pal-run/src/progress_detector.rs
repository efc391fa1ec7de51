//! Detector of turns without progress, which stops loops caused by a model, a hook or a server.
//!
//! Progress is a call never made before, a new result of a call, or visible text never said before. Two
//! counters watch it, each reset by its own kind of progress:
//!
//! - **stalled turns** count consecutive answers that brought nothing new at all: the same call with the same
//!   result (or A, B, A, B, …), an empty answer, only thinking, the same text again, a `pause_turn` without content;
//! - **fruitless turns** count consecutive answers without a successful call that had a new result: calls
//!   that are refused or fail under ever new names, pauses with ever new content, text between repetitions.
//!
//! Before a limit is reached, requests are slowed down and the model is told once that it repeats itself. A
//! call that ran for [`SLOW_CALL`] or longer slows the loop by itself, so waiting for a long command is no
//! stall.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use pal_model::{BlockType, ContentBlock, ToolUseId};

/// Stalled turns before requests are slowed down.
const STALLED_BEFORE_BACKOFF: u64 = 3;

/// Fruitless turns before requests are slowed down.
const FRUITLESS_BEFORE_BACKOFF: u64 = 10;

/// Wait after the first slowed turn; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Maximum wait for stalled turns.
const STALLED_WAIT_MAX: Duration = Duration::from_secs(30);

/// Maximum wait for fruitless turns, which may be many.
const FRUITLESS_WAIT_MAX: Duration = Duration::from_secs(5);

/// Running time from which a repeated call counts as waiting, not as a stall.
const SLOW_CALL: Duration = Duration::from_secs(5);

/// Maximum characters of a call or error quoted to the user.
const QUOTED_CHARS: usize = 120;

/// Limits on turns without progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgressLimits {
    /// Consecutive answers without anything new, after which the run ends.
    pub stalled_turns_max: u64,
    /// Consecutive answers without a successful new result, after which the run ends.
    pub fruitless_turns_max: u64,
}

impl ProgressLimits {
    /// 8 stalled turns, 50 fruitless ones.
    pub const STANDARD: ProgressLimits = ProgressLimits { stalled_turns_max: 8, fruitless_turns_max: 50 };
}

/// Verdict on the turn that has just ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProgressVerdict {
    /// Continue.
    GoOn,
    /// Continue after a wait.
    BackOff {
        /// Wait before the next request.
        wait: Duration,
        /// Reason, one line for the user.
        reason: String,
        /// Text for the model; once per streak, and only after calls.
        advice: Option<String>,
    },
    /// End the run. The text says what repeated, how often, and what to do.
    Stop(String),
}

/// Detects turns without progress. Feed it every answer and result, then ask for a verdict before the next
/// request.
#[derive(Clone, Debug)]
pub(crate) struct ProgressDetector {
    limits: ProgressLimits,
    /// Calls by hash, with their count and results.
    calls: BTreeMap<u64, CallHistory>,
    /// Hashes of texts said so far.
    texts: BTreeSet<u64>,
    stalled: u64,
    fruitless: u64,
    is_advised: bool,
    turn: Option<TurnEvidence>,
    /// Description of what repeated in the last counted turn.
    repeats: String,
}

#[derive(Clone, Debug, Default)]
struct CallHistory {
    made: u64,
    results: BTreeSet<u64>,
}

/// Evidence of one turn.
#[derive(Clone, Debug, Default)]
struct TurnEvidence {
    /// Calls of the answer: id, hash, quotation.
    calls: Vec<(ToolUseId, u64, String)>,
    has_news: bool,
    is_fruitful: bool,
    has_waited: bool,
    /// Description of what repeats.
    repeats: String,
}

impl ProgressDetector {
    /// Creates a detector that has seen nothing.
    pub(crate) fn new(limits: ProgressLimits) -> ProgressDetector {
        ProgressDetector {
            limits,
            calls: BTreeMap::new(),
            texts: BTreeSet::new(),
            stalled: 0,
            fruitless: 0,
            is_advised: false,
            turn: None,
            repeats: String::new(),
        }
    }

    /// Forgets everything, after a message of the user.
    pub(crate) fn reset(&mut self) {
        *self = ProgressDetector::new(self.limits);
    }

    /// Records a message of another agent. Only a new one counts as progress, so that two agents cannot keep
    /// each other going with the same text.
    pub(crate) fn note_message(&mut self, text: &str) {
        if self.texts.insert(hash(&("message", without_digits(text)))) {
            (self.stalled, self.fruitless, self.is_advised, self.turn) = (0, 0, false, None);
        }
    }

    /// Records an answer of the model: blocks, calls and stop reason.
    pub(crate) fn note_answer<'a, N: AsRef<str>>(
        &mut self,
        blocks: &[ContentBlock],
        calls: impl Iterator<Item = (&'a ToolUseId, N, &'a str)>,
        stop_reason: Option<&str>,
    ) {
        let text = visible_text(blocks);
        let mut turn =
            TurnEvidence { repeats: describe_answer(blocks, &text, stop_reason), ..TurnEvidence::default() };
        if !text.is_empty() {
            turn.has_news |= self.texts.insert(hash(&("text", without_digits(&text))));
        }
        for (id, name, input) in calls {
            let name = name.as_ref();
            let key = hash(&(name, input));
            let history = self.calls.entry(key).or_default();
            history.made += 1;
            turn.has_news |= history.made == 1;
            turn.calls.push((id.clone(), key, quote(&format!("{name} {input}"))));
        }
        // Results of the provider's own tools are part of the answer.
        for block in blocks.iter().filter(|block| is_server_side(block.kind())) {
            turn.has_news |= self.texts.insert(hash(&("server", without_id(block))));
        }
        self.turn = Some(turn);
    }

    /// Records the result and running time of a call of the last answer.
    pub(crate) fn note_result(&mut self, call: &ToolUseId, text: &str, is_error: bool, took: Duration) {
        let Some(turn) = &mut self.turn else { return };
        let Some((_, key, quoted)) = turn.calls.iter().find(|(id, ..)| id == call) else { return };
        // A result may contain its call id, for instance in a path.
        let text = text.replace(call.as_str(), "");
        // In errors, times and numbers do not count: the failure is the same.
        let result =
            if is_error { hash(&("error", without_digits(&text))) } else { hash(&("result", text.as_str())) };
        let history = self.calls.entry(*key).or_default();
        let is_new = history.results.insert(result);
        turn.has_news |= is_new;
        turn.is_fruitful |= is_new && !is_error;
        turn.has_waited |= took >= SLOW_CALL;
        if !is_new {
            let outcome = match is_error {
                true => format!("failed each time with \"{}\"", quote(&text)),
                false => String::from("had the same result"),
            };
            turn.repeats = format!("`{quoted}` was called {} times and {outcome}", history.made);
        } else if is_error {
            turn.repeats = format!("`{quoted}` failed with \"{}\"", quote(&text));
        }
    }

    /// Judges the turn since the last verdict, before the next request.
    pub(crate) fn judge_turn(&mut self) -> ProgressVerdict {
        let turn = self.turn.take();
        if let Some(turn) = &turn {
            self.count(turn);
        }
        let (stalled, fruitless) = (self.stalled, self.fruitless);
        if stalled >= self.limits.stalled_turns_max {
            return ProgressVerdict::Stop(format!(
                "no progress in {stalled} turns in a row: {}. Change the prompt or allow what is refused, then go on \
                 with --continue; max_stalled_turns sets the limit",
                self.repeats
            ));
        }
        if fruitless >= self.limits.fruitless_turns_max {
            return ProgressVerdict::Stop(format!(
                "no new result in {fruitless} turns in a row; the last of them: {}. Change the prompt or allow what is \
                 refused, then go on with --continue; max_fruitless_turns sets the limit",
                self.repeats
            ));
        }
        let Some(turn) = turn else { return ProgressVerdict::GoOn };
        let waits = [
            wait(stalled, STALLED_BEFORE_BACKOFF, STALLED_WAIT_MAX),
            wait(fruitless, FRUITLESS_BEFORE_BACKOFF, FRUITLESS_WAIT_MAX),
        ];
        let Some(wait) = waits.into_iter().flatten().max() else { return ProgressVerdict::GoOn };
        let advise = stalled > 0 && !turn.calls.is_empty() && !std::mem::replace(&mut self.is_advised, true);
        ProgressVerdict::BackOff {
            wait,
            reason: format!("no progress in {} turns: {}", stalled.max(fruitless), turn.repeats),
            advice: advise.then(|| {
                format!(
                    "You repeat yourself: {}. Repeating it will not change the result. Do something else, or say what \
                     keeps you from going on and stop.",
                    turn.repeats
                )
            }),
        }
    }
}

impl ProgressDetector {
    fn count(&mut self, turn: &TurnEvidence) {
        if turn.has_news {
            (self.stalled, self.is_advised) = (0, false);
        } else if !turn.has_waited {
            self.stalled += 1;
        }
        self.fruitless = if turn.is_fruitful { 0 } else { self.fruitless + 1 };
        self.repeats.clone_from(&turn.repeats);
    }
}

/// Wait after this number of turns; none up to `before`.
fn wait(turns: u64, before: u64, most: Duration) -> Option<Duration> {
    let doublings = turns.checked_sub(before)?;
    let factor = 1_u32.checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
    Some(FIRST_WAIT.saturating_mul(factor).min(most))
}

fn visible_text(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Describes an answer without repeated calls.
fn describe_answer(blocks: &[ContentBlock], text: &str, stop_reason: Option<&str>) -> String {
    let what = match (text.is_empty(), blocks.is_empty()) {
        (false, _) => format!("the model said \"{}\"", quote(text)),
        (true, true) => String::from("the answer was empty"),
        (true, false) => String::from("the answer had no text and no call"),
    };
    match stop_reason {
        Some(reason) if reason != "end_turn" => format!("{what} (stop reason {reason})"),
        _ => what,
    }
}

/// Reports whether a block belongs to a tool that the provider runs itself.
fn is_server_side(kind: BlockType) -> bool {
    !matches!(
        kind,
        BlockType::Text
            | BlockType::Thinking
            | BlockType::RedactedThinking
            | BlockType::Reasoning
            | BlockType::ToolUse
    )
}

/// JSON of a block without its own id, which always differs.
fn without_id(block: &ContentBlock) -> String {
    let raw = block.raw().as_str();
    let ids = ["id", "tool_use_id"].into_iter().filter_map(|name| block.string(name));
    ids.fold(raw.to_owned(), |raw, id| raw.replace(id.as_ref(), ""))
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// Start of a text, on one line.
fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
