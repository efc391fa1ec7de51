//! Why reads from the cache fell from one request to the next (§5.11).

use pal_model::{Block, BlockType, BreakCause, CacheBreak, Caching, Card, Role, Timestamp, Usage};
use pal_view::{CacheLifetime, Spot};
use smol_str::SmolStr;

use crate::cache::compare::{Asked, difference};
use crate::price::price_of_break;

/// A fall of the reads counts from this share of the earlier ones on …
const SHARE_LEAST: f64 = 0.05;
/// … and from so many tokens on.
const TOKENS_LEAST: u64 = 2_000;

/// What announces a fall where the model itself leaves the thinking of earlier turns out.
const FORGOTTEN_THINKING: &str = "forgotten_thinking";

/// By how many tokens reads fell from one request to the next; none if by too few to speak of.
pub fn reads_fell(before: u64, now: u64) -> Option<u64> {
    let fell = before.saturating_sub(now);
    (fell > TOKENS_LEAST && fell as f64 > SHARE_LEAST * before as f64).then_some(fell)
}

/// A request that was answered, for comparing the next one with.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// When it started.
    pub started: Timestamp,
    /// For how long what it wrote is kept.
    pub lifetime_ms: u64,
    /// Tokens that it read.
    pub read: u64,
}

/// For how long what a request writes is kept: for as long as its marks say, or where the provider decides, for the time
/// that its documents name.
pub fn kept_ms(card: &Card, lifetime: CacheLifetime) -> u64 {
    const MINUTE_MS: u64 = 60_000;
    match card.caching {
        Caching::Marks => lifetime.milliseconds(),
        Caching::Automatic => 10 * MINUTE_MS,
        Caching::Breakpoints => 30 * MINUTE_MS,
    }
}

/// What announced that reads would fall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The kind of the decision, `boundary` for a compaction.
    pub what: SmolStr,
}

/// A request whose reads fell, and the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Fall<'a> {
    /// By how many tokens.
    pub tokens: u64,
    /// The request before.
    pub baseline: &'a Baseline,
    /// What it asked.
    pub before: &'a Asked,
    /// What this one asked.
    pub now: &'a Asked,
    /// When this one started.
    pub started: Timestamp,
    /// What it took.
    pub usage: &'a Usage,
    /// What announced it, if something did.
    pub expected: Option<&'a Expected>,
    /// Whether a part of what stands before the messages is not in the transcript.
    pub has_unseen: bool,
    /// What the provider says of it.
    pub provider: Option<&'a SmolStr>,
}

/// The first thing that explains a fall, and what it cost.
pub fn judge(fall: &Fall<'_>, card: &Card) -> CacheBreak {
    CacheBreak {
        tokens: fall.tokens,
        cause: cause(fall, card),
        cost: price_of_break(card, fall.usage, fall.tokens),
        provider: fall.provider.cloned(),
        diff: None,
    }
}

fn cause(fall: &Fall<'_>, card: &Card) -> BreakCause {
    let found = difference(fall.before, fall.now);
    let forgotten = || forgets(fall, card).then(|| SmolStr::new_static(FORGOTTEN_THINKING));
    let what = fall.expected.map(|expected| expected.what.clone()).or_else(forgotten);
    let expected = what.map(|what| BreakCause::Expected { what });
    match (expected, found) {
        // A compaction begins everything anew; other decisions change messages, and what the provider clears of them
        // shows in no byte that we send.
        (Some(expected), found) if is_announced(&expected, found.as_ref()) => expected,
        // That marks last otherwise loses nothing that is still there.
        (_, Some(BreakCause::Lifetimes)) => after_all(fall, card).unwrap_or(BreakCause::Lifetimes),
        (_, Some(found)) => found,
        (_, None) => after_all(fall, card).unwrap_or(BreakCause::Provider),
    }
}

/// Whether the model leaves the thinking of earlier turns out as soon as the user says something new, and the user did
/// since a turn in which it thought: the same bytes are another prompt then.
fn forgets(fall: &Fall<'_>, card: &Card) -> bool {
    if !card.can.forgets_thinking {
        return false;
    }
    let sent = fall.before.request.blocks();
    let (mut role, mut thought, mut is_forgotten) = (None, false, false);
    for (at, (opens, block, _)) in fall.now.request.pieces().enumerate() {
        role = opens.or(role);
        let kind = Block::parse(block.clone()).kind();
        match role {
            Some(Role::User) if kind != BlockType::ToolResult => {
                is_forgotten |= thought && at >= sent;
                thought = false;
            }
            // What was not sent before cannot have been read.
            Some(Role::Assistant) if at < sent => {
                thought |= matches!(kind, BlockType::Thinking | BlockType::RedactedThinking);
            }
            _ => {}
        }
    }
    is_forgotten
}

fn is_announced(expected: &BreakCause, found: Option<&BreakCause>) -> bool {
    let BreakCause::Expected { what } = expected else { return false };
    match found {
        _ if what == "boundary" => true,
        Some(BreakCause::Message { .. } | BreakCause::Edits) => true,
        // A decision that changed no byte explains nothing, unless it is one that shows in none.
        None => ["provider_clear", "cache_edit", FORGOTTEN_THINKING, "compact"].contains(&what.as_str()),
        Some(_) => false,
    }
}

/// What explains a fall where the same was sent.
fn after_all(fall: &Fall<'_>, card: &Card) -> Option<BreakCause> {
    let idle = fall.started.milliseconds().saturating_sub(fall.baseline.started.milliseconds()).max(0) as u64;
    let lifetime_ms = fall.baseline.lifetime_ms;
    if idle >= lifetime_ms {
        return Some(BreakCause::Expired { idle_ms: idle, lifetime_ms });
    }
    if fall.now.request.marks().is_empty() && !fall.before.request.marks().is_empty() {
        return Some(BreakCause::Unmarked);
    }
    if let Some(blocks) = beyond_look_back(fall, card) {
        return Some(BreakCause::LookBack { blocks });
    }
    fall.has_unseen.then_some(BreakCause::Unseen)
}

/// How many blocks lie between the last mark of the request before and the first mark of this one behind it, if the
/// provider does not look back so far.
fn beyond_look_back(fall: &Fall<'_>, card: &Card) -> Option<u64> {
    let blocks = |asked: &Asked| -> Vec<usize> {
        let marks = asked.request.marks().iter();
        marks.filter_map(|mark| if let Spot::Block(at) = mark.spot { Some(at) } else { None }).collect()
    };
    let last = blocks(fall.before).into_iter().max()?;
    let next = blocks(fall.now).into_iter().filter(|at| *at >= last).min()?;
    let far = (next - last) as u64;
    (far >= card.look_back).then_some(far)
}
