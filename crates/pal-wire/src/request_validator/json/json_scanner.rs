//! JSON scanner: checks the syntax and records the span of each value.
//!
//! It has its own stack, so a body of ten million brackets is an error, not a crash.

/// Maximum nesting depth; the same as that of `serde_json`.
const DEPTH_MAX: usize = 127;

/// Byte range of a value, and the index of the span after it. Keys have their own spans, before their values.
#[derive(Clone, Copy)]
pub(super) struct ValueSpan {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
}

/// Syntax error and its byte offset.
#[derive(Debug)]
pub(super) struct JsonSyntaxError {
    pub(super) message: &'static str,
    pub(super) offset: usize,
}

impl JsonSyntaxError {
    pub(super) fn utf8(offset: usize) -> JsonSyntaxError {
        JsonSyntaxError { message: "invalid UTF-8 encoding in string", offset }
    }
}

/// Scans a text of less than 4 GiB.
pub(super) fn scan(text: &str) -> Result<Vec<ValueSpan>, JsonSyntaxError> {
    let bytes = text.as_bytes();
    if u32::try_from(bytes.len()).is_err() {
        return Err(JsonSyntaxError { message: "too much data", offset: 0 });
    }
    let mut scanner =
        JsonScanner { bytes, at: 0, entries: Vec::with_capacity(bytes.len() / 64), open: Vec::new() };
    scanner.document()?;
    Ok(scanner.entries)
}

struct JsonScanner<'t> {
    bytes: &'t [u8],
    at: usize,
    entries: Vec<ValueSpan>,
    /// Spans of the open objects and arrays.
    open: Vec<usize>,
}

/// Expected next token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonScanState {
    Value,
    ItemOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl JsonScanner<'_> {
    fn document(&mut self) -> Result<(), JsonSyntaxError> {
        let mut expect = JsonScanState::Value;
        loop {
            self.skip_whitespace();
            if expect == JsonScanState::CommaOrEnd && self.open.is_empty() {
                return match self.peek() {
                    None => Ok(()),
                    Some(_) => Err(self.error("unexpected content after document")),
                };
            }
            let Some(byte) = self.peek() else { return Err(self.error("unexpected end of data")) };
            expect = match (expect, byte) {
                (JsonScanState::ItemOrEnd, b']') | (JsonScanState::KeyOrEnd, b'}') => self.close(),
                (JsonScanState::Value | JsonScanState::ItemOrEnd, _) => self.value(byte)?,
                (JsonScanState::Key | JsonScanState::KeyOrEnd, b'"') => self.key()?,
                (JsonScanState::Key | JsonScanState::KeyOrEnd, _) => {
                    return Err(self.error("unexpected character in object"));
                }
                (JsonScanState::CommaOrEnd, _) => self.comma_or_end(byte)?,
            };
        }
    }

    fn value(&mut self, byte: u8) -> Result<JsonScanState, JsonSyntaxError> {
        match byte {
            b'{' | b'[' => {
                if self.open.len() >= DEPTH_MAX {
                    return Err(self.error("nesting is too deep"));
                }
                self.open.push(self.entries.len());
                self.note(self.at);
                self.at += 1;
                return Ok(if byte == b'{' { JsonScanState::KeyOrEnd } else { JsonScanState::ItemOrEnd });
            }
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.error("unexpected character")),
        }
        Ok(JsonScanState::CommaOrEnd)
    }

    fn key(&mut self) -> Result<JsonScanState, JsonSyntaxError> {
        self.string()?;
        self.skip_whitespace();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(JsonScanState::Value)
            }
            Some(_) => Err(self.error("unexpected character, expected a colon after a key")),
            None => Err(self.error("unexpected end of data")),
        }
    }

    fn comma_or_end(&mut self, byte: u8) -> Result<JsonScanState, JsonSyntaxError> {
        let innermost = self.open.last().and_then(|&entry| self.entries.get(entry));
        let in_object = innermost.is_some_and(|entry| self.bytes.get(entry.start as usize) == Some(&b'{'));
        match byte {
            b',' => {
                self.at += 1;
                Ok(if in_object { JsonScanState::Key } else { JsonScanState::Value })
            }
            b'}' if in_object => Ok(self.close()),
            b']' if !in_object => Ok(self.close()),
            _ => Err(self.error("unexpected character, expected a comma or the end")),
        }
    }

    fn close(&mut self) -> JsonScanState {
        self.at += 1;
        let next = self.entries.len() as u32;
        if let Some(entry) = self.open.pop().and_then(|open| self.entries.get_mut(open)) {
            entry.end = self.at as u32;
            entry.next = next;
        }
        JsonScanState::CommaOrEnd
    }

    fn string(&mut self) -> Result<(), JsonSyntaxError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.at = find_special(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.note(start);
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.error("unexpected control character in string")),
                None => return Err(self.error("unexpected end of data")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonSyntaxError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let unit = self.unit(self.at + 2)?;
                self.at += match unit {
                    0xd800..0xdc00 => self.low_surrogate()?,
                    0xdc00..0xe000 => return Err(self.error("invalid high surrogate in string")),
                    _ => 6,
                };
            }
            Some(_) => return Err(self.error("invalid escaped character in string")),
            None => return Err(self.error("unexpected end of data")),
        }
        Ok(())
    }

    /// Checks the low surrogate that must follow a high one at the current position; returns the length of both.
    fn low_surrogate(&self) -> Result<usize, JsonSyntaxError> {
        if self.bytes.get(self.at + 6..self.at + 8) != Some(b"\\u") {
            return Err(self.error("no low surrogate in string"));
        }
        match self.unit(self.at + 8)? {
            0xdc00..0xe000 => Ok(12),
            _ => Err(self.error("invalid low surrogate in string")),
        }
    }

    fn unit(&self, at: usize) -> Result<u32, JsonSyntaxError> {
        let digits = self.bytes.get(at..at + 4).ok_or_else(|| self.error("unexpected end of data"))?;
        digits.iter().try_fold(0, |unit, &digit| match char::from(digit).to_digit(16) {
            Some(value) => Ok(unit * 16 + value),
            None => Err(self.error("invalid escaped sequence in string")),
        })
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonSyntaxError> {
        if self.bytes.get(self.at..self.at + word.len()) != Some(word) {
            return Err(self.error("invalid literal"));
        }
        let start = self.at;
        self.at += word.len();
        self.note(start);
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonSyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        let whole = self.digits()?;
        if first == Some(b'0') && whole > 1 {
            return Err(self.error("number with leading zero is not allowed"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        self.note(start);
        Ok(())
    }

    fn digits(&mut self) -> Result<usize, JsonSyntaxError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("no digit in number")) } else { Ok(self.at - start) }
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn note(&mut self, start: usize) {
        let next = self.entries.len() as u32 + 1;
        self.entries.push(ValueSpan { start: start as u32, end: self.at as u32, next });
    }

    fn error(&self, message: &'static str) -> JsonSyntaxError {
        JsonSyntaxError { message, offset: self.at.min(self.bytes.len()) }
    }
}

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// Returns the offset of the first quote, backslash or control character at or after `from`, else the end; scans eight
/// bytes at a time.
fn find_special(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quotes = word ^ (ONES * u64::from(b'"'));
        let slashes = word ^ (ONES * u64::from(b'\\'));
        // A borrow can only flag a byte after a true match, so the first flag is correct.
        let hits = (word.wrapping_sub(ONES * 0x20) & !word)
            | (quotes.wrapping_sub(ONES) & !quotes)
            | (slashes.wrapping_sub(ONES) & !slashes);
        if hits & TOPS != 0 {
            return from + index * 8 + (hits & TOPS).trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.len() - tail.len() + tail.iter().position(special).unwrap_or(tail.len())
}
