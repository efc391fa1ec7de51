//! The state machine behind the structural counts.
//!
//! Each byte belongs to a [`Class`]; a state and a class give the next [`State`], and each state that is
//! entered counts towards at most one [`Feature`]. Everything is turned into flat tables at compile time.
//!
//! Invariants: the states that a line feed leads to have the same successors as [`State::START`], and those that a
//! comma or a quote leads to the same as [`State::PunctuationRun`]. So counts are exactly additive over pieces cut
//! behind a line feed, and pieces cut behind any of these bytes may be counted in any order.

/// An enum that knows its variants and their names, so that tables can be made from all of them.
macro_rules! listed {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($(#[$inner:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        $visibility enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            const ALL: &[($name, &str)] = &[$(($name::$variant, stringify!($variant))),*];
        }
    };
}

/// Number of structural counts.
pub(super) const FEATURES: usize = Feature::ALL.len();
/// Slots in the tables for states; a power of two, so that masking replaces bounds checks.
pub(super) const STATE_SLOTS: usize = 64;
/// Slots in the tables for classes; a power of two for the same reason.
pub(super) const CLASS_SLOTS: usize = 32;
/// What [`FEATURE_OF`] holds for a state that counts towards nothing.
pub(super) const NO_FEATURE: u8 = FEATURES as u8;

listed! {
    /// What is counted; one weight each.
    pub(super) enum Feature {
        WordAfterSpace,
        WordElsewhere,
        Letters2To4,
        Letters5To7,
        Letters8To11,
        Letters12Up,
        CapitalAfterUnderscore,
        CapitalElsewhere,
        CapitalInWord,
        SecondCapital,
        FurtherCapital,
        DigitGroup,
        FurtherDigit,
        Space,
        Indent,
        FurtherSpace,
        Tab,
        LineEnd,
        LineEndAfterPunctuation,
        BlankLine,
        QuoteAfterBlank,
        QuoteElsewhere,
        Bracket,
        Comma,
        Dot,
        Slash,
        Underscore,
        Dash,
        Operator,
        PunctuationRun,
        DashRun,
        OtherTwoByte,
        Cyrillic,
        Arabic,
        Symbol,
        SymbolRun,
        Kana,
        Han,
        Hangul,
        Rare,
    }
}

listed! {
    /// Kinds of bytes.
    enum Class {
        Lower,
        Upper,
        Digit,
        Space,
        Tab,
        Return,
        LineFeed,
        Quote,
        Bracket,
        Comma,
        Dot,
        Slash,
        Underscore,
        Dash,
        Operator,
        /// Second and later bytes of a character outside ASCII.
        Tail,
        OtherTwoByte,
        Cyrillic,
        Arabic,
        Symbol,
        Kana,
        Han,
        Hangul,
        /// Control characters, scripts without data, characters of four bytes.
        Rare,
    }
}

listed! {
    /// Where the machine stands after a byte; the names say what that byte was.
    pub(super) enum State {
        LineEnd,
        LineEndAfterPunctuation,
        BlankLine,
        Space,
        Indent,
        Spaces,
        Return,
        Tab,
        WordAfterSpace,
        WordElsewhere,
        Letter2,
        Letter3,
        Letter4,
        Letter5,
        Letter6,
        Letter7,
        Letter8,
        Letter9,
        Letter10,
        Letter11,
        Letter12Up,
        CapitalAfterSpace,
        CapitalAfterUnderscore,
        CapitalElsewhere,
        CapitalInWord,
        SecondCapital,
        FurtherCapital,
        Digit1,
        Digit2,
        Digit3,
        QuoteAfterBlank,
        QuoteElsewhere,
        Bracket,
        Comma,
        Dot,
        Slash,
        Underscore,
        Dash,
        Operator,
        PunctuationRun,
        DashInRun,
        DashRun,
        OtherTwoByte,
        Cyrillic,
        Arabic,
        Symbol,
        SymbolRun,
        SymbolTail,
        Kana,
        Han,
        Hangul,
        Rare,
        Tail,
    }
}

impl State {
    /// The state before the first byte.
    pub(super) const START: State = State::LineEnd;

    const fn is_line_end(self) -> bool {
        matches!(self, State::LineEnd | State::LineEndAfterPunctuation | State::BlankLine)
    }

    const fn is_punctuation(self) -> bool {
        let position = self as u8;
        State::QuoteAfterBlank as u8 <= position && position <= State::DashRun as u8
    }

    const fn is_letter_run(self) -> bool {
        let position = self as u8;
        State::WordAfterSpace as u8 <= position && position <= State::Letter12Up as u8
    }

    const fn is_blank(self) -> bool {
        self as u8 <= State::Tab as u8
    }

    const fn is_single_space(self) -> bool {
        matches!(self, State::Space | State::Indent)
    }
}

/// Names of the counts in the order of [`Feature`].
pub(super) const FEATURE_NAMES: [&str; FEATURES] = feature_names();
/// The class of each byte.
pub(super) static CLASS_OF: [u8; 256] = class_table();
/// The next state by state and class.
pub(super) static NEXT: [[u8; CLASS_SLOTS]; STATE_SLOTS] = next_table();
/// The count that each state adds to, or [`NO_FEATURE`].
pub(super) static FEATURE_OF: [u8; STATE_SLOTS] = feature_table();

const fn feature_names() -> [&'static str; FEATURES] {
    let mut names = [""; FEATURES];
    let mut feature = 0;
    while feature < FEATURES {
        names[feature] = Feature::ALL[feature].1;
        feature += 1;
    }
    names
}

const fn class_table() -> [u8; 256] {
    let mut table = [Class::Rare as u8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class(byte as u8) as u8;
        byte += 1;
    }
    table
}

const fn next_table() -> [[u8; CLASS_SLOTS]; STATE_SLOTS] {
    let mut table = [[State::START as u8; CLASS_SLOTS]; STATE_SLOTS];
    let mut state = 0;
    while state < State::ALL.len() {
        let mut class = 0;
        while class < Class::ALL.len() {
            table[State::ALL[state].0 as usize][Class::ALL[class].0 as usize] =
                step(State::ALL[state].0, Class::ALL[class].0) as u8;
            class += 1;
        }
        state += 1;
    }
    table
}

const fn feature_table() -> [u8; STATE_SLOTS] {
    let mut table = [NO_FEATURE; STATE_SLOTS];
    let mut state = 0;
    while state < State::ALL.len() {
        if let Some(feature) = feature(State::ALL[state].0) {
            table[State::ALL[state].0 as usize] = feature as u8;
        }
        state += 1;
    }
    table
}

const fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b' ' => Class::Space,
        b'\t' => Class::Tab,
        b'\r' => Class::Return,
        b'\n' => Class::LineFeed,
        b'"' | b'\'' | b'`' => Class::Quote,
        b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' => Class::Bracket,
        b',' | b';' | b':' => Class::Comma,
        b'.' => Class::Dot,
        b'/' | b'\\' => Class::Slash,
        b'_' => Class::Underscore,
        b'-' | b'=' | b'*' | b'#' | b'~' => Class::Dash,
        b'!' | b'?' | b'@' | b'$' | b'%' | b'^' | b'&' | b'+' | b'|' => Class::Operator,
        0x80..=0xBF => Class::Tail,
        0xC0..=0xCF => Class::OtherTwoByte,
        0xD0..=0xD3 => Class::Cyrillic,
        0xD4..=0xDF => Class::Arabic,
        0xE2 => Class::Symbol,
        // Full-width punctuation stands among kana and costs about the same.
        0xE3 | 0xEE | 0xEF => Class::Kana,
        0xE4..=0xE9 => Class::Han,
        0xEA..=0xED => Class::Hangul,
        _ => Class::Rare,
    }
}

const fn step(from: State, class: Class) -> State {
    match class {
        Class::Lower => step_lower(from),
        Class::Upper => step_upper(from),
        Class::Digit => match from {
            State::Digit1 => State::Digit2,
            State::Digit2 => State::Digit3,
            _ => State::Digit1,
        },
        Class::Space => match from {
            State::Space | State::Indent | State::Spaces => State::Spaces,
            _ if from.is_line_end() => State::Indent,
            _ => State::Space,
        },
        Class::Tab => match from {
            State::Tab | State::Spaces => State::Spaces,
            _ => State::Tab,
        },
        Class::Return => State::Return,
        Class::LineFeed => match from {
            _ if from.is_line_end() => State::BlankLine,
            _ if from.is_punctuation() => State::LineEndAfterPunctuation,
            _ => State::LineEnd,
        },
        Class::Dash => match from {
            State::Dash | State::DashInRun | State::DashRun => State::DashRun,
            _ if from.is_punctuation() => State::DashInRun,
            _ => State::Dash,
        },
        Class::Quote if from.is_blank() => State::QuoteAfterBlank,
        Class::Quote => fresh_or_run(from, State::QuoteElsewhere),
        Class::Bracket => fresh_or_run(from, State::Bracket),
        Class::Comma => fresh_or_run(from, State::Comma),
        Class::Dot => fresh_or_run(from, State::Dot),
        Class::Slash => fresh_or_run(from, State::Slash),
        Class::Underscore => fresh_or_run(from, State::Underscore),
        Class::Operator => fresh_or_run(from, State::Operator),
        Class::Tail => match from {
            State::Symbol | State::SymbolRun | State::SymbolTail => State::SymbolTail,
            _ => State::Tail,
        },
        Class::Symbol => match from {
            State::SymbolTail => State::SymbolRun,
            _ => State::Symbol,
        },
        Class::OtherTwoByte => State::OtherTwoByte,
        Class::Cyrillic => State::Cyrillic,
        Class::Arabic => State::Arabic,
        Class::Kana => State::Kana,
        Class::Han => State::Han,
        Class::Hangul => State::Hangul,
        Class::Rare => State::Rare,
    }
}

const fn fresh_or_run(from: State, fresh: State) -> State {
    if from.is_punctuation() { State::PunctuationRun } else { fresh }
}

const fn step_lower(from: State) -> State {
    match from {
        State::WordAfterSpace | State::WordElsewhere => State::Letter2,
        State::Letter2 => State::Letter3,
        State::Letter3 => State::Letter4,
        State::Letter4 => State::Letter5,
        State::Letter5 => State::Letter6,
        State::Letter6 => State::Letter7,
        State::Letter7 => State::Letter8,
        State::Letter8 => State::Letter9,
        State::Letter9 => State::Letter10,
        State::Letter10 => State::Letter11,
        State::Letter11 | State::Letter12Up => State::Letter12Up,
        State::CapitalAfterSpace
        | State::CapitalAfterUnderscore
        | State::CapitalElsewhere
        | State::CapitalInWord
        | State::SecondCapital
        | State::FurtherCapital => State::Letter2,
        _ if from.is_single_space() => State::WordAfterSpace,
        _ => State::WordElsewhere,
    }
}

const fn step_upper(from: State) -> State {
    match from {
        State::CapitalAfterSpace
        | State::CapitalAfterUnderscore
        | State::CapitalElsewhere
        | State::CapitalInWord => State::SecondCapital,
        State::SecondCapital | State::FurtherCapital => State::FurtherCapital,
        _ if from.is_letter_run() => State::CapitalInWord,
        State::Underscore => State::CapitalAfterUnderscore,
        _ if from.is_single_space() => State::CapitalAfterSpace,
        _ => State::CapitalElsewhere,
    }
}

const fn feature(state: State) -> Option<Feature> {
    Some(match state {
        State::LineEnd => Feature::LineEnd,
        State::LineEndAfterPunctuation => Feature::LineEndAfterPunctuation,
        State::BlankLine => Feature::BlankLine,
        State::Space => Feature::Space,
        State::Indent => Feature::Indent,
        // A carriage return mostly melts into the line feed behind it.
        State::Spaces | State::Return => Feature::FurtherSpace,
        State::Tab => Feature::Tab,
        State::WordAfterSpace | State::CapitalAfterSpace => Feature::WordAfterSpace,
        State::WordElsewhere => Feature::WordElsewhere,
        State::Letter2 | State::Letter3 | State::Letter4 => Feature::Letters2To4,
        State::Letter5 | State::Letter6 | State::Letter7 => Feature::Letters5To7,
        State::Letter8 | State::Letter9 | State::Letter10 | State::Letter11 => Feature::Letters8To11,
        State::Letter12Up => Feature::Letters12Up,
        State::CapitalAfterUnderscore => Feature::CapitalAfterUnderscore,
        State::CapitalElsewhere => Feature::CapitalElsewhere,
        State::CapitalInWord => Feature::CapitalInWord,
        State::SecondCapital => Feature::SecondCapital,
        State::FurtherCapital => Feature::FurtherCapital,
        State::Digit1 => Feature::DigitGroup,
        State::Digit2 | State::Digit3 => Feature::FurtherDigit,
        State::QuoteAfterBlank => Feature::QuoteAfterBlank,
        State::QuoteElsewhere => Feature::QuoteElsewhere,
        State::Bracket => Feature::Bracket,
        State::Comma => Feature::Comma,
        State::Dot => Feature::Dot,
        State::Slash => Feature::Slash,
        State::Underscore => Feature::Underscore,
        State::Dash => Feature::Dash,
        State::Operator => Feature::Operator,
        State::PunctuationRun | State::DashInRun => Feature::PunctuationRun,
        State::DashRun => Feature::DashRun,
        State::OtherTwoByte => Feature::OtherTwoByte,
        State::Cyrillic => Feature::Cyrillic,
        State::Arabic => Feature::Arabic,
        State::Symbol => Feature::Symbol,
        State::SymbolRun => Feature::SymbolRun,
        State::Kana => Feature::Kana,
        State::Han => Feature::Han,
        State::Hangul => Feature::Hangul,
        State::Rare => Feature::Rare,
        State::SymbolTail | State::Tail => return None,
    })
}
