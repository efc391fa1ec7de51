//! Causes of cache-read drops between two requests (§5.11).

use pal_model::{
    BlockType, BreakCause, CacheBreak, CacheMode, ContentBlock, ModelCard, Role, Timestamp, Usage,
};
use pal_view::{BreakpointPosition, CacheTtl};
use smol_str::SmolStr;

use crate::break_cost::price_of_break;
use crate::cache::request_comparison::{SentRequest, find_differences};

/// Minimum drop, as a share of the previous reads.
const SHARE_MIN: f64 = 0.05;
/// Minimum drop in tokens.
const TOKENS_MIN: u64 = 2_000;

/// Maximum causes besides the first; the stored diff shows everything.
const ALSO_MAX: usize = 7;

/// Decisions that explain a drop although no byte of the request changed.
const CHANGES_NO_BYTE: [&str; 4] = ["provider_clear", "cache_edit", FORGOTTEN_THINKING, "compact"];

/// Expected cause where the model itself leaves out the thinking of earlier turns.
const FORGOTTEN_THINKING: &str = "forgotten_thinking";

/// Returns the drop in cache reads between two requests, in tokens; `None` if it is too small to count.
pub fn cache_read_drop(before: u64, now: u64) -> Option<u64> {
    let fell = before.saturating_sub(now);
    (fell > TOKENS_MIN && fell as f64 > SHARE_MIN * before as f64).then_some(fell)
}

/// The previous answered request, as a baseline.
#[derive(Clone, Debug)]
pub struct CacheBaseline {
    /// Start time.
    pub started: Timestamp,
    /// Time to live of its cache writes, in milliseconds.
    pub ttl_ms: u64,
    /// Tokens read from the cache.
    pub read: u64,
}

/// Time to live of a request's cache writes in milliseconds: the TTL of its breakpoints, or the documented
/// time of a provider that decides itself.
pub fn cache_ttl_ms(card: &ModelCard, ttl: CacheTtl) -> u64 {
    const MINUTE_MS: u64 = 60_000;
    match card.caching {
        CacheMode::Explicit => ttl.milliseconds(),
        CacheMode::Automatic => 10 * MINUTE_MS,
        CacheMode::Hybrid => 30 * MINUTE_MS,
    }
}

/// A decision that makes a drop expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedDrop {
    /// The kind of the decision, `boundary` for a compaction.
    pub kind: SmolStr,
}

/// A request with a cache-read drop, and the one before it.
#[derive(Clone, Copy, Debug)]
pub struct CacheReadDrop<'a> {
    /// Size of the drop in tokens.
    pub tokens: u64,
    /// Baseline of the previous request.
    pub baseline: &'a CacheBaseline,
    /// The previous request.
    pub before: &'a SentRequest,
    /// This request.
    pub now: &'a SentRequest,
    /// Start time of this request.
    pub started: Timestamp,
    /// Reported usage of this request.
    pub usage: &'a Usage,
    /// The decision that makes it expected, if any.
    pub expected: Option<&'a ExpectedDrop>,
    /// True if part of the prefix is missing from the transcript.
    pub has_unseen: bool,
    /// The provider's own diagnosis.
    pub provider: Option<&'a SmolStr>,
}

/// Determines the causes of a drop, and its cost.
pub fn diagnose_drop(fall: &CacheReadDrop<'_>, card: &ModelCard) -> CacheBreak {
    let mut causes = causes(fall, card).into_iter();
    CacheBreak {
        tokens: fall.tokens,
        cause: causes.next().unwrap_or(BreakCause::Provider),
        also: causes.take(ALSO_MAX).collect(),
        cost: price_of_break(card, fall.usage, fall.tokens),
        provider: fall.provider.cloned(),
        diff: None,
    }
}

/// All causes of a drop, the first that explains it first.
fn causes(fall: &CacheReadDrop<'_>, card: &ModelCard) -> Vec<BreakCause> {
    let forgotten = || forgets(fall, card).then(|| SmolStr::new_static(FORGOTTEN_THINKING));
    let expected = fall.expected.map(|expected| expected.kind.clone()).or_else(forgotten);
    let mut found = find_differences(fall.before, fall.now);
    if let Some(what) = expected {
        // A compaction replaces everything.
        if what == "boundary" || (found.is_empty() && CHANGES_NO_BYTE.contains(&what.as_str())) {
            return vec![BreakCause::Expected { what }];
        }
        // Other decisions change messages, or the edits that the provider makes.
        let count = found.len();
        found.retain(|cause| !matches!(cause, BreakCause::Message { .. } | BreakCause::Edits));
        if found.len() < count {
            found.push(BreakCause::Expected { what });
        }
    }
    // A changed TTL loses no existing cache entry.
    let is_ttl_only = found == [BreakCause::CacheTtl];
    if found.is_empty() || is_ttl_only {
        let cause = cause_without_change(fall, card);
        return vec![cause.or(found.pop()).unwrap_or(BreakCause::Provider)];
    }
    found.retain(|cause| *cause != BreakCause::CacheTtl);
    if !found[0].is_expected() {
        found.extend(expiry(fall));
    }
    found
}

/// Returns true if the model drops the thinking of earlier turns when the user speaks, and the user did so
/// since a turn with thinking: then the same bytes are another prompt.
fn forgets(fall: &CacheReadDrop<'_>, card: &ModelCard) -> bool {
    if !card.can.forgets_thinking {
        return false;
    }
    let sent = fall.before.request.block_count();
    let (mut role, mut thought, mut is_forgotten) = (None, false, false);
    for (at, (opens, block, _)) in fall.now.request.pieces().enumerate() {
        role = opens.or(role);
        let kind = ContentBlock::parse(block.clone()).kind();
        match role {
            Some(Role::User) if kind != BlockType::ToolResult => {
                is_forgotten |= thought && at >= sent;
                thought = false;
            }
            // Content that was not sent before cannot have been read.
            Some(Role::Assistant) if at < sent => {
                thought |= matches!(kind, BlockType::Thinking | BlockType::RedactedThinking);
            }
            _ => {}
        }
    }
    is_forgotten
}

/// The expiry of the previous request's cache entries, if they had expired.
fn expiry(fall: &CacheReadDrop<'_>) -> Option<BreakCause> {
    let idle = fall.started.milliseconds().saturating_sub(fall.baseline.started.milliseconds()).max(0) as u64;
    let lifetime_ms = fall.baseline.ttl_ms;
    (idle >= lifetime_ms).then_some(BreakCause::Expired { idle_ms: idle, lifetime_ms })
}

/// Causes of a drop when the same content was sent.
fn cause_without_change(fall: &CacheReadDrop<'_>, card: &ModelCard) -> Option<BreakCause> {
    if let Some(expired) = expiry(fall) {
        return Some(expired);
    }
    if fall.now.request.breakpoints().is_empty() && !fall.before.request.breakpoints().is_empty() {
        return Some(BreakCause::NoBreakpoint);
    }
    if let Some(blocks) = beyond_look_back(fall, card) {
        return Some(BreakCause::LookBack { blocks });
    }
    fall.has_unseen.then_some(BreakCause::Unseen)
}

/// Number of blocks between the last breakpoint of the previous request and the next one of this request, if
/// the provider does not look back that far.
fn beyond_look_back(fall: &CacheReadDrop<'_>, card: &ModelCard) -> Option<u64> {
    let blocks = |asked: &SentRequest| -> Vec<usize> {
        let marks = asked.request.breakpoints().iter();
        marks
            .filter_map(
                |mark| if let BreakpointPosition::Block(at) = mark.position { Some(at) } else { None },
            )
            .collect()
    };
    let last = blocks(fall.before).into_iter().max()?;
    let next = blocks(fall.now).into_iter().filter(|at| *at >= last).min()?;
    let far = (next - last) as u64;
    (far >= card.look_back).then_some(far)
}
