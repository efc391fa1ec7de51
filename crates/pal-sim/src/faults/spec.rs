//! The grammar of a plan: `KIND[=ARGUMENT+…][@REQUESTS][:PROBABILITY]`, separated by commas.

use std::ops::RangeInclusive;
use std::time::Duration;

use pal_wire::ErrorKind;

use pal_model::meant;

/// One fault and the requests that it meets.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub kind: Kind,
    /// The requests, counted from 1; empty if it meets all of them.
    pub requests: Vec<RangeInclusive<u64>>,
    pub probability: f64,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Status { status: u16, wait: Wait, should_retry: Option<bool> },
    SpendLimit,
    TooLong { have: u64, limit: u64 },
    Reset,
    Cut(Place),
    Truncate(Place),
    Silence { at: Place, length: Option<Duration> },
    Split(Option<usize>),
    Merge { all: bool },
    Crlf,
    Slow { gap: Duration, size: Option<usize> },
    Malformed(Place),
    Error { kind: ErrorKind, at: Place },
    Usage(WrongUsage),
    Duplicate(Option<String>),
    Unknown,
    ContentType(String),
}

impl Kind {
    /// Faults of one answer are applied in this order: events, bytes, endings, pieces.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            Kind::Usage(_) | Kind::Duplicate(_) | Kind::Unknown => 0,
            Kind::Malformed(_) | Kind::Error { .. } => 1,
            Kind::Crlf => 2,
            Kind::Merge { .. } | Kind::Split(_) => 3,
            Kind::Slow { .. } => 4,
            _ => 5,
        }
    }
}

/// How long a client is asked to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As the status has it.
    Usual,
    /// Nothing is said about it.
    Unsaid,
    /// This long.
    For(Duration),
}

/// Where in an answer something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the first byte of the body.
    Headers,
    /// Before the first piece of content.
    Before,
    /// Right behind the first piece of content.
    After,
    /// Before the last event.
    End,
    /// Anywhere.
    Random,
    /// Before this byte, counted from 0.
    Byte(usize),
}

/// How a usage is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongUsage {
    Zero,
    Null,
    Huge,
    Missing,
}

/// A plan that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault `{part}`: {problem}")]
pub struct FaultError {
    /// The part of the plan that is wrong.
    pub part: String,
    /// What is wrong with it, and what may stand there.
    pub problem: String,
}

/// The kinds besides statuses.
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
const ERRORS: [ErrorKind; 5] = [
    ErrorKind::Overloaded,
    ErrorKind::Api,
    ErrorKind::RateLimit,
    ErrorKind::Timeout,
    ErrorKind::InvalidRequest,
];

impl Fault {
    /// Reads one part of a plan.
    pub(crate) fn parse(part: &str) -> Result<Fault, FaultError> {
        read(part).map_err(|problem| FaultError { part: part.to_owned(), problem })
    }

    /// Whether this request, counted from 1, is among those that it meets.
    pub(crate) fn aims_at(&self, number: u64) -> bool {
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
            return Err("`=`, `@` and `:` may stand once each".to_owned());
        }
    }
    let words: Vec<&str> =
        arguments.map(|words| words.split('+').map(str::trim).collect()).unwrap_or_default();
    Ok(Fault {
        kind: kind(name.trim(), Words::new(words))?,
        requests: requests.map_or(Ok(Vec::new()), ranges)?,
        probability: probability.map_or(Ok(1.0), share)?,
    })
}

/// `2`, `1-3`, `5-` and any of them joined with `+`.
fn ranges(text: &str) -> Result<Vec<RangeInclusive<u64>>, String> {
    let wrong = |range: &str| {
        format!(
            "`@{range}` does not say which requests; write `@2`, `@1-3`, `@5-` or `@1-3+7`, counted from 1"
        )
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
    share.ok_or_else(|| format!("`:{text}` is no probability; write a number from 0 to 1, such as `:0.1`"))
}

/// The words of an argument; each is taken by what understands it, and none may be left.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn new(words: Vec<&'a str>) -> Words<'a> {
        Words(words)
    }

    /// Takes out the first word that can be understood in this way.
    fn take<T>(&mut self, understand: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let (at, value) = self.0.iter().enumerate().find_map(|(at, word)| Some((at, understand(word)?)))?;
        self.0.remove(at);
        Some(value)
    }

    fn place(&mut self, usual: Place) -> Place {
        let place = |word: &str| match word {
            "headers" => Some(Place::Headers),
            "before" => Some(Place::Before),
            "after" => Some(Place::After),
            "end" => Some(Place::End),
            "random" => Some(Place::Random),
            number => number.parse().ok().map(Place::Byte),
        };
        self.take(place).unwrap_or(usual)
    }

    fn size(&mut self) -> Option<usize> {
        self.take(|word| word.parse().ok().filter(|size| *size > 0))
    }

    fn length(&mut self) -> Option<Duration> {
        self.take(duration)
    }

    /// The kind, if no word is left over.
    fn end(self, kind: Kind, hint: &str) -> Result<Kind, String> {
        match self.0.first() {
            None => Ok(kind),
            Some(word) => Err(format!("`{word}` is not understood here; {hint}")),
        }
    }
}

fn kind(name: &str, mut words: Words<'_>) -> Result<Kind, String> {
    if let Ok(status) = name.parse::<u16>() {
        return status_kind(status, words);
    }
    let places = format!("a place is a byte or one of {}", PLACES.join(", "));
    match name {
        "spend-limit" => words.end(Kind::SpendLimit, "it takes no argument"),
        "reset" => words.end(Kind::Reset, "it takes no argument"),
        "crlf" => words.end(Kind::Crlf, "it takes no argument"),
        "unknown" => words.end(Kind::Unknown, "it takes no argument"),
        "too-long" => too_long(words),
        "cut" => {
            let at = words.place(Place::Random);
            words.end(Kind::Cut(at), &places)
        }
        "truncate" => {
            let at = words.place(Place::Random);
            words.end(Kind::Truncate(at), &places)
        }
        "malformed" => {
            let at = words.place(Place::Random);
            words.end(Kind::Malformed(at), &places)
        }
        "silence" => {
            let length = words.length();
            let at = words.place(Place::Headers);
            words.end(Kind::Silence { at, length }, &format!("write a length such as `5s`; {places}"))
        }
        "split" => {
            let size = words.size();
            words.end(Kind::Split(size), "write how many bytes a piece has, or nothing")
        }
        "merge" => {
            let all = words.take(|word| (word == "all").then_some(())).is_some();
            words.end(Kind::Merge { all }, "write `merge` or `merge=all`")
        }
        "slow" => slow(words),
        "error" => error(words, &places),
        "usage" => usage(words),
        "duplicate" => {
            let event = words.take(|word| (!word.is_empty()).then(|| word.to_owned()));
            words.end(Kind::Duplicate(event), "write the name of one event, or nothing")
        }
        "content-type" => {
            let value = words.take(|word| word.contains('/').then(|| word.to_owned()));
            let value = value.unwrap_or_else(|| "text/html; charset=utf-8".to_owned());
            words.end(Kind::ContentType(value), "write a type such as `text/plain`")
        }
        "status" => Err("write the status itself, such as `429` or `529=2s`".to_owned()),
        name => Err(unknown_kind(name)),
    }
}

fn unknown_kind(name: &str) -> String {
    let question = meant(name, &KINDS);
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| *kind != "status").collect();
    format!(
        "there is no kind `{name}`{question} The kinds are HTTP statuses from 400 to 599 and {}",
        kinds.join(", ")
    )
}

fn status_kind(status: u16, mut words: Words<'_>) -> Result<Kind, String> {
    if !(400..600).contains(&status) {
        return Err(format!("{status} is no status of an error; write one from 400 to 599"));
    }
    let unsaid = words.take(|word| (word == "none").then_some(Wait::Unsaid));
    let wait = unsaid.or_else(|| words.length().map(Wait::For)).unwrap_or(Wait::Usual);
    let should_retry = words.take(|word| match word {
        "retry" => Some(true),
        "no-retry" => Some(false),
        _ => None,
    });
    words.end(
        Kind::Status { status, wait, should_retry },
        "write how long to wait (`2s`, `1500ms`, `none`), `retry` or `no-retry`",
    )
}

fn too_long(mut words: Words<'_>) -> Result<Kind, String> {
    let pair = |word: &str| {
        let (have, limit) = word.split_once('/')?;
        Some((have.trim().parse().ok()?, limit.trim().parse().ok()?))
    };
    let (have, limit) = words.take(pair).unwrap_or((1_048_233, 1_000_000));
    words.end(
        Kind::TooLong { have, limit },
        "write `too-long` or the two numbers, such as `too-long=210000/200000`",
    )
}

fn slow(mut words: Words<'_>) -> Result<Kind, String> {
    let hint = "write the time between two pieces and, if wanted, how many bytes a piece has: `slow=50ms+16`";
    let gap = words.length();
    let size = words.size();
    let gap = gap.unwrap_or(Duration::from_millis(100));
    words.end(Kind::Slow { gap, size }, hint)
}

fn error(mut words: Words<'_>, places: &str) -> Result<Kind, String> {
    let named = |word: &str| {
        ERRORS.into_iter().find(|kind| {
            let name = kind.as_str();
            word == name || name.strip_suffix("_error") == Some(word)
        })
    };
    let kind = words.take(named).unwrap_or(ErrorKind::Overloaded);
    let at = words.place(Place::After);
    let names = ERRORS.map(ErrorKind::as_str).join(", ");
    words.end(Kind::Error { kind, at }, &format!("an error is one of {names}; {places}"))
}

fn usage(mut words: Words<'_>) -> Result<Kind, String> {
    let wrong = words.take(|word| match word {
        "zero" => Some(WrongUsage::Zero),
        "null" => Some(WrongUsage::Null),
        "huge" => Some(WrongUsage::Huge),
        "missing" => Some(WrongUsage::Missing),
        _ => None,
    });
    words.end(Kind::Usage(wrong.unwrap_or(WrongUsage::Zero)), "write `zero`, `null`, `huge` or `missing`")
}

/// `250ms`, `5s`, `2m`.
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
