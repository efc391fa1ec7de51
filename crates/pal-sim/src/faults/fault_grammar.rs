//! Grammar of a fault plan: `KIND[=ARGUMENT+…][@REQUESTS][:PROBABILITY]`, separated by commas.

use std::ops::RangeInclusive;
use std::time::Duration;

use pal_wire::ApiErrorKind;

use pal_model::did_you_mean;

/// One fault and the requests it applies to.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub kind: FaultKind,
    /// Request numbers, counted from 1; empty for all requests.
    pub requests: Vec<RangeInclusive<u64>>,
    pub probability: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FaultKind {
    Status {
        status: u16,
        wait: RetryHint,
        should_retry: Option<bool>,
    },
    SpendLimit,
    /// With `started`, the refusal follows the start of a streamed answer.
    TooLong {
        have: u64,
        limit: u64,
        started: bool,
    },
    Reset,
    Cut(FaultPoint),
    Truncate(FaultPoint),
    Silence {
        at: FaultPoint,
        length: Option<Duration>,
    },
    Split(Option<usize>),
    Merge {
        all: bool,
    },
    Crlf,
    Slow {
        gap: Duration,
        size: Option<usize>,
    },
    Malformed(FaultPoint),
    Error {
        kind: ApiErrorKind,
        at: FaultPoint,
    },
    Usage(UsageFault),
    Duplicate(Option<String>),
    Unknown,
    ContentType(String),
}

impl FaultKind {
    /// Order in which the faults of one reply are applied: events, bytes, chunks, timing, endings.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            FaultKind::Usage(_) | FaultKind::Duplicate(_) | FaultKind::Unknown => 0,
            FaultKind::Malformed(_) | FaultKind::Error { .. } => 1,
            FaultKind::Crlf => 2,
            FaultKind::Merge { .. } | FaultKind::Split(_) => 3,
            FaultKind::Slow { .. } => 4,
            _ => 5,
        }
    }
}

/// Retry delay announced to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryHint {
    /// The default of the status.
    StatusDefault,
    /// No retry header.
    Omitted,
    /// This delay.
    For(Duration),
}

/// Position of a fault in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultPoint {
    /// Before the first byte of the body.
    Headers,
    /// Before the first content.
    Before,
    /// After the first content.
    After,
    /// Before the last event.
    End,
    /// A random byte.
    Random,
    /// Before this byte, counted from 0.
    Byte(usize),
}

/// Kind of wrong usage counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageFault {
    Zero,
    Null,
    Huge,
    Missing,
    /// No count is larger.
    AtMost(u64),
}

/// A fault plan that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault `{part}`: {problem}")]
pub struct FaultError {
    /// Invalid part of the plan.
    pub part: String,
    /// Description of the error and of the accepted syntax.
    pub problem: String,
}

/// Fault names besides statuses.
const KINDS: [&str; 17] = [
    "content-type",
    "crlf",
    "cut",
    "duplicate",
    "error",
    "malformed",
    "merge",
    "reset",
    "silence",
    "slow",
    "spend-limit",
    "split",
    "status",
    "too-long",
    "truncate",
    "unknown",
    "usage",
];
const PLACES: [&str; 5] = ["headers", "before", "after", "end", "random"];
const ERRORS: [ApiErrorKind; 5] = [
    ApiErrorKind::Overloaded,
    ApiErrorKind::Api,
    ApiErrorKind::RateLimit,
    ApiErrorKind::Timeout,
    ApiErrorKind::InvalidRequest,
];

impl Fault {
    /// Parses one part of a plan.
    pub(crate) fn parse(part: &str) -> Result<Fault, FaultError> {
        read(part).map_err(|problem| FaultError { part: part.to_owned(), problem })
    }

    /// True if the fault applies to this request, counted from 1.
    pub(crate) fn applies_to(&self, number: u64) -> bool {
        self.requests.is_empty() || self.requests.iter().any(|range| range.contains(&number))
    }
}

fn read(part: &str) -> Result<Fault, String> {
    let mut rest = part;
    let mut next = || {
        let end = rest.char_indices().skip(1).find(|(_, letter)| "=@:".contains(*letter));
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    };
    let name = next().unwrap_or_default();
    let (mut arguments, mut requests, mut probability) = (None, None, None);
    while let Some(piece) = next() {
        let mut letters = piece.chars();
        let slot = match letters.next() {
            Some('=') => &mut arguments,
            Some('@') => &mut requests,
            _ => &mut probability,
        };
        if slot.replace(letters.as_str().trim()).is_some() {
            return Err("use `=`, `@` and `:` once each at most".to_owned());
        }
    }
    let words: Vec<&str> =
        arguments.map(|words| words.split('+').map(str::trim).collect()).unwrap_or_default();
    Ok(Fault {
        kind: kind(name.trim(), FaultArguments::new(words))?,
        requests: requests.map_or(Ok(Vec::new()), ranges)?,
        probability: probability.map_or(Ok(1.0), share)?,
    })
}

/// Parses `2`, `1-3`, `5-`, or several joined with `+`.
fn ranges(text: &str) -> Result<Vec<RangeInclusive<u64>>, String> {
    let wrong = |range: &str| {
        format!("invalid request range `@{range}`; write `@2`, `@1-3`, `@5-` or `@1-3+7`, counted from 1")
    };
    let range = |range: &str| {
        let (first, last) = match range.split_once('-') {
            None => (range.parse().ok(), range.parse().ok()),
            Some((first, "")) => (first.parse().ok(), Some(u64::MAX)),
            Some((first, last)) => (first.parse().ok(), last.parse().ok()),
        };
        match (first, last) {
            (Some(first), Some(last)) if 0 < first && first <= last => Ok(first..=last),
            _ => Err(wrong(range)),
        }
    };
    text.split('+').map(str::trim).map(range).collect()
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("invalid probability `:{text}`; write a number from 0 to 1, such as `:0.1`"))
}

/// Arguments of a fault; each parser takes the words it accepts, and none may remain.
struct FaultArguments<'a>(Vec<&'a str>);

impl<'a> FaultArguments<'a> {
    fn new(words: Vec<&'a str>) -> FaultArguments<'a> {
        FaultArguments(words)
    }

    /// Removes and returns the first word that `understand` accepts.
    fn take<T>(&mut self, understand: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let (at, value) = self.0.iter().enumerate().find_map(|(at, word)| Some((at, understand(word)?)))?;
        self.0.remove(at);
        Some(value)
    }

    fn place(&mut self, usual: FaultPoint) -> FaultPoint {
        let place = |word: &str| match word {
            "headers" => Some(FaultPoint::Headers),
            "before" => Some(FaultPoint::Before),
            "after" => Some(FaultPoint::After),
            "end" => Some(FaultPoint::End),
            "random" => Some(FaultPoint::Random),
            number => number.parse().ok().map(FaultPoint::Byte),
        };
        self.take(place).unwrap_or(usual)
    }

    fn size(&mut self) -> Option<usize> {
        self.take(|word| word.parse().ok().filter(|size| *size > 0))
    }

    fn length(&mut self) -> Option<Duration> {
        self.take(duration)
    }

    /// Returns the kind if no word remains.
    fn end(self, kind: FaultKind, hint: &str) -> Result<FaultKind, String> {
        match self.0.first() {
            None => Ok(kind),
            Some(word) => Err(format!("unexpected argument `{word}`; {hint}")),
        }
    }
}

fn kind(name: &str, mut words: FaultArguments<'_>) -> Result<FaultKind, String> {
    if let Ok(status) = name.parse::<u16>() {
        return status_kind(status, words);
    }
    let places = format!("a position is a byte or one of {}", PLACES.join(", "));
    match name {
        "spend-limit" => words.end(FaultKind::SpendLimit, "it takes no argument"),
        "reset" => words.end(FaultKind::Reset, "it takes no argument"),
        "crlf" => words.end(FaultKind::Crlf, "it takes no argument"),
        "unknown" => words.end(FaultKind::Unknown, "it takes no argument"),
        "too-long" => too_long(words),
        "cut" => {
            let at = words.place(FaultPoint::Random);
            words.end(FaultKind::Cut(at), &places)
        }
        "truncate" => {
            let at = words.place(FaultPoint::Random);
            words.end(FaultKind::Truncate(at), &places)
        }
        "malformed" => {
            let at = words.place(FaultPoint::Random);
            words.end(FaultKind::Malformed(at), &places)
        }
        "silence" => {
            let length = words.length();
            let at = words.place(FaultPoint::Headers);
            words.end(FaultKind::Silence { at, length }, &format!("write a length such as `5s`; {places}"))
        }
        "split" => {
            let size = words.size();
            words.end(FaultKind::Split(size), "write how many bytes a piece has, or nothing")
        }
        "merge" => {
            let all = words.take(|word| (word == "all").then_some(())).is_some();
            words.end(FaultKind::Merge { all }, "write `merge` or `merge=all`")
        }
        "slow" => slow(words),
        "error" => error(words, &places),
        "usage" => usage(words),
        "duplicate" => {
            let event = words.take(|word| (!word.is_empty()).then(|| word.to_owned()));
            words.end(FaultKind::Duplicate(event), "write the name of one event, or nothing")
        }
        "content-type" => {
            let value = words.take(|word| word.contains('/').then(|| word.to_owned()));
            let value = value.unwrap_or_else(|| "text/html; charset=utf-8".to_owned());
            words.end(FaultKind::ContentType(value), "write a type such as `text/plain`")
        }
        "status" => Err("write the status itself, such as `429` or `529=2s`".to_owned()),
        name => Err(unknown_kind(name)),
    }
}

fn unknown_kind(name: &str) -> String {
    let question = did_you_mean(name, &KINDS);
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| *kind != "status").collect();
    format!(
        "unknown fault `{name}`{question} Use an HTTP status from 400 to 599 or one of: {}",
        kinds.join(", ")
    )
}

fn status_kind(status: u16, mut words: FaultArguments<'_>) -> Result<FaultKind, String> {
    if !(400..600).contains(&status) {
        return Err(format!("{status} is not an error status; write one from 400 to 599"));
    }
    let unsaid = words.take(|word| (word == "none").then_some(RetryHint::Omitted));
    let wait = unsaid.or_else(|| words.length().map(RetryHint::For)).unwrap_or(RetryHint::StatusDefault);
    let should_retry = words.take(|word| match word {
        "retry" => Some(true),
        "no-retry" => Some(false),
        _ => None,
    });
    words.end(
        FaultKind::Status { status, wait, should_retry },
        "write how long to wait (`2s`, `1500ms`, `none`), `retry` or `no-retry`",
    )
}

fn too_long(mut words: FaultArguments<'_>) -> Result<FaultKind, String> {
    let pair = |word: &str| {
        let (have, limit) = word.split_once('/')?;
        Some((have.trim().parse().ok()?, limit.trim().parse().ok()?))
    };
    let (have, limit) = words.take(pair).unwrap_or((1_048_233, 1_000_000));
    let started = words.take(|word| (word == "started").then_some(())).is_some();
    words.end(
        FaultKind::TooLong { have, limit, started },
        "write `too-long`, the two numbers, such as `too-long=210000/200000`, and `+started` for a refusal inside a stream",
    )
}

fn slow(mut words: FaultArguments<'_>) -> Result<FaultKind, String> {
    let hint = "write the time between two pieces and, if wanted, how many bytes a piece has: `slow=50ms+16`";
    let gap = words.length();
    let size = words.size();
    let gap = gap.unwrap_or(Duration::from_millis(100));
    words.end(FaultKind::Slow { gap, size }, hint)
}

fn error(mut words: FaultArguments<'_>, places: &str) -> Result<FaultKind, String> {
    let named = |word: &str| {
        ERRORS.into_iter().find(|kind| {
            let name = kind.as_str();
            word == name || name.strip_suffix("_error") == Some(word)
        })
    };
    let kind = words.take(named).unwrap_or(ApiErrorKind::Overloaded);
    let at = words.place(FaultPoint::After);
    let names = ERRORS.map(ApiErrorKind::as_str).join(", ");
    words.end(FaultKind::Error { kind, at }, &format!("an error is one of {names}; {places}"))
}

fn usage(mut words: FaultArguments<'_>) -> Result<FaultKind, String> {
    let wrong = words.take(|word| match word {
        "zero" => Some(UsageFault::Zero),
        "null" => Some(UsageFault::Null),
        "huge" => Some(UsageFault::Huge),
        "missing" => Some(UsageFault::Missing),
        most => most.parse().ok().map(UsageFault::AtMost),
    });
    words.end(
        FaultKind::Usage(wrong.unwrap_or(UsageFault::Zero)),
        "write `zero`, `null`, `huge`, `missing` or the largest count",
    )
}

/// Parses `250ms`, `5s` or `2m`.
fn duration(word: &str) -> Option<Duration> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let count: f64 = digits.parse().ok().filter(|count: &f64| (0.0..1e9).contains(count))?;
    match &word[digits.len()..] {
        "ms" => Some(Duration::from_secs_f64(count / 1000.0)),
        "s" => Some(Duration::from_secs_f64(count)),
        "m" => Some(Duration::from_secs_f64(count * 60.0)),
        _ => None,
    }
}
