//! The state machine behind the structural counts.
//!
//! Each byte belongs to a [`ByteClass`]; a state and a class give the next [`ScanState`], and each state that is
//! entered counts towards at most one [`TextFeature`]. Everything is turned into flat tables at compile time.
//!
//! Invariants: the states that a line feed leads to have the same successors as [`ScanState::START`], and those that a
//! comma or a quote leads to the same as [`ScanState::PunctuationRun`]. So counts are exactly additive over pieces cut
//! behind a line feed, and pieces cut behind any of these bytes may be counted in any order.

/// Defines an enum with a list of its variants and their names, for building tables.
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
pub(super) const FEATURES: usize = TextFeature::ALL.len();
/// Slots in the tables for states; a power of two, so that masking replaces bounds checks.
pub(super) const STATE_SLOTS: usize = 64;
/// Slots in the tables for classes; a power of two for the same reason.
pub(super) const CLASS_SLOTS: usize = 32;
/// Value in [`FEATURE_OF`] of a state that counts towards no feature.
pub(super) const NO_FEATURE: u8 = FEATURES as u8;

listed! {
    /// Counted features; each has one weight.
    pub(super) enum TextFeature {
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
    enum ByteClass {
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
    /// State after a byte; the names describe that byte.
    pub(super) enum ScanState {
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

impl ScanState {
    /// The state before the first byte.
    pub(super) const START: ScanState = ScanState::LineEnd;

    const fn is_line_end(self) -> bool {
        matches!(self, ScanState::LineEnd | ScanState::LineEndAfterPunctuation | ScanState::BlankLine)
    }

    const fn is_punctuation(self) -> bool {
        let position = self as u8;
        ScanState::QuoteAfterBlank as u8 <= position && position <= ScanState::DashRun as u8
    }

    const fn is_letter_run(self) -> bool {
        let position = self as u8;
        ScanState::WordAfterSpace as u8 <= position && position <= ScanState::Letter12Up as u8
    }

    const fn is_blank(self) -> bool {
        self as u8 <= ScanState::Tab as u8
    }

    const fn is_single_space(self) -> bool {
        matches!(self, ScanState::Space | ScanState::Indent)
    }
}

/// Names of the counts in the order of [`TextFeature`].
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
        names[feature] = TextFeature::ALL[feature].1;
        feature += 1;
    }
    names
}

const fn class_table() -> [u8; 256] {
    let mut table = [ByteClass::Rare as u8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class(byte as u8) as u8;
        byte += 1;
    }
    table
}

const fn next_table() -> [[u8; CLASS_SLOTS]; STATE_SLOTS] {
    let mut table = [[ScanState::START as u8; CLASS_SLOTS]; STATE_SLOTS];
    let mut state = 0;
    while state < ScanState::ALL.len() {
        let mut class = 0;
        while class < ByteClass::ALL.len() {
            table[ScanState::ALL[state].0 as usize][ByteClass::ALL[class].0 as usize] =
                step(ScanState::ALL[state].0, ByteClass::ALL[class].0) as u8;
            class += 1;
        }
        state += 1;
    }
    table
}

const fn feature_table() -> [u8; STATE_SLOTS] {
    let mut table = [NO_FEATURE; STATE_SLOTS];
    let mut state = 0;
    while state < ScanState::ALL.len() {
        if let Some(feature) = feature(ScanState::ALL[state].0) {
            table[ScanState::ALL[state].0 as usize] = feature as u8;
        }
        state += 1;
    }
    table
}

const fn class(byte: u8) -> ByteClass {
    match byte {
        b'a'..=b'z' => ByteClass::Lower,
        b'A'..=b'Z' => ByteClass::Upper,
        b'0'..=b'9' => ByteClass::Digit,
        b' ' => ByteClass::Space,
        b'\t' => ByteClass::Tab,
        b'\r' => ByteClass::Return,
        b'\n' => ByteClass::LineFeed,
        b'"' | b'\'' | b'`' => ByteClass::Quote,
        b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' => ByteClass::Bracket,
        b',' | b';' | b':' => ByteClass::Comma,
        b'.' => ByteClass::Dot,
        b'/' | b'\\' => ByteClass::Slash,
        b'_' => ByteClass::Underscore,
        b'-' | b'=' | b'*' | b'#' | b'~' => ByteClass::Dash,
        b'!' | b'?' | b'@' | b'$' | b'%' | b'^' | b'&' | b'+' | b'|' => ByteClass::Operator,
        0x80..=0xBF => ByteClass::Tail,
        0xC0..=0xCF => ByteClass::OtherTwoByte,
        0xD0..=0xD3 => ByteClass::Cyrillic,
        0xD4..=0xDF => ByteClass::Arabic,
        0xE2 => ByteClass::Symbol,
        // Full-width punctuation stands among kana and costs about the same.
        0xE3 | 0xEE | 0xEF => ByteClass::Kana,
        0xE4..=0xE9 => ByteClass::Han,
        0xEA..=0xED => ByteClass::Hangul,
        _ => ByteClass::Rare,
    }
}

const fn step(from: ScanState, class: ByteClass) -> ScanState {
    match class {
        ByteClass::Lower => step_lower(from),
        ByteClass::Upper => step_upper(from),
        ByteClass::Digit => match from {
            ScanState::Digit1 => ScanState::Digit2,
            ScanState::Digit2 => ScanState::Digit3,
            _ => ScanState::Digit1,
        },
        ByteClass::Space => match from {
            ScanState::Space | ScanState::Indent | ScanState::Spaces => ScanState::Spaces,
            _ if from.is_line_end() => ScanState::Indent,
            _ => ScanState::Space,
        },
        ByteClass::Tab => match from {
            ScanState::Tab | ScanState::Spaces => ScanState::Spaces,
            _ => ScanState::Tab,
        },
        ByteClass::Return => ScanState::Return,
        ByteClass::LineFeed => match from {
            _ if from.is_line_end() => ScanState::BlankLine,
            _ if from.is_punctuation() => ScanState::LineEndAfterPunctuation,
            _ => ScanState::LineEnd,
        },
        ByteClass::Dash => match from {
            ScanState::Dash | ScanState::DashInRun | ScanState::DashRun => ScanState::DashRun,
            _ if from.is_punctuation() => ScanState::DashInRun,
            _ => ScanState::Dash,
        },
        ByteClass::Quote if from.is_blank() => ScanState::QuoteAfterBlank,
        ByteClass::Quote => fresh_or_run(from, ScanState::QuoteElsewhere),
        ByteClass::Bracket => fresh_or_run(from, ScanState::Bracket),
        ByteClass::Comma => fresh_or_run(from, ScanState::Comma),
        ByteClass::Dot => fresh_or_run(from, ScanState::Dot),
        ByteClass::Slash => fresh_or_run(from, ScanState::Slash),
        ByteClass::Underscore => fresh_or_run(from, ScanState::Underscore),
        ByteClass::Operator => fresh_or_run(from, ScanState::Operator),
        ByteClass::Tail => match from {
            ScanState::Symbol | ScanState::SymbolRun | ScanState::SymbolTail => ScanState::SymbolTail,
            _ => ScanState::Tail,
        },
        ByteClass::Symbol => match from {
            ScanState::SymbolTail => ScanState::SymbolRun,
            _ => ScanState::Symbol,
        },
        ByteClass::OtherTwoByte => ScanState::OtherTwoByte,
        ByteClass::Cyrillic => ScanState::Cyrillic,
        ByteClass::Arabic => ScanState::Arabic,
        ByteClass::Kana => ScanState::Kana,
        ByteClass::Han => ScanState::Han,
        ByteClass::Hangul => ScanState::Hangul,
        ByteClass::Rare => ScanState::Rare,
    }
}

const fn fresh_or_run(from: ScanState, fresh: ScanState) -> ScanState {
    if from.is_punctuation() { ScanState::PunctuationRun } else { fresh }
}

const fn step_lower(from: ScanState) -> ScanState {
    match from {
        ScanState::WordAfterSpace | ScanState::WordElsewhere => ScanState::Letter2,
        ScanState::Letter2 => ScanState::Letter3,
        ScanState::Letter3 => ScanState::Letter4,
        ScanState::Letter4 => ScanState::Letter5,
        ScanState::Letter5 => ScanState::Letter6,
        ScanState::Letter6 => ScanState::Letter7,
        ScanState::Letter7 => ScanState::Letter8,
        ScanState::Letter8 => ScanState::Letter9,
        ScanState::Letter9 => ScanState::Letter10,
        ScanState::Letter10 => ScanState::Letter11,
        ScanState::Letter11 | ScanState::Letter12Up => ScanState::Letter12Up,
        ScanState::CapitalAfterSpace
        | ScanState::CapitalAfterUnderscore
        | ScanState::CapitalElsewhere
        | ScanState::CapitalInWord
        | ScanState::SecondCapital
        | ScanState::FurtherCapital => ScanState::Letter2,
        _ if from.is_single_space() => ScanState::WordAfterSpace,
        _ => ScanState::WordElsewhere,
    }
}

const fn step_upper(from: ScanState) -> ScanState {
    match from {
        ScanState::CapitalAfterSpace
        | ScanState::CapitalAfterUnderscore
        | ScanState::CapitalElsewhere
        | ScanState::CapitalInWord => ScanState::SecondCapital,
        ScanState::SecondCapital | ScanState::FurtherCapital => ScanState::FurtherCapital,
        _ if from.is_letter_run() => ScanState::CapitalInWord,
        ScanState::Underscore => ScanState::CapitalAfterUnderscore,
        _ if from.is_single_space() => ScanState::CapitalAfterSpace,
        _ => ScanState::CapitalElsewhere,
    }
}

const fn feature(state: ScanState) -> Option<TextFeature> {
    Some(match state {
        ScanState::LineEnd => TextFeature::LineEnd,
        ScanState::LineEndAfterPunctuation => TextFeature::LineEndAfterPunctuation,
        ScanState::BlankLine => TextFeature::BlankLine,
        ScanState::Space => TextFeature::Space,
        ScanState::Indent => TextFeature::Indent,
        // A carriage return mostly melts into the line feed behind it.
        ScanState::Spaces | ScanState::Return => TextFeature::FurtherSpace,
        ScanState::Tab => TextFeature::Tab,
        ScanState::WordAfterSpace | ScanState::CapitalAfterSpace => TextFeature::WordAfterSpace,
        ScanState::WordElsewhere => TextFeature::WordElsewhere,
        ScanState::Letter2 | ScanState::Letter3 | ScanState::Letter4 => TextFeature::Letters2To4,
        ScanState::Letter5 | ScanState::Letter6 | ScanState::Letter7 => TextFeature::Letters5To7,
        ScanState::Letter8 | ScanState::Letter9 | ScanState::Letter10 | ScanState::Letter11 => {
            TextFeature::Letters8To11
        }
        ScanState::Letter12Up => TextFeature::Letters12Up,
        ScanState::CapitalAfterUnderscore => TextFeature::CapitalAfterUnderscore,
        ScanState::CapitalElsewhere => TextFeature::CapitalElsewhere,
        ScanState::CapitalInWord => TextFeature::CapitalInWord,
        ScanState::SecondCapital => TextFeature::SecondCapital,
        ScanState::FurtherCapital => TextFeature::FurtherCapital,
        ScanState::Digit1 => TextFeature::DigitGroup,
        ScanState::Digit2 | ScanState::Digit3 => TextFeature::FurtherDigit,
        ScanState::QuoteAfterBlank => TextFeature::QuoteAfterBlank,
        ScanState::QuoteElsewhere => TextFeature::QuoteElsewhere,
        ScanState::Bracket => TextFeature::Bracket,
        ScanState::Comma => TextFeature::Comma,
        ScanState::Dot => TextFeature::Dot,
        ScanState::Slash => TextFeature::Slash,
        ScanState::Underscore => TextFeature::Underscore,
        ScanState::Dash => TextFeature::Dash,
        ScanState::Operator => TextFeature::Operator,
        ScanState::PunctuationRun | ScanState::DashInRun => TextFeature::PunctuationRun,
        ScanState::DashRun => TextFeature::DashRun,
        ScanState::OtherTwoByte => TextFeature::OtherTwoByte,
        ScanState::Cyrillic => TextFeature::Cyrillic,
        ScanState::Arabic => TextFeature::Arabic,
        ScanState::Symbol => TextFeature::Symbol,
        ScanState::SymbolRun => TextFeature::SymbolRun,
        ScanState::Kana => TextFeature::Kana,
        ScanState::Han => TextFeature::Han,
        ScanState::Hangul => TextFeature::Hangul,
        ScanState::Rare => TextFeature::Rare,
        ScanState::SymbolTail | ScanState::Tail => return None,
    })
}
